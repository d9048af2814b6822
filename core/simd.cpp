// Compiled once for each instruction set, with MARGINRANK_SIMD naming it. Nothing here may be
// emitted as a shared inline function: no standard library algorithms, everything local.
#include "simd.hpp"

#ifdef __AVX__
#include <immintrin.h>
#endif

namespace marginrank {
namespace {

constexpr Index kRowsAhead = 4;  // how far to prefetch ahead of the row in work

using Vec4 = double __attribute__((vector_size(32)));

template <class T>
MARGINRANK_INLINE T smaller(T a, T b) {
  return a < b ? a : b;
}

MARGINRANK_INLINE void clear(Vec8* nodes, Index count) {
  for (Index k = 0; k < count; ++k) nodes[k] = Vec8{};
}

MARGINRANK_INLINE Vec4 load4(const double* p) {
  Vec4 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

MARGINRANK_INLINE Vec4 load4(const float* p) {
#ifdef __AVX__  // GCC makes two halves of the portable form
  return _mm256_cvtps_pd(_mm_loadu_ps(p));
#else
  float __attribute__((vector_size(16))) v;
  __builtin_memcpy(&v, p, sizeof v);
  return __builtin_convertvector(v, Vec4);
#endif
}

MARGINRANK_INLINE void store4(double* p, Vec4 v) { __builtin_memcpy(p, &v, sizeof v); }

MARGINRANK_INLINE double total(Vec4 v) { return (v[0] + v[1]) + (v[2] + v[3]); }

// sum += scale * (low, high)
MARGINRANK_INLINE void add_product(Vec8& sum, Vec4 low, Vec4 high, double scale) {
  store4(sum.lane, load4(sum.lane) + low * scale);
  store4(sum.lane + 4, load4(sum.lane + 4) + high * scale);
}

template <class T>
double sum(const T* x, Index count) {
  Vec4 a = {}, b = {}, c = {}, d = {};
  Index j = 0;
  for (; j + 16 <= count; j += 16) {
    a += load4(x + j);
    b += load4(x + j + 4);
    c += load4(x + j + 8);
    d += load4(x + j + 12);
  }
  double s = total((a + b) + (c + d));
  for (; j < count; ++j) s += static_cast<double>(x[j]);
  return s;
}

template <class T>
void raise_magnitudes(const T* x, Index count, Magnitude<T>* largest) {
  for (Index j = 0; j < count; ++j) {
    const Magnitude<T> size = magnitude(x[j]);
    largest[j] = largest[j] < size ? size : largest[j];
  }
}

// Fetches the 16 columns from x on.
template <class T>
MARGINRANK_INLINE void prefetch16(const T* x) {
  for (Index j = 0; j < 16; j += 64 / static_cast<Index>(sizeof(T))) __builtin_prefetch(x + j);
}

// One row at a time, as the hardware prefetcher follows one stream far better than several; it
// stops while other work is done in between, so the columns of a later row are fetched by hand.
template <class T>
MARGINRANK_INLINE double dot(const T* x, const double* v, Index n, const T* later) {
  Vec4 a = {}, b = {}, c = {}, d = {};
  Index j = 0;
  for (; j + 16 <= n; j += 16) {
    prefetch16(later + j);
    a += load4(x + j) * load4(v + j);
    b += load4(x + j + 4) * load4(v + j + 4);
    c += load4(x + j + 8) * load4(v + j + 8);
    d += load4(x + j + 12) * load4(v + j + 12);
  }
  if (j < n) prefetch16(later + j);
  for (; j + 4 <= n; j += 4) a += load4(x + j) * load4(v + j);
  double s = total((a + b) + (c + d));
  for (; j < n; ++j) s += static_cast<double>(x[j]) * v[j];
  return s;
}

// The dot products of the documents [i, stop) of a range.
template <class T>
MARGINRANK_INLINE void dots_until(const DenseRows<T>& X, Range range, Index i, Index stop,
                                  const double* v, double* u) {
  for (; i < stop; ++i) {
    u[i] = dot(X[i], v, X.n_columns, X[smaller(i + kRowsAhead, range.last - 1)]);
  }
}

template <class T>
void dots(const DenseRows<T>& X, Range range, const double* v, double* u) {
  dots_until(X, range, range.first, range.last, v, u);
}

// Fetches the cache lines of four rows around column j, a share of them in each step of four
// columns.
template <class T>
MARGINRANK_INLINE void prefetch4(const T* const (&rows)[4], Index j) {
  constexpr Index per_line = 64 / sizeof(T);
  constexpr Index steps = per_line / 4;
  constexpr Index rows_a_step = 4 / steps;
  const Index first = (j / 4) % steps * rows_a_step;
  for (Index r = first; r < first + rows_a_step; ++r) {
    __builtin_prefetch(rows[r] + j / per_line * per_line);
  }
}

// Four rows a pass, so that `out` is loaded and stored a quarter as often.
template <bool prefetch, class T>
MARGINRANK_INLINE void accumulate4(const T* const (&x)[4], const double* z, Index n, double* out,
                                   const T* const (&later)[4]) {
  Index j = 0;
  for (; j + 4 <= n; j += 4) {
    if constexpr (prefetch) prefetch4(later, j);
    Vec4 even = load4(out + j) + load4(x[0] + j) * z[0];
    Vec4 odd = load4(x[1] + j) * z[1];
    even += load4(x[2] + j) * z[2];
    odd += load4(x[3] + j) * z[3];
    store4(out + j, even + odd);
  }
  for (; j < n; ++j) {
    out[j] += (static_cast<double>(x[0][j]) * z[0] + static_cast<double>(x[1][j]) * z[1]) +
              (static_cast<double>(x[2][j]) * z[2] + static_cast<double>(x[3][j]) * z[3]);
  }
}

template <class T>
MARGINRANK_INLINE void accumulate1(const T* x, double z, Index n, double* out) {
  Index j = 0;
  for (; j + 4 <= n; j += 4) store4(out + j, load4(out + j) + load4(x + j) * z);
  for (; j < n; ++j) out[j] += static_cast<double>(x[j]) * z;
}

template <class T>
void accumulate_then_dots(const DenseRows<T>& X, Range range, const double* z, double* out,
                          Range next, const double* v, double* u) {
  const Index n = X.n_columns;
  Index i = range.first, ahead = next.first;
  for (; i + 4 <= range.last; i += 4) {
    const T* x[4] = {X[i], X[i + 1], X[i + 2], X[i + 3]};
    if (next.size() > 0) {
      accumulate4<false>(x, z + i, n, out, x);
      const Index stop = smaller(ahead + 4, next.last);
      dots_until(X, next, ahead, stop, v, u);
      ahead = stop;
    } else {
      const T* later[4];
      for (Index r = 0; r < 4; ++r) later[r] = X[smaller(i + kRowsAhead + r, range.last - 1)];
      accumulate4<true>(x, z + i, n, out, later);
    }
  }
  for (; i < range.last; ++i) accumulate1(X[i], z[i], n, out);
  dots_until(X, next, ahead, next.last, v, u);
}

template <int rows, class T>
MARGINRANK_INLINE void rank_update_of(const T* const* x, Index first, Index n, const Vec8* values,
                                      Vec8* block) {
  Vec4 low[rows], high[rows];
  for (int r = 0; r < rows; ++r) {
    low[r] = load4(values[r].lane);
    high[r] = load4(values[r].lane + 4);
  }
  for (Index a = first; a < n; ++a) {
    Vec4 sum_low = load4(block[a].lane), sum_high = load4(block[a].lane + 4);
    for (int r = 0; r < rows; ++r) {
      const double xa = static_cast<double>(x[r][a]);
      sum_low += low[r] * xa;
      sum_high += high[r] * xa;
    }
    store4(block[a].lane, sum_low);
    store4(block[a].lane + 4, sum_high);
  }
}

// Four documents a pass, so that `block` is loaded and stored a quarter as often.
template <class T>
void rank_update(const T* const* x, Index count, Index first, Index n, const Vec8* values,
                 Vec8* block) {
  Index i = 0;
  for (; i + 4 <= count; i += 4) rank_update_of<4>(x + i, first, n, values + i, block);
  for (; i < count; ++i) rank_update_of<1>(x + i, first, n, values + i, block);
}

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
    for (Position i = first;; ++i) {
      for (int c = 0; c < channels; ++c) {
        store4(snapshots_[i - first][c].lane, low_[c]);
        store4(snapshots_[i - first][c].lane + 4, high_[c]);
      }
      if (i == last) break;
      const double* lanes = reach<P>(walk.level(i) + shift);
      for (int c = 0; c < channels; ++c) {
        const double value = values[c * m + walk.at(i)];
        low_[c] += load4(lanes) * value;
        high_[c] += load4(lanes + 4) * value;
      }
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

// Both sides from one walk, which halves the work of a product: the documents below a level are all
// less those from it on. The difference loses digits where sums are large.
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

// A Fenwick tree of fan-out eight: layer s groups the levels by 8^s, and each entry holds the sum
// over its siblings on the partners' side, so that an insertion is one vector addition a layer and
// a query one load a layer. Direct counting above is its one-layer case.
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

// The same interface for pairs of adjacent levels: one sum a level.
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

template <Partners P, int channels, class Counter>
MARGINRANK_INLINE void counted_sums(const Windows& windows, const double* values, double* out,
                                    Vec8* workspace) {
  Counter counter(windows.n_levels, workspace);
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
MARGINRANK_INLINE void partner_sums_of(const Windows& windows, Selection selection,
                                       const double* values, double* out, Vec8* workspace) {
  if (selection == Selection::adjacent) {
    counted_sums<P, channels, AdjacentLevels<P, channels>>(windows, values, out, workspace);
  } else if (windows.n_levels <= kFewLevels) {
    few_level_partner_sums<P, channels>(windows, values, out);
  } else {
    counted_sums<P, channels, LevelTree<P, channels>>(windows, values, out, workspace);
  }
}

void partner_sums(const Windows& windows, Partners partners, Selection selection, int channels,
                  const double* values, double* out, Vec8* workspace) {
  if (partners == Partners::preferred) {
    if (channels == 1) {
      partner_sums_of<Partners::preferred, 1>(windows, selection, values, out, workspace);
    } else {
      partner_sums_of<Partners::preferred, 2>(windows, selection, values, out, workspace);
    }
  } else if (channels == 1) {
    partner_sums_of<Partners::other, 1>(windows, selection, values, out, workspace);
  } else {
    partner_sums_of<Partners::other, 2>(windows, selection, values, out, workspace);
  }
}

void few_level_sums(const Windows& windows, const double* preferred_values,
                    const double* other_values, double* above, double* below) {
  const bool same = preferred_values == other_values;
  const auto sums = same ? few_level_sums_of<true> : few_level_sums_of<false>;
  sums(windows, preferred_values, other_values, above, below);
}

MARGINRANK_INLINE void add8(Vec8& sum, const Vec8& value) {
  add_product(sum, load4(value.lane), load4(value.lane + 4), 1.0);
}

// A Fenwick tree over the levels, those of the partners first, with eight sums a node.
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

template <Partners P, class Counter>
MARGINRANK_INLINE void counted_sums8(const Windows& windows, const Vec8* values, Vec8* out,
                                     Vec8* workspace) {
  Counter counter(windows.n_levels, workspace);
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
MARGINRANK_INLINE void partner_sums8_of(const Windows& windows, Selection selection,
                                        const Vec8* values, Vec8* out, Vec8* workspace) {
  if (selection == Selection::adjacent) {
    counted_sums8<P, AdjacentLevels8<P>>(windows, values, out, workspace);
  } else {
    counted_sums8<P, LevelTree8<P>>(windows, values, out, workspace);
  }
}

void partner_sums8(const Windows& windows, Partners partners, Selection selection,
                   const Vec8* values, Vec8* out, Vec8* workspace) {
  if (partners == Partners::preferred) {
    partner_sums8_of<Partners::preferred>(windows, selection, values, out, workspace);
  } else {
    partner_sums8_of<Partners::other>(windows, selection, values, out, workspace);
  }
}

template <class T>
constexpr RowKernels<T> row_kernels() {
  return {&sum<T>, &raise_magnitudes<T>, &dots<T>, &accumulate_then_dots<T>, &rank_update<T>};
}

}  // namespace

namespace MARGINRANK_SIMD {
extern const Simd kernels;
const Simd kernels = {row_kernels<float>(), row_kernels<double>(), &few_level_sums, &partner_sums,
                      &partner_sums8};
}  // namespace MARGINRANK_SIMD

}  // namespace marginrank
