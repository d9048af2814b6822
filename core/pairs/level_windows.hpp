// The documents of a query in the order of their scores, and the windows that their active pairs
// reach into.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "pairs/level_pairs.hpp"
#include "pairs/scratch.hpp"

namespace marginrank {

enum class Keys { centred, as_they_are };

// Midpoint of the lowest and the highest key, in any order.
template <class Key>
double middle(std::size_t m, Key&& key) {
  double low = key(0), high = low;
  for (std::size_t i = 1; i < m; ++i) {
    const double k = key(static_cast<Position>(i));
    low = std::min(low, k);
    high = std::max(high, k);
  }
  return 0.5 * low + 0.5 * high;
}

// Fills scratch.key with the sorted scores, centered: pairs see differences only, and small numbers
// lose fewer digits. The center does not depend on the initial order, so neither do the last
// digits. Returns false if a score is not finite.
template <Keys keys>
bool sort_scores(const PairProblem& problem, Index q, const double* s, PairPoint& point,
                 Scratch& scratch) {
  const Range docs = problem.documents(q);
  const auto m = static_cast<std::size_t>(docs.size());
  const double* margin = problem.margin ? problem.margin + docs.first : nullptr;
  Position* order = point.order.at(docs.first);
  auto key = [&](Position i) { return margin ? s[i] - margin[i] : s[i]; };
  const double origin = keys == Keys::centred ? middle(m, key) : 0.0;
  double finite = 0;
  scratch.sorter.entries.resize(m);
  for (std::size_t t = 0; t < m; ++t) {
    const double k = key(order[t]) - origin;
    scratch.sorter.entries[t] = {k, order[t]};
    finite += k * 0.0;
  }
  if (finite != 0.0) return false;  // also true for NaN
  scratch.sorter.sort();
  scratch.key.resize(m);
  const Level* level = problem.level + docs.first;
  for (std::size_t t = 0; t < m; ++t) {
    scratch.key[t] = scratch.sorter.entries[t].key;
    order[t] = scratch.sorter.entries[t].document;
    point.level[docs.first + static_cast<Index>(t)] = level[order[t]];
  }
  return true;
}

// A pair (i, j) is active when s_i < s_j + theta. `begin` follows from `end`, not from a second
// comparison, so both sides agree on every pair, whatever the rounding.
inline void find_windows(double theta, const std::vector<double>& key, Position* end,
                         Position* begin) {
  const auto m = static_cast<Position>(key.size());
  Position e = 0;
  for (Position t = 0; t < m; ++t) {
    const double limit = key[t] + theta;
    while (e < m && key[e] < limit) ++e;
    end[t] = e;
  }
  // begin[t] is the number of positions whose end is at most t.
  std::fill_n(begin, m, 0);
  for (Position t = 0; t < m && end[t] < m; ++t) ++begin[end[t]];
  std::partial_sum(begin, begin + m, begin);
}

// No active pairs at all, for scores that are not finite.
inline void blank_windows(const PairProblem& problem, Range docs, PairPoint& point) {
  for (Index piece = 0; piece < problem.n_curved(); ++piece) {
    const Index at = piece * problem.n_documents() + docs.first;
    std::fill_n(point.end.at(at), docs.size(), 0);
    std::fill_n(point.begin.at(at), docs.size(), static_cast<Position>(docs.size()));
  }
  std::fill_n(point.level.at(docs.first), docs.size(), 0);
  std::fill_n(point.curvature.at(docs.first), docs.size(), 0.0);
}

// The windows of query q whose bounds are given.
inline Windows windows_of(const PairProblem& problem, Index q, const PairPoint& point,
                          const Position* end, const Position* begin) {
  const Range docs = problem.documents(q);
  return {static_cast<Position>(docs.size()),
          problem.n_levels[q],
          problem.width,
          point.level.at(docs.first),
          end,
          begin};
}

}  // namespace marginrank
