// Positions of values among the knots of their feature: rows of hat functions from rows of numbers,
// and the scores of curves given by their values at the knots.
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

// Values looked up together: each comparison waits for memory, and the other look-ups fill that
// time.
constexpr int kTogether = 8;

// For each of some values, the first of ascending numbers that is larger, or their end.
// Branch-free, because values come in no predictable order.
template <int count>
void first_above(const double* from, Index n, const double (&x)[count], Index (&found)[count]) {
  for (int r = 0; r < count; ++r) found[r] = 0;
  while (n > 0) {
    const Index half = (n + 1) / 2;
    for (int r = 0; r < count; ++r) {
      found[r] += half & -static_cast<Index>(from[found[r] + half - 1] <= x[r]);
    }
    n -= half;
  }
}

constexpr Place kMissing{0, 0.0};

inline Place place_of_category(const Knots& knots, Index k, double x) {
  const double* const first = knots.at + knots.starts[k] + 1;
  const double* const last = knots.at + knots.starts[k + 1];
  const double* const found = std::lower_bound(first, last, x);
  return found != last && *found == x ? Place{found - first, 1.0} : kMissing;
}

template <int count>
void places_of(const Knots& knots, Index k, const double (&x)[count], Place (&places)[count]) {
  if (knots.categorical[k]) {
    for (int r = 0; r < count; ++r) places[r] = place_of_category(knots, k, x[r]);
    return;
  }
  const double* const first = knots.at + knots.starts[k] + 1;
  const Index n_knots = knots.starts[k + 1] - knots.starts[k] - 1;
  const bool is_constant = n_knots == 1;  // all values are that one
  Index bins[count];
  first_above<count>(first + 1, is_constant ? 0 : n_knots - 2, x, bins);
  for (int r = 0; r < count; ++r) {
    const double* const left = first + bins[r];
    const Place place =
        is_constant ? Place{0, 1.0} : Place{bins[r] + 1, (x[r] - left[0]) / (left[1] - left[0])};
    places[r] = std::isnan(x[r]) ? kMissing : place;
  }
}

inline Place place_of(const Knots& knots, Index k, double x) {
  const double values[1] = {x};
  Place places[1];
  places_of<1>(knots, k, values, places);
  return places[0];
}

// f(row, feature, place) for a feature of some rows.
template <int count, class T, class F>
void for_places_of(const Dense<T>& X, const Knots& knots, Index i, Index k, F&& f) {
  double x[count];
  Place places[count];
  for (int r = 0; r < count; ++r) x[r] = static_cast<double>(X.row(i + r)[k]);
  places_of<count>(knots, k, x, places);
  for (int r = 0; r < count; ++r) f(i + r, k, places[r]);
}

// f(row, feature, place) for all values, a few features of a few rows at a time, whose knots stay
// in cache. For one row, f is called in the order of the features.
template <class T, class F>
void for_each_place(const Dense<T>& X, const Knots& knots, int threads, F&& f) {
  constexpr Index kRows = 64, kFeatures = 16;
  for_each_row_block(X.n_rows(), threads, [&](Index, Range block) {
    for (Index i0 = block.first; i0 < block.last; i0 += kRows) {
      const Index end = std::min(i0 + kRows, block.last);
      for (Index k0 = 0; k0 < knots.n_features; k0 += kFeatures) {
        for (Index k = k0; k < std::min(k0 + kFeatures, knots.n_features); ++k) {
          Index i = i0;
          for (; i + kTogether <= end; i += kTogether) for_places_of<kTogether>(X, knots, i, k, f);
          for (; i < end; ++i) for_places_of<1>(X, knots, i, k, f);
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

// scores[i] = sum over features of the curve at x, extrapolated linearly beyond its outer knots;
// `values` has the values of all curves, by column.
template <class T>
void curve_scores(const Dense<T>& X, const Knots& knots, const double* values, double* scores,
                  int threads) {
  std::fill_n(scores, X.n_rows(), 0.0);
  for_each_place(X, knots, threads, [&](Index i, Index k, Place place) {
    const double* const left = values + knots.starts[k] + place.left;
    // A flat curve stays flat however far away the value is, although p may overflow.
    const double rise = left[1] - left[0];
    scores[i] += left[0] + (rise == 0.0 ? 0.0 : place.p * rise);
  });
}

}  // namespace marginrank
