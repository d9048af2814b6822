// Statistics of the entries of X: their sum, and the largest magnitude in each column.
#pragma once

#include <algorithm>
#include <bit>
#include <mutex>
#include <numeric>
#include <vector>

#include "matrix/parts.hpp"
#include "simd/rows.hpp"

namespace marginrank {

// The sum of all entries.
template <class Matrix>
double sum(const Matrix& X, int threads) {
  std::vector<double> part(static_cast<std::size_t>(X.n_rows() / kSmallBlock + kBlocks + 1));
  for_each_row_block(X.n_rows(), threads, [&](Index b, Range rows) { part[b] = X.sum_rows(rows); });
  return std::accumulate(part.begin(), part.end(), 0.0);
}

// The largest |x| of each column; NaN or infinite if an entry is. One sweep.
template <class Matrix>
std::vector<double> magnitudes(const Matrix& X, int threads) {
  using T = typename Matrix::Value;
  const auto n = static_cast<std::size_t>(X.n_columns());
  std::vector<Magnitude<T>> largest(n, 0);
  std::mutex merging;
  // The maxima of one thread, merged when it is done: a maximum does not depend on the order.
  struct Seen {
    std::vector<Magnitude<T>>* all;
    std::mutex* merging;
    std::vector<Magnitude<T>> own;

    Seen(std::vector<Magnitude<T>>& result, std::mutex& mutex)
        : all(&result), merging(&mutex), own(result.size(), 0) {}
    Seen(Seen&&) = default;
    ~Seen() {
      const std::lock_guard lock(*merging);
      for (std::size_t j = 0; j < own.size(); ++j) (*all)[j] = std::max((*all)[j], own[j]);
    }
  };
  for_each_row_block(
      X.n_rows(), threads, [&] { return Seen(largest, merging); },
      [&](Index, Range rows, Seen& seen) { X.raise_magnitudes(rows, seen.own.data()); });
  std::vector<double> result(n);
  for (std::size_t j = 0; j < n; ++j) result[j] = static_cast<double>(std::bit_cast<T>(largest[j]));
  return result;
}

}  // namespace marginrank
