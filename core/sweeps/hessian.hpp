// The Hessian X' H X in the weights.
#pragma once

#include <algorithm>
#include <vector>

#include "sweeps/column_groups.hpp"

namespace marginrank {

// H = X' H_s X, n x n row-major, with the Hessian H_s in score space.
template <class Matrix, class Kernel>
void hessian(const Matrix& X, const Kernel& kernel, const typename Kernel::Point& point, double* H,
             int threads) {
  const Index n = X.n_columns();
  auto begin = [&] { return std::vector<Vec8>(static_cast<std::size_t>(n)); };
  auto update = [&](std::vector<Vec8>& block, Index first, const std::vector<Index>& rows,
                    const std::vector<Vec8>&, const std::vector<Vec8>& images) {
    X.rank_update(rows, first, images.data(), block.data());
  };
  auto end = [&](const std::vector<Vec8>& block, Index first) {
    const Index width = std::min<Index>(8, n - first);
    for (Index a = first; a < n; ++a) {
      for (Index c = 0; c < width; ++c) {
        H[a * n + first + c] = H[(first + c) * n + a] = block[a].lane[c];
      }
    }
  };
  for_each_column_group(X, kernel, point, threads, begin, update, end);
}

}  // namespace marginrank
