// Magnitudes of the features in each query.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "base/parallel.hpp"
#include "simd/rows.hpp"
#include "sweeps/blocks.hpp"

namespace marginrank {

// out[j] = sum over queries of (size[q] * the largest |x_j| in q)^2. A long query is taken in
// parts.
template <class Matrix>
void add_query_squares(const Matrix& X, const Documents& problem, const double* size, double* out,
                       int threads) {
  using T = typename Matrix::Value;
  const auto n = static_cast<std::size_t>(X.n_columns());
  const std::vector<Block> blocks = make_blocks(problem, X.bytes_per_row());
  Partials partials(blocks.size(), X.n_columns());
  auto make = [&] { return std::vector<Magnitude<T>>(n); };
  auto add = [&](Index b, std::vector<Magnitude<T>>& largest) {
    const Block& block = blocks[static_cast<std::size_t>(b)];
    double* const sums = partials[static_cast<std::size_t>(b)];
    for (Index q = block.queries.first; q < block.queries.last; ++q) {
      const Range docs{std::max(problem.offsets[q], block.documents.first),
                       std::min(problem.offsets[q + 1], block.documents.last)};
      std::fill(largest.begin(), largest.end(), 0);
      for (Index i = docs.first; i < docs.last; ++i) {
        const Index row = problem.row(i);
        X.raise_magnitudes({row, row + 1}, largest.data());
      }
      for (std::size_t j = 0; j < n; ++j) {
        const double product = size[q] * static_cast<double>(std::bit_cast<T>(largest[j]));
        sums[j] += product * product;
      }
    }
  };
  parallel_for(static_cast<Index>(blocks.size()), threads, make, add);
  partials.add_up(out);
}

}  // namespace marginrank
