// The parts of X that threads take one by one: blocks of rows, ranges of columns.
#pragma once

#include <algorithm>
#include <vector>

#include "base/parallel.hpp"

namespace marginrank {

constexpr Index kBlocks = 64;       // about as many as a sweep is cut into
constexpr Index kSmallBlock = 512;  // documents; less is not worth a task

// f(block, rows, state) for blocks of rows that depend on their number alone; each thread has a
// state of its own, made by make().
template <class Make, class F>
void for_each_row_block(Index n_rows, int threads, Make&& make, F&& f) {
  const Index size = std::max(n_rows / kBlocks, kSmallBlock);
  const Index n_blocks = (n_rows + size - 1) / size;
  parallel_for(n_blocks, threads, make, [&](Index b, auto& state) {
    f(b, Range{b * size, std::min((b + 1) * size, n_rows)}, state);
  });
}

template <class F>
void for_each_row_block(Index n_rows, int threads, F&& f) {
  for_each_row_block(
      n_rows, threads, [] { return 0; }, [&](Index b, Range rows, int) { f(b, rows); });
}

// f(lower, upper) for ranges of columns of about the same work. Each costs a search in every row.
template <class Matrix, class F>
void for_each_column_range(const Matrix& X, int n_ranges, int threads, F&& f) {
  const std::vector<Index> bounds = X.split_columns(n_ranges);
  parallel_for(n_ranges, threads, [&](Index k) { f(bounds[k], bounds[k + 1]); });
}

}  // namespace marginrank
