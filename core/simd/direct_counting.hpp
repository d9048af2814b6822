// Counting for few levels: a running sum for each.
#pragma once

#include "simd/walk.hpp"

namespace marginrank::MARGINRANK_SIMD {

// Running sums for each level over the documents of the levels beyond it, with a snapshot of them
// after every document of a chunk.
template <Partners P, int channels>
class RunningSums {
 public:
  static constexpr Position chunk = 64;

  // `shift` moves the lanes: 0 for the levels beyond a lane, 1 for the lane's own as well.
  MARGINRANK_INLINE void run(const Walk<P>& walk, Position first, Position last, Level shift,
                             const double* values) {
    const Index m = walk.windows.size;
    // Locals, because members would be reloaded for every document: the compiler cannot rule out
    // that they alias the snapshots.
    Vec4 low[channels], high[channels];
    for (int c = 0; c < channels; ++c) {
      low[c] = low_[c];
      high[c] = high_[c];
    }
    for (Position i = first;; ++i) {
      for (int c = 0; c < channels; ++c) {
        store4(snapshots_[i - first][c].lane, low[c]);
        store4(snapshots_[i - first][c].lane + 4, high[c]);
      }
      if (i == last) break;
      const double* lanes = reach<P>(walk.level(i) + shift);
      for (int c = 0; c < channels; ++c) {
        const double value = values[c * m + walk.at(i)];
        low[c] += load4(lanes) * value;
        high[c] += load4(lanes + 4) * value;
      }
    }
    for (int c = 0; c < channels; ++c) {
      low_[c] = low[c];
      high_[c] = high[c];
    }
    first_ = first;
  }

  // The sum in a lane over the first `bound` documents.
  MARGINRANK_INLINE double at(Level lane, Position bound, int c) const {
    return snapshots_[bound - first_][c].lane[lane];
  }

 private:
  Vec8 snapshots_[chunk + 1][channels];
  Vec4 low_[channels] = {}, high_[channels] = {};
  Position first_ = 0;
};

// Direct counting for few levels, one side at a time: each document looks up the snapshot at its
// bound. No branch depends on the data.
template <Partners P, int channels>
MARGINRANK_INLINE void few_level_partner_sums(const Windows& windows, const double* values,
                                              double* out) {
  RunningSums<P, channels> sums;
  const Walk<P> walk{windows};
  const Position m = windows.size;
  Position reader = 0, last = 0;
  for (Position first = 0; first < m; first = last) {
    last = smaller(first + sums.chunk, m);
    sums.run(walk, first, last, 0, values);
    for (; reader < m && walk.bound(reader) <= last; ++reader) {
      for (int c = 0; c < channels; ++c) {
        out[static_cast<Index>(c) * m + walk.at(reader)] =
            sums.at(walk.level(reader), walk.bound(reader), c);
      }
    }
  }
}

// Both sides from one walk, which halves the work of a product: the sum below a level is the total
// minus the sum from that level on. The difference loses digits if sums are large.
template <bool same_values>
void few_level_sums_of(const Windows& windows, const double* preferred_values,
                       const double* other_values, double* above, double* below) {
  using Sums = RunningSums<Partners::preferred, 1>;
  const Walk<Partners::preferred> walk{windows};
  Sums preferred, other_storage;
  Sums& other = same_values ? preferred : other_storage;
  const Position m = windows.size;
  const Level* level = windows.level;
  Position above_reader = 0, below_reader = 0, last = 0;
  for (Position first = 0; first < m; first = last) {
    last = smaller(first + Sums::chunk, m);
    preferred.run(walk, first, last, 1, preferred_values);
    if constexpr (!same_values) other.run(walk, first, last, 1, other_values);
    for (; above_reader < m && windows.end[above_reader] <= last; ++above_reader) {
      const Position t = above_reader;
      above[t] = preferred.at(level[t] + 1, windows.end[t], 0);
    }
    for (; below_reader < m && windows.begin[below_reader] <= last; ++below_reader) {
      const Position t = below_reader;
      below[t] = other.at(level[t], windows.begin[t], 0) - other.at(0, windows.begin[t], 0);
    }
  }
  double below_level[kFewLevels];
  for (Level a = 0; a < kFewLevels; ++a) below_level[a] = other.at(0, m, 0) - other.at(a, m, 0);
  for (Position t = 0; t < m; ++t) below[t] += below_level[level[t]];
}

}  // namespace marginrank::MARGINRANK_SIMD
