// Where values lie among the knots of their feature: rows of hat functions from rows of numbers,
// and the scores of curves that are given at the knots.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "matrix/dense.hpp"
#include "matrix/hats.hpp"
#include "matrix/parts.hpp"

namespace marginrank {

// Columns as in Hats: `at` has the knots of each feature in ascending order, after one entry that
// is not used. The knots of a feature of categories are the values that it takes.
struct Knots {
  const double* at;
  const Index* starts;
  const std::uint8_t* categorical;
  Index n_features;
};

// A column of a feature, and how far it is from there to the next: beyond the outer knots less than
// zero, or more than one.
struct Place {
  Index left;
  double p;
};

// The first of some ascending numbers that is larger than x, or their end. Without a branch, as
// values come in no order that a processor could guess.
inline const double* first_above(const double* from, const double* end, double x) {
  auto n = end - from;
  while (n > 0) {
    const auto half = (n + 1) / 2;
    from += half * static_cast<Index>(from[half - 1] <= x);
    n -= half;
  }
  return from;
}

inline Place place_of(const Knots& knots, Index k, double x) {
  constexpr Place kMissing{0, 0.0};
  const double* const first = knots.at + knots.starts[k] + 1;
  const double* const last = knots.at + knots.starts[k + 1];
  if (std::isnan(x)) return kMissing;
  if (knots.categorical[k]) {
    const double* const found = std::lower_bound(first, last, x);
    return found != last && *found == x ? Place{found - first, 1.0} : kMissing;
  }
  if (last - first == 1) return {0, 1.0};  // a constant: all values are that one
  const double* const right = first_above(first + 1, last - 1, x);
  return {right - first, (x - right[-1]) / (right[0] - right[-1])};
}

// f(row, feature, place) for all values, a few features of a few rows at a time, whose knots stay
// in cache. What f is told of one row comes in the order of the features.
template <class T, class F>
void for_each_place(const Dense<T>& X, const Knots& knots, int threads, F&& f) {
  constexpr Index kRows = 64, kFeatures = 16;
  for_each_row_block(X.n_rows(), threads, [&](Index, Range block) {
    for (Index i0 = block.first; i0 < block.last; i0 += kRows) {
      for (Index k0 = 0; k0 < knots.n_features; k0 += kFeatures) {
        for (Index i = i0; i < std::min(i0 + kRows, block.last); ++i) {
          for (Index k = k0; k < std::min(k0 + kFeatures, knots.n_features); ++k) {
            f(i, k, place_of(knots, k, static_cast<double>(X.row(i)[k])));
          }
        }
      }
    }
  });
}

// Codes and steps of Hats, where p is rounded, and values beyond the outer knots are put on them.
template <class T>
void encode(const Dense<T>& X, const Knots& knots, std::uint8_t* codes, std::uint16_t* steps,
            int threads) {
  for_each_place(X, knots, threads, [&](Index i, Index k, Place place) {
    const double p = std::clamp(place.p, 0.0, 1.0);
    codes[i * knots.n_features + k] = static_cast<std::uint8_t>(place.left);
    steps[i * knots.n_features + k] = static_cast<std::uint16_t>(p * kWholeStep + 0.5);
  });
}

// scores[i] = sum over features of the curve at x, which goes on straight beyond its outer knots;
// `values` has those of all curves, by column.
template <class T>
void curve_scores(const Dense<T>& X, const Knots& knots, const double* values, double* scores,
                  int threads) {
  std::fill_n(scores, X.n_rows(), 0.0);
  for_each_place(X, knots, threads, [&](Index i, Index k, Place place) {
    const double* const left = values + knots.starts[k] + place.left;
    scores[i] += left[0] + place.p * (left[1] - left[0]);
  });
}

}  // namespace marginrank
