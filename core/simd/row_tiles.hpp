// Dot products and sums of rows for several vectors at once, compiled once for each instruction
// set: see vectors.hpp.
//
// A tile is a few rows times a few vectors: every loaded entry of a row serves all of the vectors,
// and vice versa. Each (row, vector) has its own sum, in the order of the columns or rows, so the
// result for one vector depends neither on the other vectors nor on where tiles begin.
#pragma once

#include "simd/rows.hpp"
#include "simd/vectors.hpp"

namespace marginrank::MARGINRANK_SIMD {

constexpr Index kTileVectors = 4;
// As many rows as keep one number per row and vector in registers, with some to spare.
#ifdef __AVX512VL__
constexpr Index kTileRows = 6;
#elif defined(__AVX__)
constexpr Index kTileRows = 3;
#else
constexpr Index kTileRows = 2;
#endif

template <Index n>
struct Constant {
  static constexpr Index value = n;
};

// Loops over registers: GCC leaves arrays in memory if it unrolls the loops too late.
#define MARGINRANK_UNROLL _Pragma("GCC unroll 8")

template <Index rows, class T>
struct RowTile {
  const T* x[rows];
  Index n;               // columns
  const T* later[rows];  // rows to fetch meanwhile
  Index n_later;

  // f(j) for the columns, four at a time; returns the first that is left.
  template <class F>
  MARGINRANK_INLINE Index for_each4(F&& f) const {
    constexpr Index kLine = 64 / sizeof(T);
    // One row after the other, because memory is far faster when read sequentially.
    Index row = 0, column = 0;
    auto fetch = [&] {
      for (Index r = 0; r < n_later; ++r) {
        __builtin_prefetch(later[row] + column);
        column += kLine;
        if (column >= n) {
          column = 0;
          ++row;
        }
      }
    };
    Index j = 0;
    for (; j + kLine <= n; j += kLine) {
      fetch();
      for (Index k = 0; k < kLine; k += 4) f(j + k);
    }
    if (j < n) fetch();
    for (; j + 4 <= n; j += 4) f(j);
    return j;
  }
};

// The total of each, independent of the others.
template <Index count>
MARGINRANK_INLINE void totals(const Vec4 (&v)[count], double (&s)[count]) {
#ifdef __AVX__
  if constexpr (count == 4) {
    const Vec4 low = _mm256_hadd_pd(v[0], v[1]), high = _mm256_hadd_pd(v[2], v[3]);
    store4(s, _mm256_permute2f128_pd(low, high, 0x20) + _mm256_permute2f128_pd(low, high, 0x31));
    return;
  }
#endif
  MARGINRANK_UNROLL
  for (Index k = 0; k < count; ++k) s[k] = total(v[k]);
}

// u[k][i + r] = row r . v[k]
template <Index vectors, Index rows, class T>
MARGINRANK_INLINE void dots_of_tile(const RowTile<rows, T>& tile, const double* const* v, Index i,
                                    double* const* u) {
  const double* from[vectors];
  Vec4 sum[rows][vectors];
  MARGINRANK_UNROLL
  for (Index k = 0; k < vectors; ++k) {
    from[k] = v[k];
    MARGINRANK_UNROLL
    for (Index r = 0; r < rows; ++r) sum[r][k] = Vec4{};
  }
  const Index rest = tile.for_each4([&](Index j) {
    Vec4 x[rows];
    MARGINRANK_UNROLL
    for (Index r = 0; r < rows; ++r) x[r] = load4(tile.x[r] + j);
    MARGINRANK_UNROLL
    for (Index k = 0; k < vectors; ++k) {
      const Vec4 v_k = load4(from[k] + j);
      MARGINRANK_UNROLL
      for (Index r = 0; r < rows; ++r) sum[r][k] += x[r] * v_k;
    }
  });
  MARGINRANK_UNROLL
  for (Index r = 0; r < rows; ++r) {
    double s[vectors];
    totals(sum[r], s);
    MARGINRANK_UNROLL
    for (Index k = 0; k < vectors; ++k) {
      for (Index j = rest; j < tile.n; ++j) s[k] += static_cast<double>(tile.x[r][j]) * from[k][j];
      u[k][i + r] = s[k];
    }
  }
}

// out[k] += z[k][at + r] * row r, for one row after the other
template <Index vectors, Index rows, class T>
MARGINRANK_INLINE void accumulate_tile(const RowTile<rows, T>& tile, const double* const* z,
                                       Index at, double* const* out) {
  double* to[vectors];
  Vec4 factor[rows][vectors];
  MARGINRANK_UNROLL
  for (Index k = 0; k < vectors; ++k) {
    to[k] = out[k];
    MARGINRANK_UNROLL
    for (Index r = 0; r < rows; ++r) factor[r][k] = Vec4{} + z[k][at + r];
  }
  const Index rest = tile.for_each4([&](Index j) {
    Vec4 x[rows];
    MARGINRANK_UNROLL
    for (Index r = 0; r < rows; ++r) x[r] = load4(tile.x[r] + j);
    MARGINRANK_UNROLL
    for (Index k = 0; k < vectors; ++k) {
      Vec4 sum = load4(to[k] + j);
      MARGINRANK_UNROLL
      for (Index r = 0; r < rows; ++r) sum += x[r] * factor[r][k];
      store4(to[k] + j, sum);
    }
  });
  for (Index j = rest; j < tile.n; ++j) {
    for (Index k = 0; k < vectors; ++k) {
      for (Index r = 0; r < rows; ++r) {
        to[k][j] += static_cast<double>(tile.x[r][j]) * factor[r][k][0];
      }
    }
  }
}

// f(tile, its number of vectors as a Constant, the first of them) for the rows from i on. The rows
// after them that come before `stop` are fetched meanwhile, each by one tile.
template <Index rows, class T, class F>
MARGINRANK_INLINE void for_each_tile(const DenseRows<T>& X, Index i, Index stop, Index count,
                                     F&& f) {
  RowTile<rows, T> tile;
  tile.n = X.n_columns;
  for (Index r = 0; r < rows; ++r) tile.x[r] = X[i + r];
  const Index n_tiles = (count + kTileVectors - 1) / kTileVectors;
  for (Index t = 0; t < n_tiles; ++t) {
    const Index first = i + rows + rows * t / n_tiles;
    const Index last = smaller(i + rows + rows * (t + 1) / n_tiles, stop);
    tile.n_later = 0;
    for (Index later = first; later < last; ++later) tile.later[tile.n_later++] = X[later];
    // Tiles get about equally many vectors: with few, the processor would wait for their sums.
    const Index k = count * t / n_tiles;
    switch (count * (t + 1) / n_tiles - k) {
      case 1:
        f(tile, Constant<1>(), k);
        break;
      case 2:
        f(tile, Constant<2>(), k);
        break;
      case 3:
        f(tile, Constant<3>(), k);
        break;
      default:
        f(tile, Constant<4>(), k);
    }
  }
}

// The same for all rows of a range, f(tile, number of vectors, first vector, first row).
template <class T, class F>
MARGINRANK_INLINE void for_all_tiles(const DenseRows<T>& X, Range range, Index stop, Index count,
                                     F&& f) {
  Index i = range.first;
  auto here = [&](const auto& tile, auto vectors, Index k) { f(tile, vectors, k, i); };
  for (; i + kTileRows <= range.last; i += kTileRows) {
    for_each_tile<kTileRows>(X, i, stop, count, here);
  }
  for (; i < range.last; ++i) for_each_tile<1>(X, i, stop, count, here);
}

template <class T>
void dots_of_many(const DenseRows<T>& X, Range range, Index stop, const double* const* v,
                  Index count, double* const* u) {
  for_all_tiles(X, range, stop, count, [&](const auto& tile, auto vectors, Index k, Index i) {
    dots_of_tile<decltype(vectors)::value>(tile, v + k, i, u + k);
  });
}

template <class T>
void accumulate_many(const DenseRows<T>& X, Range range, const double* const* z, Index count,
                     double* const* out) {
  for_all_tiles(X, range, range.last, count, [&](const auto& tile, auto vectors, Index k, Index i) {
    accumulate_tile<decltype(vectors)::value>(tile, z + k, i - range.first, out + k);
  });
}

#undef MARGINRANK_UNROLL

}  // namespace marginrank::MARGINRANK_SIMD
