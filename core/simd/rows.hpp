// Kernels on the rows of a dense matrix.
#pragma once

#include <type_traits>

#include "base/types.hpp"

namespace marginrank {

// Rows of a dense matrix in document order: document i is row rows[i], or row i without `rows`.
template <class T>
struct DenseRows {
  const T* data;
  Index stride;
  Index n_columns;
  const Index* rows;

  MARGINRANK_INLINE const T* operator[](Index i) const {
    return data + (rows ? rows[i] : i) * stride;
  }
};

// |x| as an integer of the same order. Infinities and then NaN come last.
template <class T>
using Magnitude = std::conditional_t<sizeof(T) == sizeof(float), std::int32_t, std::int64_t>;

template <class T>
MARGINRANK_INLINE Magnitude<T> magnitude(T x) {
  constexpr auto without_sign = static_cast<Magnitude<T>>(~0ULL >> (65 - 8 * sizeof(T)));
  Magnitude<T> bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits & without_sign;
}

// For the values of one type.
template <class T>
struct RowKernels {
  double (*sum)(const T* x, Index count);

  // largest[j] = max(largest[j], |x[j]|), as magnitudes.
  void (*raise_magnitudes)(const T* x, Index count, Magnitude<T>* largest);

  // u[i] = x_i . v for the documents of `range`; u is indexed by document.
  void (*dots)(const DenseRows<T>& X, Range range, const double* v, double* u);

  // out += sum of z[i] x_i over `range`, then u[i] = x_i . v over `next`, which may be empty. The
  // rows of `range` are in cache while the rows of `next` come from memory: doing both at once
  // keeps the memory busy while the processor computes.
  void (*accumulate_then_dots)(const DenseRows<T>& X, Range range, const double* z, double* out,
                               Range next, const double* v, double* u);

  // u[k][i] = x_i . v[k] for the documents of `range` and k < count. Rows beyond the range that
  // come before `stop` are prefetched. The result for one k does not depend on the others.
  void (*dots_of_many)(const DenseRows<T>& X, Range range, Index stop, const double* const* v,
                       Index count, double* const* u);

  // out[k] += sum of z[k][i - range.first] x_i over the documents of `range`, for k < count. The
  // result for one k does not depend on the others.
  void (*accumulate_many)(const DenseRows<T>& X, Range range, const double* const* z, Index count,
                          double* const* out);

  // block[a] += sum over documents i of x[i][a] * values[i], for a in [first, n): the share of
  // `count` documents in eight columns of a Hessian.
  void (*rank_update)(const T* const* x, Index count, Index first, Index n, const Vec8* values,
                      Vec8* block);
};

struct DenseKernels {
  RowKernels<float> float32;
  RowKernels<double> float64;
};

}  // namespace marginrank
