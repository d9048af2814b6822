// Columns of X, one or several, out of storage by rows.
#pragma once

#include <vector>

#include "matrix/dense.hpp"
#include "matrix/parts.hpp"

namespace marginrank {

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

// The columns `chosen` (ascending) of a matrix that need not store all its entries.
template <class T, class I, class Matrix>
CsrArrays<T, I> take_sparse_columns(const Matrix& X, const std::vector<Index>& chosen) {
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
