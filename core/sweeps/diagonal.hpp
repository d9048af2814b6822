// The diagonal of X' H X, where H is the Hessian in score space.
#pragma once

#include <algorithm>
#include <vector>

#include "matrix/parts.hpp"
#include "pairs/sparse_quadratic.hpp"
#include "sweeps/column_groups.hpp"

namespace marginrank {

// Dense rows: every column takes part in every query.
template <class Matrix, class Kernel>
void dense_hess_diag(const Matrix& X, const Kernel& kernel, const typename Kernel::Point& point,
                     double* diag, int threads) {
  auto begin = [] { return Vec8{}; };
  auto update = [](Vec8& sums, Index, const std::vector<Index>& rows,
                   const std::vector<Vec8>& columns, const std::vector<Vec8>& images) {
    for (std::size_t t = 0; t < rows.size(); ++t) {
      for (int c = 0; c < 8; ++c) sums.lane[c] += columns[t].lane[c] * images[t].lane[c];
    }
  };
  auto end = [&](const Vec8& sums, Index first) {
    std::copy_n(sums.lane, std::min<Index>(8, X.n_columns() - first), diag + first);
  };
  for_each_column_group(X, kernel, point, threads, begin, update, end);
}

// Sparse rows: each range of columns belongs to one thread, which gathers their entries query by
// query.
template <class Matrix, class Kernel>
void sparse_hess_diag(const Matrix& X, const Kernel& kernel, const typename Kernel::Point& point,
                      double* diag, int threads) {
  const auto& problem = kernel.problem();
  const int n_ranges = threads == 1 ? 1 : 4 * threads;  // so that a slow thread gets fewer
  for_each_column_range(X, n_ranges, threads, [&](Index lower, Index upper) {
    std::fill(diag + lower, diag + std::max(lower, upper), 0.0);
    auto quadratic = sparse_quadratic(kernel, point);
    std::vector<ColumnEntry> entries;
    for (Index q = 0; q < problem.n_queries; ++q) {
      if (!kernel.has_pairs(q)) continue;
      entries.clear();
      for (Position t = 0; t < problem.documents(q).size(); ++t) {
        X.for_each(problem.row(kernel.document(q, t, point)), lower, upper,
                   [&](Index j, double x) { entries.push_back({j, t, x}); });
      }
      std::sort(entries.begin(), entries.end(), [](const ColumnEntry& a, const ColumnEntry& b) {
        return a.column != b.column ? a.column < b.column : a.position < b.position;
      });
      const auto size = static_cast<Index>(entries.size());
      for (Index a = 0, b; a < size; a = b) {
        for (b = a + 1; b < size && entries[b].column == entries[a].column;) ++b;
        diag[entries[a].column] += quadratic(q, entries.data() + a, b - a);
      }
    }
  });
}

template <class Matrix, class Kernel>
void hess_diag(const Matrix& X, const Kernel& kernel, const typename Kernel::Point& point,
               double* diag, int threads) {
  if (X.is_dense()) {
    dense_hess_diag(X, kernel, point, diag, threads);
  } else {
    sparse_hess_diag(X, kernel, point, diag, threads);
  }
}

}  // namespace marginrank
