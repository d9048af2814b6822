// The kernels on rows, compiled once for each instruction set: see vectors.hpp.
#include "simd/rows.hpp"

#include "simd/row_tiles.hpp"
#include "simd/vectors.hpp"

namespace marginrank::MARGINRANK_SIMD {
namespace {

constexpr Index kRowsAhead = 4;  // how far to prefetch ahead of the row in work

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

// One row at a time, because the hardware prefetcher follows one stream far better than several. It
// stops during the work in between, so the columns of a later row are prefetched explicitly.
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

// Prefetches the cache lines of four rows around column j, some of them in each step of four
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

// Four rows per pass, so `out` is loaded and stored a quarter as often.
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

// Four documents per pass, so `block` is loaded and stored a quarter as often.
template <class T>
void rank_update(const T* const* x, Index count, Index first, Index n, const Vec8* values,
                 Vec8* block) {
  Index i = 0;
  for (; i + 4 <= count; i += 4) rank_update_of<4>(x + i, first, n, values + i, block);
  for (; i < count; ++i) rank_update_of<1>(x + i, first, n, values + i, block);
}

template <class T>
constexpr RowKernels<T> row_kernels() {
  return {&sum<T>,          &raise_magnitudes<T>, &dots<T>,       &accumulate_then_dots<T>,
          &dots_of_many<T>, &accumulate_many<T>,  &rank_update<T>};
}

}  // namespace

extern const DenseKernels dense;
const DenseKernels dense = {row_kernels<float>(), row_kernels<double>()};

}  // namespace marginrank::MARGINRANK_SIMD
