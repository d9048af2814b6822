// Rows of X and of H X, with the Hessian H in score space: X' H X is a product of both.
#pragma once

#include <algorithm>
#include <vector>

#include "sweeps/column_groups.hpp"

namespace marginrank {

// For the documents of some queries, in the order of the kernel: rows = X minus the first row of
// the query, images = H X. Queries without pairs get zeros. Float is enough, because the product
// only has to be close to the Hessian.
template <class Matrix, class Kernel>
void curved_rows(const Matrix& X, const Kernel& kernel, const typename Kernel::Point& point,
                 Range queries, float* rows, float* images, int threads) {
  const auto& problem = kernel.problem();
  const Index n = X.n_columns(), before = problem.offsets[queries.first];
  struct State {
    Scratch scratch;
    std::vector<Index> rows;
    std::vector<Vec8> columns, images;
  };
  auto store = [n](const std::vector<Vec8>& from, Index first, float* to) {
    const Index width = std::min<Index>(8, n - first);
    for (std::size_t t = 0; t < from.size(); ++t) {
      float* const out = to + static_cast<Index>(t) * n + first;
      for (Index c = 0; c < width; ++c) out[c] = static_cast<float>(from[t].lane[c]);
    }
  };
  auto make_state = [] { return State(); };
  parallel_for(queries.size(), threads, make_state, [&](Index k, State& state) {
    const Index q = queries.first + k;
    const Index begin = (problem.offsets[q] - before) * n;
    const Index end = (problem.offsets[q + 1] - before) * n;
    if (!kernel.has_pairs(q)) {
      std::fill(rows + begin, rows + end, 0.0F);
      std::fill(images + begin, images + end, 0.0F);
      return;
    }
    gather_rows(kernel, point, q, state.rows);
    for (Index first = 0; first < n; first += 8) {
      gather_columns(X, state.rows, first, state.columns);
      kernel.hess_vec8(q, state.columns, point, state.images, state.scratch);
      store(state.columns, first, rows + begin);
      store(state.images, first, images + begin);
    }
  });
}

}  // namespace marginrank
