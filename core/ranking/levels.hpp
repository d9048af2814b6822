// Labels ranked inside their queries: levels, and the pairs they make.
#pragma once

#include <algorithm>
#include <vector>

#include "base/parallel.hpp"

namespace marginrank {

// Dense ranks of the labels inside each query, and how many pairs there are.
struct Levels {
  std::vector<Level> level, n_levels;
  std::vector<Index> n_pairs, n_adjacent_pairs;
};

inline void rank_query(const double* y, Index m, Level* level, Level& n_levels, Index& n_pairs,
                       Index& n_adjacent, std::vector<double>& distinct) {
  distinct.assign(y, y + m);
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  n_levels = static_cast<Level>(distinct.size());
  std::vector<Index> count(distinct.size(), 0);
  for (Index i = 0; i < m; ++i) {
    const auto at = std::lower_bound(distinct.begin(), distinct.end(), y[i]) - distinct.begin();
    level[i] = static_cast<Level>(at);
    ++count[static_cast<std::size_t>(at)];
  }
  Index below = 0;
  n_pairs = n_adjacent = 0;
  for (std::size_t r = 0; r < count.size(); ++r) {
    n_pairs += count[r] * below;
    if (r > 0) n_adjacent += count[r] * count[r - 1];
    below += count[r];
  }
}

inline Levels rank_labels(const double* y, const Index* offsets, Index n_queries, int threads) {
  Levels result;
  result.level.resize(static_cast<std::size_t>(offsets[n_queries]));
  for (auto* per_query : {&result.n_pairs, &result.n_adjacent_pairs}) {
    per_query->resize(static_cast<std::size_t>(n_queries));
  }
  result.n_levels.resize(static_cast<std::size_t>(n_queries));
  auto make_buffer = [] { return std::vector<double>(); };
  parallel_for(n_queries, threads, make_buffer, [&](Index q, std::vector<double>& distinct) {
    const auto i = static_cast<std::size_t>(q);
    rank_query(y + offsets[q], offsets[q + 1] - offsets[q], result.level.data() + offsets[q],
               result.n_levels[i], result.n_pairs[i], result.n_adjacent_pairs[i], distinct);
  });
  return result;
}

}  // namespace marginrank
