// Columns of X, one or several, out of storage by rows.
#pragma once

#include <bit>
#include <mutex>
#include <vector>

#include "fused.hpp"

namespace marginrank {

// The largest |x| of each column; NaN or infinite if an entry is. One sweep.
template <class Matrix>
std::vector<double> magnitudes(const Matrix& X, int threads) {
  using T = typename Matrix::Value;
  const auto n = static_cast<std::size_t>(X.n_columns());
  std::vector<Magnitude<T>> largest(n, 0);
  std::mutex merging;
  // What one thread has seen, merged when it is done: a maximum does not depend on the order.
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

// out[i] = X[row of document i, j]
template <class Matrix>
void take_column(const Matrix& X, Index j, const Index* rows, Index n_documents, double* out,
                 int threads) {
  for_each_row_block(n_documents, threads, [&](Index, Range block) {
    for (Index i = block.first; i < block.last; ++i) {
      out[i] = 0.0;
      X.for_each(rows ? rows[i] : i, j, j + 1, [&](Index, double x) { out[i] = x; });
    }
  });
}

// The columns `chosen` (ascending) of a dense matrix, row by row.
template <class T>
void take_columns(const Dense<T>& X, const std::vector<Index>& chosen, T* out, int threads) {
  const auto width = static_cast<Index>(chosen.size());
  for_each_row_block(X.n_rows(), threads, [&](Index, Range block) {
    for (Index i = block.first; i < block.last; ++i) {
      const T* x = X.row(i);
      for (Index c = 0; c < width; ++c) out[i * width + c] = x[chosen[c]];
    }
  });
}

template <class T, class I>
struct CsrArrays {
  std::vector<T> data;
  std::vector<I> indices, indptr;
};

// The columns `chosen` (ascending) of a sparse matrix.
template <class T, class I>
CsrArrays<T, I> take_columns(const Csr<T, I>& X, const std::vector<Index>& chosen) {
  constexpr I kAbsent = -1;
  std::vector<I> place(static_cast<std::size_t>(X.n_columns()), kAbsent);
  for (std::size_t c = 0; c < chosen.size(); ++c) place[chosen[c]] = static_cast<I>(c);
  CsrArrays<T, I> result;
  result.indptr.reserve(static_cast<std::size_t>(X.n_rows()) + 1);
  result.indptr.push_back(0);
  for (Index i = 0; i < X.n_rows(); ++i) {
    X.for_each(i, 0, X.n_columns(), [&](Index j, double x) {
      if (place[j] == kAbsent) return;
      result.data.push_back(static_cast<T>(x));
      result.indices.push_back(place[j]);
    });
    result.indptr.push_back(static_cast<I>(result.data.size()));
  }
  return result;
}

}  // namespace marginrank
