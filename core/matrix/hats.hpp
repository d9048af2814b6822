// A matrix of hat functions, with the operations of Dense.
//
// Every feature has columns: one for missing values, then one for each of its knots. A value
// between two knots has the entries 1 - p and p in their columns, where p is its relative position
// between them; all other entries of the feature are zero. A product with v is then a look-up in
// the part of v that belongs to the feature, and the matrix takes three bytes per value: one for
// the left column, two for p.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simd/simd.hpp"

namespace marginrank {

constexpr Index kWidestFeature = 256;  // columns, because the left one is stored in a byte

class Hats {
 public:
  using Value = float;

  // `starts` are the first columns of the features, and the number of columns.
  Hats(const std::uint8_t* codes, const std::uint16_t* steps, const Index* starts, Index n_rows,
       Index n_features)
      : codes_(codes), steps_(steps), starts_(starts), n_rows_(n_rows), n_features_(n_features) {}

  Index n_rows() const { return n_rows_; }
  Index n_columns() const { return starts_[n_features_]; }
  Index n_entries() const { return 2 * n_rows_ * n_features_; }
  bool is_dense() const { return false; }
  double bytes_per_row() const {
    constexpr auto kBytes = static_cast<double>(sizeof *codes_ + sizeof *steps_);
    return kBytes * static_cast<double>(n_features_);
  }

  Index entries(const Index*, Range range) const { return 2 * range.size() * n_features_; }

  // The entries of a value sum to one.
  double sum_rows(Range rows) const { return static_cast<double>(rows.size() * n_features_); }

  void raise_magnitudes(Range rows, Magnitude<float>* largest) const {
    for (Index i = rows.first; i < rows.last; ++i) {
      for_each(i, 0, n_columns(), [&](Index j, double x) {
        largest[j] = std::max(largest[j], magnitude(static_cast<float>(x)));
      });
    }
  }

  template <class F>
  void for_each(Index i, Index first, Index last, F&& f) const {
    const std::uint8_t* const codes = codes_ + i * n_features_;
    const std::uint16_t* const steps = steps_ + i * n_features_;
    const Index* const start = std::upper_bound(starts_, starts_ + n_features_, first) - 1;
    for (Index k = start - starts_; k < n_features_ && starts_[k] < last; ++k) {
      const Index left = starts_[k] + codes[k];
      const double p = kStep * steps[k];
      if (first <= left && left < last) f(left, 1.0 - p);
      if (first <= left + 1 && left + 1 < last) f(left + 1, p);
    }
  }

  void dots(const Index* rows, Range range, const double* v, double* u) const {
    simd().hats.dots(view(rows), range, v, u);
  }

  void accumulate_then_dots(const Index* rows, Range range, const double* z, double* out,
                            Range next, const double* v, double* u) const {
    simd().hats.accumulate(view(rows), range, z + range.first, out);
    dots(rows, next, v, u);
  }

  void dots_of_many(const Index* rows, Range range, Index, const double* const* v, Index count,
                    double* const* u) const {
    for (Index k = 0; k < count; ++k) dots(rows, range, v[k], u[k]);
  }

  void accumulate_many(const Index* rows, Range range, const double* const* z, Index count,
                       double* const* out) const {
    for (Index k = 0; k < count; ++k) simd().hats.accumulate(view(rows), range, z[k], out[k]);
  }

  void rank_update(const std::vector<Index>& rows, Index first, const Vec8* values,
                   Vec8* block) const {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for_each(rows[i], first, n_columns(), [&](Index j, double x) {
        for (int c = 0; c < 8; ++c) block[j].lane[c] += x * values[i].lane[c];
      });
    }
  }

  std::vector<Index> split_columns(int parts) const {
    std::vector<Index> bounds;
    for (int p = 0; p <= parts; ++p) bounds.push_back(n_columns() * p / parts);
    return bounds;
  }

 private:
  HatRows view(const Index* rows) const { return {codes_, steps_, starts_, n_features_, rows}; }

  const std::uint8_t* codes_;
  const std::uint16_t* steps_;
  const Index* starts_;
  Index n_rows_, n_features_;
};

}  // namespace marginrank
