// A function of every query in score space.
#pragma once

#include <algorithm>
#include <vector>

#include "base/parallel.hpp"
#include "pairs/scratch.hpp"
#include "sweeps/blocks.hpp"

namespace marginrank {

inline Scratch make_scratch() { return Scratch(); }

enum class Done { nothing, fused_blocks };

// z = f(q, u, z, scratch) for every query that is not done yet.
template <class F>
void map_queries(const Documents& problem, const std::vector<Block>& blocks, Done done,
                 const double* u, F&& f, double* z, int threads) {
  auto apply = [&](Index q, Scratch& scratch) {
    f(q, u + problem.offsets[q], z + problem.offsets[q], scratch);
  };
  const std::vector<Index> whole = blocks_where(blocks, [&](const Block& block) {
    return block.whole && !(block.fused && done == Done::fused_blocks);
  });
  const auto n_whole = static_cast<Index>(whole.size());
  parallel_for(n_whole, threads, make_scratch, [&](Index k, Scratch& scratch) {
    const Range queries = blocks[whole[k]].queries;
    for (Index q = queries.first; q < queries.last; ++q) apply(q, scratch);
  });
  const std::vector<Index> split = blocks_where(blocks, [&](const Block& block) {
    return !block.whole && block.documents.first == problem.offsets[block.queries.first];
  });
  // Long queries: side by side if there are enough of them, else each with all threads.
  const bool side_by_side = static_cast<int>(split.size()) >= std::min(threads, 3);
  const auto n_split = static_cast<Index>(split.size());
  parallel_for(n_split, side_by_side ? threads : 1, make_scratch, [&](Index k, Scratch& scratch) {
    scratch.threads = side_by_side ? 1 : threads;
    apply(blocks[split[k]].queries.first, scratch);
  });
}

}  // namespace marginrank
