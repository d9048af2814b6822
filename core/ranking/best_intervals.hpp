// Maxima of a ranking metric along a line of weights, where it is piecewise constant.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "base/types.hpp"

namespace marginrank {

// Positions on the line at which the metric of a query changes, ascending, between 0 and 1.
struct MetricChanges {
  std::span<const double> position, change;
  std::span<const Index> query;
  std::span<const double> start;  // metric of each query at position 0
};

struct BestInterval {
  double middle, value;
};

// The widest interval on which the weighted sum over queries is maximal. Values that differ by
// `rounding` are equal. Intervals up to `narrowest` are rounding errors of equal positions.
// `values` is a buffer.
inline BestInterval best_interval(const MetricChanges& along, const double* query_weight,
                                  double narrowest, double rounding, std::vector<double>& values) {
  const std::size_t n = along.position.size();
  const auto left = [&](std::size_t k) { return k == 0 ? 0.0 : along.position[k - 1]; };
  const auto right = [&](std::size_t k) { return k == n ? 1.0 : along.position[k]; };
  double start = 0.0;
  for (std::size_t q = 0; q < along.start.size(); ++q) start += along.start[q] * query_weight[q];
  values.resize(n + 1);
  double changed = 0.0, top = -std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k <= n; ++k) {
    if (k > 0) changed += along.change[k - 1] * query_weight[along.query[k - 1]];
    values[k] = start + changed;
    if (right(k) - left(k) > narrowest) top = std::max(top, values[k]);
  }
  BestInterval best{0.5, top};
  double widest = 0.0, from = 0.0;
  bool inside = false;  // whether the previous wide interval was maximal
  for (std::size_t k = 0; k <= n; ++k) {
    if (right(k) - left(k) <= narrowest) continue;
    const bool maximal = values[k] >= top - rounding;
    if (maximal && !inside) from = left(k);
    if (maximal && right(k) - from > widest) {
      widest = right(k) - from;
      best.middle = (from + right(k)) / 2.0;
    }
    inside = maximal;
  }
  return best;
}

}  // namespace marginrank
