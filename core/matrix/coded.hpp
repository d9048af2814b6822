// A matrix with one more categorical feature, with the operations of Dense.
//
// Behind the columns of the inner matrix is one column per category: 1 in the rows of the category,
// 0 elsewhere. A row has two more bytes, the number of its category; `width` means no category.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "matrix/csr.hpp"
#include "matrix/dense.hpp"
#include "matrix/hats.hpp"

namespace marginrank {

// A visit costs a few nanoseconds per query and operation. A template over the inner matrix would
// instead compile every sweep twice.
using Uncoded =
    std::variant<Dense<float>, Dense<double>, Csr<float, std::int32_t>, Csr<double, std::int32_t>,
                 Csr<float, std::int64_t>, Csr<double, std::int64_t>, Hats>;

class Coded {
  template <class F>
  auto visit(F&& f) const {
    return std::visit(std::forward<F>(f), inner_);
  }

 public:
  using Value = double;

  Coded(Uncoded inner, const std::uint16_t* codes, Index width)
      : inner_(std::move(inner)),
        codes_(codes),
        width_(width),
        n_inner_(visit([](const auto& X) { return X.n_columns(); })) {}

  const Uncoded& inner() const { return inner_; }
  const std::uint16_t* codes() const { return codes_; }
  Index n_inner() const { return n_inner_; }

  Index n_rows() const {
    return visit([](const auto& X) { return X.n_rows(); });
  }
  Index n_columns() const { return n_inner_ + width_; }
  Index n_entries() const {
    return visit([](const auto& X) { return X.n_entries(); }) + n_rows();
  }
  bool is_dense() const {
    return visit([](const auto& X) { return X.is_dense(); });
  }
  double bytes_per_row() const {
    return visit([](const auto& X) { return X.bytes_per_row(); }) + sizeof *codes_;
  }

  Index entries(const Index* rows, Range range) const {
    return visit([&](const auto& X) { return X.entries(rows, range); }) + range.size();
  }

  double sum_rows(Range rows) const {
    double s = visit([&](const auto& X) { return X.sum_rows(rows); });
    for (Index i = rows.first; i < rows.last; ++i) s += codes_[i] < width_;
    return s;
  }

  void raise_magnitudes(Range rows, Magnitude<double>* largest) const {
    for (Index i = rows.first; i < rows.last; ++i) {
      for_each(i, 0, n_columns(),
               [&](Index j, double x) { largest[j] = std::max(largest[j], magnitude(x)); });
    }
  }

  template <class F>
  void for_each(Index i, Index first, Index last, F&& f) const {
    if (first < n_inner_) {
      visit([&](const auto& X) { X.for_each(i, first, std::min(last, n_inner_), f); });
    }
    const Index j = n_inner_ + codes_[i];
    if (first <= j && j < last && codes_[i] < width_) f(j, 1.0);
  }

  void dots(const Index* rows, Range range, const double* v, double* u) const {
    visit([&](const auto& X) { X.dots(rows, range, v, u); });
    add_effects(rows, range, v, u);
  }

  void accumulate_then_dots(const Index* rows, Range range, const double* z, double* out,
                            Range next, const double* v, double* u) const {
    visit([&](const auto& X) { X.accumulate_then_dots(rows, range, z, out, next, v, u); });
    add_slopes(rows, range, z + range.first, out);
    add_effects(rows, next, v, u);
  }

  void dots_of_many(const Index* rows, Range range, Index stop, const double* const* v, Index count,
                    double* const* u) const {
    visit([&](const auto& X) { X.dots_of_many(rows, range, stop, v, count, u); });
    for (Index k = 0; k < count; ++k) add_effects(rows, range, v[k], u[k]);
  }

  void accumulate_many(const Index* rows, Range range, const double* const* z, Index count,
                       double* const* out) const {
    visit([&](const auto& X) { X.accumulate_many(rows, range, z, count, out); });
    for (Index k = 0; k < count; ++k) add_slopes(rows, range, z[k], out[k]);
  }

  void rank_update(const std::vector<Index>& rows, Index first, const Vec8* values,
                   Vec8* block) const {
    if (first < n_inner_) {
      visit([&](const auto& X) { X.rank_update(rows, first, values, block); });
    }
    for (std::size_t t = 0; t < rows.size(); ++t) {
      const Index j = n_inner_ + codes_[rows[t]];
      if (j < first || codes_[rows[t]] >= width_) continue;
      for (int c = 0; c < 8; ++c) block[j].lane[c] += values[t].lane[c];
    }
  }

  std::vector<Index> split_columns(int parts) const {
    std::vector<Index> bounds = visit([&](const auto& X) { return X.split_columns(parts); });
    bounds.back() = n_columns();
    return bounds;
  }

 private:
  void add_effects(const Index* rows, Range range, const double* v, double* u) const {
    for (Index i = range.first; i < range.last; ++i) {
      const std::uint16_t code = codes_[rows ? rows[i] : i];
      if (code < width_) u[i] += v[n_inner_ + code];
    }
  }

  void add_slopes(const Index* rows, Range range, const double* z, double* out) const {
    for (Index i = range.first; i < range.last; ++i) {
      const std::uint16_t code = codes_[rows ? rows[i] : i];
      if (code < width_) out[n_inner_ + code] += z[i - range.first];
    }
  }

  Uncoded inner_;
  const std::uint16_t* codes_;
  Index width_, n_inner_;
};

}  // namespace marginrank
