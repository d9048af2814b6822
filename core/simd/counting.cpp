// The kernels that count, compiled once for each instruction set: see vectors.hpp.
#include "simd/counting.hpp"

#include "simd/direct_counting.hpp"
#include "simd/level_counters.hpp"

namespace marginrank::MARGINRANK_SIMD {
namespace {

template <Partners P, int channels, class Counter>
MARGINRANK_INLINE void counted_sums(const Windows& windows, const double* values, double* out,
                                    Vec8* workspace) {
  Counter counter(windows, workspace);
  const Walk<P> walk{windows};
  const Position m = windows.size;
  Position seen = 0;
  for (Position i = 0; i < m; ++i) {
    for (const Position bound = walk.bound(i); seen < bound; ++seen) {
      counter.add(walk.level(seen), values + walk.at(seen), m);
    }
    counter.get(walk.level(i), out + walk.at(i), m);
  }
}

template <Partners P, int channels>
MARGINRANK_INLINE void partner_sums_of(const Windows& windows, const double* values, double* out,
                                       Vec8* workspace) {
  if (windows.width < kAnyWidth) {
    counted_sums<P, channels, CloseLevels<P, channels>>(windows, values, out, workspace);
  } else if (windows.n_levels <= kFewLevels) {
    few_level_partner_sums<P, channels>(windows, values, out);
  } else {
    counted_sums<P, channels, LevelTree<P, channels>>(windows, values, out, workspace);
  }
}

void partner_sums(const Windows& windows, Partners partners, int channels, const double* values,
                  double* out, Vec8* workspace) {
  if (partners == Partners::preferred) {
    if (channels == 1) {
      partner_sums_of<Partners::preferred, 1>(windows, values, out, workspace);
    } else {
      partner_sums_of<Partners::preferred, 2>(windows, values, out, workspace);
    }
  } else if (channels == 1) {
    partner_sums_of<Partners::other, 1>(windows, values, out, workspace);
  } else {
    partner_sums_of<Partners::other, 2>(windows, values, out, workspace);
  }
}

void few_level_sums(const Windows& windows, const double* preferred_values,
                    const double* other_values, double* above, double* below) {
  const bool same = preferred_values == other_values;
  const auto sums = same ? few_level_sums_of<true> : few_level_sums_of<false>;
  sums(windows, preferred_values, other_values, above, below);
}

template <Partners P, class Counter>
MARGINRANK_INLINE void counted_sums8(const Windows& windows, const Vec8* values, Vec8* out,
                                     Vec8* workspace) {
  Counter counter(windows, workspace);
  const Walk<P> walk{windows};
  Position seen = 0;
  for (Position i = 0; i < windows.size; ++i) {
    for (const Position bound = walk.bound(i); seen < bound; ++seen) {
      counter.add(walk.level(seen), values[walk.at(seen)]);
    }
    counter.get(walk.level(i), out[walk.at(i)]);
  }
}

template <Partners P>
MARGINRANK_INLINE void partner_sums8_of(const Windows& windows, const Vec8* values, Vec8* out,
                                        Vec8* workspace) {
  if (windows.width < kAnyWidth) {
    counted_sums8<P, CloseLevels8<P>>(windows, values, out, workspace);
  } else {
    counted_sums8<P, LevelTree8<P>>(windows, values, out, workspace);
  }
}

void partner_sums8(const Windows& windows, Partners partners, const Vec8* values, Vec8* out,
                   Vec8* workspace) {
  if (partners == Partners::preferred) {
    partner_sums8_of<Partners::preferred>(windows, values, out, workspace);
  } else {
    partner_sums8_of<Partners::other>(windows, values, out, workspace);
  }
}

}  // namespace

extern const CountingKernels counting;
const CountingKernels counting = {&few_level_sums, &partner_sums, &partner_sums8};

}  // namespace marginrank::MARGINRANK_SIMD
