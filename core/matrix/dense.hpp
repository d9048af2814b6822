// A dense feature matrix by rows. Dense and Csr offer the same few operations on documents, so
// every sweep is written once.
#pragma once

#include <vector>

#include "simd/simd.hpp"

namespace marginrank {

template <class T>
class Dense {
 public:
  using Value = T;

  Dense(const T* data, Index n_rows, Index n_columns, Index stride)
      : data_(data), n_rows_(n_rows), n_columns_(n_columns), stride_(stride) {}

  Index n_rows() const { return n_rows_; }
  Index n_columns() const { return n_columns_; }
  Index n_entries() const { return n_rows_ * n_columns_; }
  bool is_dense() const { return true; }
  double bytes_per_row() const {
    return static_cast<double>(sizeof(T)) * static_cast<double>(n_columns_);
  }

  const T* row(Index i) const { return data_ + i * stride_; }

  // Stored entries of the documents of a range.
  Index entries(const Index*, Range range) const { return range.size() * n_columns_; }

  double sum_rows(Range rows) const {
    double s = 0;
    for (Index i = rows.first; i < rows.last; ++i) s += simd().rows<T>().sum(row(i), n_columns_);
    return s;
  }

  void raise_magnitudes(Range rows, Magnitude<T>* largest) const {
    for (Index i = rows.first; i < rows.last; ++i) {
      simd().rows<T>().raise_magnitudes(row(i), n_columns_, largest);
    }
  }

  // Calls f(column, value) for the stored entries of a row with first <= column < last.
  template <class F>
  void for_each(Index i, Index first, Index last, F&& f) const {
    const T* x = row(i);
    for (Index j = first; j < last; ++j) f(j, static_cast<double>(x[j]));
  }

  void dots(const Index* rows, Range range, const double* v, double* u) const {
    simd().rows<T>().dots(view(rows), range, v, u);
  }

  void accumulate_then_dots(const Index* rows, Range range, const double* z, double* out,
                            Range next, const double* v, double* u) const {
    simd().rows<T>().accumulate_then_dots(view(rows), range, z, out, next, v, u);
  }

  // The same for several vectors at once: see RowKernels.
  void dots_of_many(const Index* rows, Range range, Index stop, const double* const* v, Index count,
                    double* const* u) const {
    simd().rows<T>().dots_of_many(view(rows), range, stop, v, count, u);
  }

  void accumulate_many(const Index* rows, Range range, const double* const* z, Index count,
                       double* const* out) const {
    simd().rows<T>().accumulate_many(view(rows), range, z, count, out);
  }

  // block[a] += sum over the given rows of x_a * values, for columns a from `first` on.
  void rank_update(const std::vector<Index>& rows, Index first, const Vec8* values,
                   Vec8* block) const {
    std::vector<const T*> x;
    x.reserve(rows.size());
    for (const Index i : rows) x.push_back(row(i));
    simd().rows<T>().rank_update(x.data(), static_cast<Index>(x.size()), first, n_columns_, values,
                                 block);
  }

  // Boundaries that give each of `parts` column ranges about the same work.
  std::vector<Index> split_columns(int parts) const {
    std::vector<Index> bounds;
    for (int p = 0; p <= parts; ++p) bounds.push_back(n_columns_ * p / parts);
    return bounds;
  }

 private:
  DenseRows<T> view(const Index* rows) const { return {data_, stride_, n_columns_, rows}; }

  const T* data_;
  Index n_rows_, n_columns_, stride_;
};

}  // namespace marginrank
