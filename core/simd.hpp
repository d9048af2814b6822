// The leaf kernels. simd.cpp is compiled for several instruction sets and dispatch.cpp picks the
// best that the machine has, so that one binary runs anywhere and still vectorises.
#pragma once

#include <type_traits>

#include "common.hpp"

namespace marginrank {

// Rows of a dense matrix in document order: document i is row rows[i], or row i without `rows`.
template <class T>
struct DenseRows {
  const T* data;
  Index stride;
  Index n_columns;
  const Index* rows;

  MARGINRANK_INLINE const T* operator[](Index i) const {
    return data + (rows ? rows[i] : i) * stride;
  }
};

// A run of consecutive documents.
struct Range {
  Index first;
  Index last;

  MARGINRANK_INLINE Index size() const { return last - first; }
};

// The documents of one query in ascending order of score, and for each the part of that order
// its active pairs reach into: positions before `end` hold the preferred partners, positions from
// `begin` on the others.
struct Windows {
  Position size;
  Level n_levels;
  const Level* level;
  const Position* end;
  const Position* begin;
};

enum class Partners { preferred, other };
enum class Selection { all, adjacent };

// |x| as an integer of the same order. Infinities and then NaN come last.
template <class T>
using Magnitude = std::conditional_t<sizeof(T) == sizeof(float), std::int32_t, std::int64_t>;

template <class T>
MARGINRANK_INLINE Magnitude<T> magnitude(T x) {
  constexpr auto without_sign = static_cast<Magnitude<T>>(~0ULL >> (65 - 8 * sizeof(T)));
  Magnitude<T> bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits & without_sign;
}

// Kernels on the rows of a dense matrix.
template <class T>
struct RowKernels {
  double (*sum)(const T* x, Index count);

  // largest[j] = the larger one of itself and |x[j]|.
  void (*raise_magnitudes)(const T* x, Index count, Magnitude<T>* largest);

  // u[i] = x_i . v for the documents of `range`; u is indexed by document.
  void (*dots)(const DenseRows<T>& X, Range range, const double* v, double* u);

  // out += sum of z[i] x_i over `range`, then u[i] = x_i . v over `next`, which may be empty. The
  // rows of `range` are in cache while those of `next` come from memory: doing both at once keeps
  // the memory busy while the processor computes.
  void (*accumulate_then_dots)(const DenseRows<T>& X, Range range, const double* z, double* out,
                               Range next, const double* v, double* u);

  // block[a] += sum over documents i of x[i][a] * values[i], for a in [first, n): the share of
  // `count` documents in eight columns of a Hessian.
  void (*rank_update)(const T* const* x, Index count, Index first, Index n, const Vec8* values,
                      Vec8* block);
};

constexpr Level kFewLevels = 7;

struct Simd {
  RowKernels<float> float32;
  RowKernels<double> float64;

  // For queries of at most kFewLevels levels: above[t] = sum of preferred_values[p] over the active
  // partners p of a higher level of the document at position t, below[t] likewise of other_values
  // over those of a lower level.
  void (*few_level_sums)(const Windows& windows, const double* preferred_values,
                         const double* other_values, double* above, double* below);

  // For any number of levels, one side at a time: out[t] = sum of values[p] over the partners with
  // a higher (Partners::preferred) or lower (Partners::other) level, or only the next higher or
  // lower one (Selection::adjacent). `workspace` holds partner_sums_workspace() vectors.
  void (*partner_sums)(const Windows& windows, Partners partners, Selection selection, int channels,
                       const double* values, double* out, Vec8* workspace);

  // The same for eight vectors at once; `workspace` holds n_levels + 1 vectors.
  void (*partner_sums8)(const Windows& windows, Partners partners, Selection selection,
                        const Vec8* values, Vec8* out, Vec8* workspace);

  template <class T>
  const RowKernels<T>& rows() const {
    if constexpr (sizeof(T) == sizeof(float)) {
      return float32;
    } else {
      return float64;
    }
  }
};

// The kernels for this machine.
const Simd& simd();

// Nodes of all layers of a LevelTree: a seventh of the levels, rounded up layer by layer.
inline Index partner_sums_workspace(Level n_levels, int channels) {
  return (static_cast<Index>(n_levels) / 7 + 12) * channels;
}

}  // namespace marginrank
