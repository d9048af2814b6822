// Products of the Hessian in score space with the columns of X, eight at a time.
#pragma once

#include <algorithm>
#include <vector>

#include "base/parallel.hpp"
#include "pairs/scratch.hpp"

namespace marginrank {

// Rows of X of a query's documents, in the order of the kernel.
template <class Kernel>
void gather_rows(const Kernel& kernel, const typename Kernel::Point& point, Index q,
                 std::vector<Index>& rows) {
  const Index size = kernel.problem().documents(q).size();
  rows.resize(static_cast<std::size_t>(size));
  for (Index t = 0; t < size; ++t) {
    rows[t] = kernel.problem().row(kernel.document(q, t, point));
  }
}

// Eight columns of the given rows, minus the first row: H maps constants to zero, and subtracting
// a common offset keeps it from costing digits.
template <class Matrix>
void gather_columns(const Matrix& X, const std::vector<Index>& rows, Index first,
                    std::vector<Vec8>& columns) {
  const Index last = std::min(first + 8, X.n_columns());
  columns.assign(rows.size(), Vec8{});
  for (std::size_t t = 0; t < rows.size(); ++t) {
    X.for_each(rows[t], first, last, [&](Index j, double x) { columns[t].lane[j - first] = x; });
  }
  const Vec8 offset = columns[0];
  for (Vec8& row : columns) {
    for (int c = 0; c < 8; ++c) row.lane[c] -= offset.lane[c];
  }
}

// For each group of eight columns of X: `state` = begin(), then f(state, first column, rows,
// columns, H columns) for each query, then end(state, first column). A group belongs to one thread.
template <class Matrix, class Kernel, class Begin, class F, class End>
void for_each_column_group(const Matrix& X, const Kernel& kernel,
                           const typename Kernel::Point& point, int threads, Begin&& begin, F&& f,
                           End&& end) {
  const auto& problem = kernel.problem();
  const Index n_groups = (X.n_columns() + 7) / 8;
  struct State {
    Scratch scratch;
    std::vector<Index> rows;
    std::vector<Vec8> columns, images;
  };
  auto make_state = [] { return State(); };
  parallel_for(n_groups, threads, make_state, [&](Index g, State& thread) {
    auto state = begin();
    for (Index q = 0; q < problem.n_queries; ++q) {
      if (!kernel.has_pairs(q)) continue;
      gather_rows(kernel, point, q, thread.rows);
      gather_columns(X, thread.rows, 8 * g, thread.columns);
      kernel.hess_vec8(q, thread.columns, point, thread.images, thread.scratch);
      f(state, 8 * g, thread.rows, thread.columns, thread.images);
    }
    end(state, 8 * g);
  });
}

}  // namespace marginrank
