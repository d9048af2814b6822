// Weighted sums over the active partners of each document of a query.
#pragma once

#include <vector>

#include "base/parallel.hpp"
#include "pairs/level_pairs.hpp"
#include "pairs/scratch.hpp"
#include "simd/simd.hpp"

namespace marginrank {

using SideValues = BySide<const double*>;

// Without weights both sides have the same values, which halves the work.
inline SideValues both_sides(const PairProblem& problem, const double* preferred,
                             const double* other) {
  return {preferred, problem.rank == 0 ? preferred : other};
}

// Weights of the documents as the preferred and as the other side, in sorted order.
inline void load_weights(const PairProblem& problem, Index q, int r, const PairPoint& point,
                         Scratch& scratch) {
  const Range docs = problem.documents(q);
  for (auto& weight : scratch.weight) weight.resize(static_cast<std::size_t>(docs.size()));
  for (Index t = 0; t < docs.size(); ++t) {
    const Index i = docs.first + point.order[docs.first + t];
    scratch.weight[kPreferred][t] = problem.rank ? problem.preferred[i * problem.rank + r] : 1.0;
    scratch.weight[kOther][t] = problem.rank ? problem.other[i * problem.rank + r] : 1.0;
  }
}

// Sums values[side] over the partners of each document on that side into scratch.sums[side].
inline void sum_partners(const Windows& w, int channels, const SideValues& values,
                         Scratch& scratch) {
  for (auto& sums : scratch.sums) sums.resize(static_cast<std::size_t>(channels * w.size));
  // The value needs every digit; the joint sums for few levels lose some.
  if (channels == 1 && w.n_levels <= kFewLevels && w.width == kAnyWidth) {
    simd().counting.few_level_sums(w, values[kPreferred], values[kOther],
                                   scratch.sums[kPreferred].data(), scratch.sums[kOther].data());
    return;
  }
  const auto size = static_cast<std::size_t>(partner_sums_workspace(w.n_levels, channels));
  for (auto& workspace : scratch.workspace) {
    if (workspace.size() < size) workspace.resize(size);
  }
  parallel_for(2, scratch.threads, [&](Index side) {
    simd().counting.partner_sums(w, side == kPreferred ? Partners::preferred : Partners::other,
                                 channels, values[side], scratch.sums[side].data(),
                                 scratch.workspace[side].data());
  });
}

}  // namespace marginrank
