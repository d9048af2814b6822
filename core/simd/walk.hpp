// The order in which counting visits the documents of a query, and the levels it adds them to.
#pragma once

#include "simd/counting.hpp"
#include "simd/vectors.hpp"

namespace marginrank::MARGINRANK_SIMD {

// kReach[partners][L]: the lanes whose documents have a document of lane L among their partners.
constexpr Vec8 kReach[2][8] = {{{{0, 0, 0, 0, 0, 0, 0, 0}},
                                {{1, 0, 0, 0, 0, 0, 0, 0}},
                                {{1, 1, 0, 0, 0, 0, 0, 0}},
                                {{1, 1, 1, 0, 0, 0, 0, 0}},
                                {{1, 1, 1, 1, 0, 0, 0, 0}},
                                {{1, 1, 1, 1, 1, 0, 0, 0}},
                                {{1, 1, 1, 1, 1, 1, 0, 0}},
                                {{1, 1, 1, 1, 1, 1, 1, 0}}},
                               {{{0, 1, 1, 1, 1, 1, 1, 1}},
                                {{0, 0, 1, 1, 1, 1, 1, 1}},
                                {{0, 0, 0, 1, 1, 1, 1, 1}},
                                {{0, 0, 0, 0, 1, 1, 1, 1}},
                                {{0, 0, 0, 0, 0, 1, 1, 1}},
                                {{0, 0, 0, 0, 0, 0, 1, 1}},
                                {{0, 0, 0, 0, 0, 0, 0, 1}},
                                {{0, 0, 0, 0, 0, 0, 0, 0}}}};

template <Partners P>
MARGINRANK_INLINE const double* reach(Level lane) {
  return kReach[static_cast<int>(P)][lane].lane;
}

// Walks the windows from the left for preferred partners and from the right for the others, so that
// one loop serves both: step i is position at(i), and a document sees the first bound(i) steps.
template <Partners P>
struct Walk {
  const Windows& windows;

  MARGINRANK_INLINE Position at(Position i) const {
    return P == Partners::preferred ? i : windows.size - 1 - i;
  }
  MARGINRANK_INLINE Position bound(Position i) const {
    return P == Partners::preferred ? windows.end[i] : windows.size - windows.begin[at(i)];
  }
  MARGINRANK_INLINE Level level(Position i) const { return windows.level[at(i)]; }
};

}  // namespace marginrank::MARGINRANK_SIMD
