// Counters of any number of levels: add() a document, get() the sum over the partners of a level.
#pragma once

#include "simd/walk.hpp"

namespace marginrank::MARGINRANK_SIMD {

// A Fenwick tree of fan-out eight: layer s groups the levels by 8^s, and each entry holds the sum
// over its siblings on the partners' side, so an insertion is one vector addition per layer and
// a query one load per layer. Direct counting is its one-layer case.
template <Partners P, int channels>
class LevelTree {
 public:
  MARGINRANK_INLINE LevelTree(const Windows& windows, Vec8* nodes) : n_layers_(0) {
    Index n_nodes = 0;
    for (Level groups = windows.n_levels; n_layers_ == 0 || groups > 1; groups = (groups + 7) / 8) {
      layer_[n_layers_++] = nodes + n_nodes * channels;
      n_nodes += (groups + 7) / 8;
    }
    clear(nodes, n_nodes * channels);
  }

  MARGINRANK_INLINE void add(Level level, const double* value, Index stride) {
    for (int s = 0; s < n_layers_; ++s, level >>= 3) {
      Vec8* node = layer_[s] + static_cast<Index>(level >> 3) * channels;
      const double* lanes = reach<P>(level & 7);
      for (int c = 0; c < channels; ++c) {
        add_product(node[c], load4(lanes), load4(lanes + 4), value[c * stride]);
      }
    }
  }

  MARGINRANK_INLINE void get(Level level, double* sum, Index stride) const {
    double found[channels] = {};
    for (int s = 0; s < n_layers_; ++s, level >>= 3) {
      const Vec8* node = layer_[s] + static_cast<Index>(level >> 3) * channels;
      for (int c = 0; c < channels; ++c) {
        found[c] += node[c].lane[level & 7];
      }
    }
    for (int c = 0; c < channels; ++c) sum[c * stride] = found[c];
  }

 private:
  Vec8* layer_[12];
  int n_layers_;
};

// The levels of the partners of a document: at most `width` levels away.
template <Partners P>
MARGINRANK_INLINE Range close_levels(Level level, const Windows& windows) {
  // In 64 bits, because a width may be as large as a level can be.
  const Index own = level, width = windows.width;
  if (P == Partners::other) return {own - smaller(own, width), own};
  return {own + 1, smaller(own + width + 1, static_cast<Index>(windows.n_levels))};
}

// The same interface for pairs of close levels: one sum per level, added up in O(width).
template <Partners P, int channels>
class CloseLevels {
 public:
  MARGINRANK_INLINE CloseLevels(const Windows& windows, Vec8* nodes)
      : sums_(nodes), windows_(windows) {
    clear(sums_, (static_cast<Index>(windows.n_levels) * channels + 7) / 8);
  }

  MARGINRANK_INLINE void add(Level level, const double* value, Index stride) {
    for (int c = 0; c < channels; ++c) at(level, c) += value[c * stride];
  }

  MARGINRANK_INLINE void get(Level level, double* sum, Index stride) const {
    const Range partners = close_levels<P>(level, windows_);
    for (int c = 0; c < channels; ++c) {
      double found = 0;
      for (Index k = partners.first; k < partners.last; ++k) found += at(k, c);
      sum[c * stride] = found;
    }
  }

 private:
  MARGINRANK_INLINE double& at(Index level, int channel) const {
    const Index k = level * channels + channel;
    return sums_[k / 8].lane[k % 8];
  }

  Vec8* sums_;
  const Windows& windows_;
};

MARGINRANK_INLINE void add8(Vec8& sum, const Vec8& value) {
  add_product(sum, load4(value.lane), load4(value.lane + 4), 1.0);
}

// A Fenwick tree over the levels, starting with the partners' levels, with eight sums per node.
template <Partners P>
class LevelTree8 {
 public:
  MARGINRANK_INLINE LevelTree8(const Windows& windows, Vec8* nodes)
      : nodes_(nodes), n_levels_(windows.n_levels) {
    clear(nodes, n_levels_ + 1);
  }

  MARGINRANK_INLINE void add(Level level, const Vec8& value) {
    for (Level i = rank(level) + 1; i <= n_levels_; i += i & -i) add8(nodes_[i], value);
  }

  MARGINRANK_INLINE void get(Level level, Vec8& sum) const {
    sum = Vec8{};
    for (Level i = rank(level); i > 0; i -= i & -i) add8(sum, nodes_[i]);
  }

 private:
  MARGINRANK_INLINE Level rank(Level level) const {
    return P == Partners::preferred ? n_levels_ - 1 - level : level;
  }

  Vec8* nodes_;
  Level n_levels_;
};

template <Partners P>
class CloseLevels8 {
 public:
  MARGINRANK_INLINE CloseLevels8(const Windows& windows, Vec8* nodes)
      : sums_(nodes), windows_(windows) {
    clear(nodes, windows.n_levels);
  }

  MARGINRANK_INLINE void add(Level level, const Vec8& value) { add8(sums_[level], value); }

  MARGINRANK_INLINE void get(Level level, Vec8& sum) const {
    const Range partners = close_levels<P>(level, windows_);
    sum = Vec8{};
    for (Index k = partners.first; k < partners.last; ++k) add8(sum, sums_[k]);
  }

 private:
  Vec8* sums_;
  const Windows& windows_;
};

}  // namespace marginrank::MARGINRANK_SIMD
