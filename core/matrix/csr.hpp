// A sparse feature matrix by rows, with the operations of Dense.
#pragma once

#include <algorithm>
#include <vector>

#include "simd/simd.hpp"

namespace marginrank {

// Indices are sorted and unique in each row.
template <class T, class I>
class Csr {
 public:
  using Value = T;

  Csr(const T* data, const I* indices, const I* indptr, Index n_rows, Index n_columns)
      : data_(data), indices_(indices), indptr_(indptr), n_rows_(n_rows), n_columns_(n_columns) {}

  Index n_rows() const { return n_rows_; }
  Index n_columns() const { return n_columns_; }
  Index n_entries() const { return indptr_[n_rows_]; }
  bool is_dense() const { return false; }
  double bytes_per_row() const {
    const double nnz = static_cast<double>(indptr_[n_rows_]);
    return (sizeof(T) + sizeof(I)) * nnz / static_cast<double>(std::max<Index>(n_rows_, 1));
  }

  Index entries(const Index* rows, Range range) const {
    Index total = 0;
    for (Index i = range.first; i < range.last; ++i) {
      const Index row = rows ? rows[i] : i;
      total += indptr_[row + 1] - indptr_[row];
    }
    return total;
  }

  double sum_rows(Range rows) const {
    return simd().rows<T>().sum(data_ + indptr_[rows.first],
                                indptr_[rows.last] - indptr_[rows.first]);
  }

  void raise_magnitudes(Range rows, Magnitude<T>* largest) const {
    for (I k = indptr_[rows.first]; k < indptr_[rows.last]; ++k) {
      largest[indices_[k]] = std::max(largest[indices_[k]], magnitude(data_[k]));
    }
  }

  template <class F>
  void for_each(Index i, Index first, Index last, F&& f) const {
    const I* const row_end = indices_ + indptr_[i + 1];
    const I* p = indices_ + indptr_[i];
    if (first > 0) p = std::lower_bound(p, row_end, static_cast<I>(first));
    for (; p != row_end && *p < last; ++p) f(*p, static_cast<double>(data_[p - indices_]));
  }

  void dots(const Index* rows, Range range, const double* v, double* u) const {
    for (Index i = range.first; i < range.last; ++i) {
      const Index row = rows ? rows[i] : i;
      double s = 0;
      for (I k = indptr_[row]; k < indptr_[row + 1]; ++k) {
        s += static_cast<double>(data_[k]) * v[indices_[k]];
      }
      u[i] = s;
    }
  }

  void accumulate_then_dots(const Index* rows, Range range, const double* z, double* out,
                            Range next, const double* v, double* u) const {
    for (Index i = range.first; i < range.last; ++i) {
      add_row(rows ? rows[i] : i, z[i], out);
    }
    dots(rows, next, v, u);
  }

  // A row stays in cache for all vectors. Four sums at a time hide the latency of each addition.
  void dots_of_many(const Index* rows, Range range, Index, const double* const* v, Index count,
                    double* const* u) const {
    for (Index i = range.first; i < range.last; ++i) {
      Index k = 0;
      for (; k + 4 <= count; k += 4) dots_of<4>(rows ? rows[i] : i, v + k, i, u + k);
      for (; k < count; ++k) dots_of<1>(rows ? rows[i] : i, v + k, i, u + k);
    }
  }

  void accumulate_many(const Index* rows, Range range, const double* const* z, Index count,
                       double* const* out) const {
    for (Index k = 0; k < count; ++k) {
      for (Index i = range.first; i < range.last; ++i) {
        add_row(rows ? rows[i] : i, z[k][i - range.first], out[k]);
      }
    }
  }

  void rank_update(const std::vector<Index>& rows, Index first, const Vec8* values,
                   Vec8* block) const {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for_each(rows[i], first, n_columns_, [&](Index j, double x) {
        for (int c = 0; c < 8; ++c) block[j].lane[c] += x * values[i].lane[c];
      });
    }
  }

  // Popular columns tend to stand together, so the boundaries are quantiles of a sample of entries.
  std::vector<Index> split_columns(int parts) const {
    constexpr Index kSample = 4096;
    const Index nnz = indptr_[n_rows_];
    const Index step = std::max<Index>(nnz / kSample, 1);
    std::vector<Index> sample;
    for (Index k = 0; k < nnz; k += step) sample.push_back(indices_[k]);
    std::sort(sample.begin(), sample.end());
    std::vector<Index> bounds{0};
    for (int p = 1; p < parts; ++p) {
      const std::size_t at = sample.size() * static_cast<std::size_t>(p) / parts;
      bounds.push_back(sample.empty() ? 0 : sample[at]);
    }
    bounds.push_back(n_columns_);
    return bounds;
  }

 private:
  void add_row(Index row, double z, double* out) const {
    for (I k = indptr_[row]; k < indptr_[row + 1]; ++k) {
      out[indices_[k]] += static_cast<double>(data_[k]) * z;
    }
  }

  template <Index vectors>
  void dots_of(Index row, const double* const* v, Index i, double* const* u) const {
    double s[vectors] = {};
    for (I entry = indptr_[row]; entry < indptr_[row + 1]; ++entry) {
      const auto x = static_cast<double>(data_[entry]);
      for (Index k = 0; k < vectors; ++k) s[k] += x * v[k][indices_[entry]];
    }
    for (Index k = 0; k < vectors; ++k) u[k][i] = s[k];
  }

  const T* data_;
  const I* indices_;
  const I* indptr_;
  Index n_rows_, n_columns_;
};

}  // namespace marginrank
