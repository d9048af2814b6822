// Documents in the order of their scores, query by query.
#pragma once

#include "base/parallel.hpp"
#include "ranking/sorting.hpp"

namespace marginrank {

// Documents of each query by descending score, ties in document order; positions in the whole.
inline void rank_documents(const double* scores, const Index* offsets, Index n_queries,
                           Index* order, int threads) {
  auto make_sorter = [] { return ScoreSorter(); };
  parallel_for(n_queries, threads, make_sorter, [&](Index q, ScoreSorter& sorter) {
    const Index first = offsets[q], size = offsets[q + 1] - first;
    sorter.entries.resize(static_cast<std::size_t>(size));
    for (Position i = 0; i < size; ++i) sorter.entries[i] = {-scores[first + i], i};
    sorter.sort();
    for (Index t = 0; t < size; ++t) order[first + t] = first + sorter.entries[t].document;
  });
}

}  // namespace marginrank
