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
  MARGINRANK_INLINE LevelTree(Level n_levels, Vec8* nodes) : n_layers_(0) {
    Index n_nodes = 0;
    for (Level groups = n_levels; n_layers_ == 0 || groups > 1; groups = (groups + 7) / 8) {
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

// The same interface for pairs of adjacent levels: one sum per level.
template <Partners P, int channels>
class AdjacentLevels {
 public:
  MARGINRANK_INLINE AdjacentLevels(Level n_levels, Vec8* nodes)
      : sums_(nodes), n_levels_(n_levels) {
    clear(sums_, (static_cast<Index>(n_levels) * channels + 7) / 8);
  }

  MARGINRANK_INLINE void add(Level level, const double* value, Index stride) {
    for (int c = 0; c < channels; ++c) {
      const Index k = static_cast<Index>(level) * channels + c;
      sums_[k / 8].lane[k % 8] += value[c * stride];
    }
  }

  MARGINRANK_INLINE void get(Level level, double* sum, Index stride) const {
    const Level partner = P == Partners::preferred ? level + 1 : level - 1;
    const bool exists = partner >= 0 && partner < n_levels_;
    for (int c = 0; c < channels; ++c) {
      const Index k = static_cast<Index>(partner) * channels + c;
      sum[c * stride] = exists ? sums_[k / 8].lane[k % 8] : 0.0;
    }
  }

 private:
  Vec8* sums_;
  Level n_levels_;
};

MARGINRANK_INLINE void add8(Vec8& sum, const Vec8& value) {
  add_product(sum, load4(value.lane), load4(value.lane + 4), 1.0);
}

// A Fenwick tree over the levels, starting with the partners' levels, with eight sums per node.
template <Partners P>
class LevelTree8 {
 public:
  MARGINRANK_INLINE LevelTree8(Level n_levels, Vec8* nodes) : nodes_(nodes), n_levels_(n_levels) {
    clear(nodes, n_levels + 1);
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
class AdjacentLevels8 {
 public:
  MARGINRANK_INLINE AdjacentLevels8(Level n_levels, Vec8* nodes)
      : sums_(nodes), n_levels_(n_levels) {
    clear(nodes, n_levels);
  }

  MARGINRANK_INLINE void add(Level level, const Vec8& value) { add8(sums_[level], value); }

  MARGINRANK_INLINE void get(Level level, Vec8& sum) const {
    const Level partner = P == Partners::preferred ? level + 1 : level - 1;
    sum = partner >= 0 && partner < n_levels_ ? sums_[partner] : Vec8{};
  }

 private:
  Vec8* sums_;
  Level n_levels_;
};

}  // namespace marginrank::MARGINRANK_SIMD
