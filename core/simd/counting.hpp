// Kernels that count: sums over the active partners of each document of a query.
#pragma once

#include "base/types.hpp"

namespace marginrank {

// The documents of one query in ascending order of score, and for each the part of that order
// its active pairs reach into: positions before `end` hold the preferred partners, positions from
// `begin` on the others.
struct Windows {
  Position size;
  Level n_levels;
  Level width;  // largest difference of the levels of a pair
  const Level* level;
  const Position* end;
  const Position* begin;
};

enum class Partners { preferred, other };

constexpr Level kAnyWidth = INT32_MAX;  // for pairs of all levels
constexpr Level kFewLevels = 7;

struct CountingKernels {
  // For queries of at most kFewLevels levels: above[t] = sum of preferred_values[p] over the active
  // partners p of a higher level of the document at position t, below[t] likewise the sum of
  // other_values over the partners of a lower level.
  void (*few_level_sums)(const Windows& windows, const double* preferred_values,
                         const double* other_values, double* above, double* below);

  // For any number of levels, one side at a time: out[t] = sum of values[p] over the partners with
  // a higher (Partners::preferred) or lower (Partners::other) level. `workspace` holds
  // partner_sums_workspace() vectors.
  void (*partner_sums)(const Windows& windows, Partners partners, int channels,
                       const double* values, double* out, Vec8* workspace);

  // The same for eight vectors at once; `workspace` holds n_levels + 1 vectors.
  void (*partner_sums8)(const Windows& windows, Partners partners, const Vec8* values, Vec8* out,
                        Vec8* workspace);
};

// Nodes of all layers of a LevelTree: a seventh of the levels, rounded up layer by layer.
inline Index partner_sums_workspace(Level n_levels, int channels) {
  return (static_cast<Index>(n_levels) / 7 + 12) * channels;
}

}  // namespace marginrank
