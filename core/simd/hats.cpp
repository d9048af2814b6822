// The kernels on hat functions, compiled once for each instruction set: see vectors.hpp.
#include "simd/hats.hpp"

#include "simd/vectors.hpp"

namespace marginrank::MARGINRANK_SIMD {
namespace {

using Vec2 = double __attribute__((vector_size(16)));

MARGINRANK_INLINE Vec2 load2(const double* p) {
  Vec2 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

MARGINRANK_INLINE void add2(double* p, Vec2 v) {
  v += load2(p);
  __builtin_memcpy(p, &v, sizeof v);
}

// The halves of four doubles; GCC would take a slower instruction for the second one.
MARGINRANK_INLINE Vec2 low(Vec4 v) { return __builtin_shufflevector(v, v, 0, 1); }

MARGINRANK_INLINE Vec2 high(Vec4 v) {
#ifdef __AVX__
  return _mm256_extractf128_pd(v, 1);
#else
  return __builtin_shufflevector(v, v, 2, 3);
#endif
}

// Four steps as numbers.
MARGINRANK_INLINE Vec4 load_steps(const std::uint16_t* p) {
#ifdef __AVX2__
  return _mm256_cvtepi32_pd(
      _mm_cvtepu16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#else
  return Vec4{double(p[0]), double(p[1]), double(p[2]), double(p[3])};
#endif
}

// The left entries of four pairs, and their right ones.
struct Sides {
  Vec4 left, right;
};

MARGINRANK_INLINE Sides sides(Vec2 a, Vec2 b, Vec2 c, Vec2 d) {
  const Vec4 ac = __builtin_shufflevector(a, c, 0, 1, 2, 3);
  const Vec4 bd = __builtin_shufflevector(b, d, 0, 1, 2, 3);
  return {__builtin_shufflevector(ac, bd, 0, 4, 2, 6), __builtin_shufflevector(ac, bd, 1, 5, 3, 7)};
}

// Keeps the compiler from folding a base into the indices added to it, which would cost one more
// addition per index.
template <class T>
MARGINRANK_INLINE T* as_base(T* p) {
  __asm__("" : "+r"(p));
  return p;
}

// Some features of rows of hat functions: few enough that their part of a table stays in cache
// while all rows of a query pass through it, and enough that a store to a feature has left the
// store queue before the next row loads from it.
struct Tile {
  const std::uint8_t* codes;
  const std::uint16_t* steps;
  const Index* starts;
  Index width;
};

constexpr Index kTileColumns = 4800;
constexpr Index kMostFeatures = kTileColumns / 2;  // of a tile; each has two columns or more

template <class F>
MARGINRANK_INLINE void for_each_tile(const HatRows& X, F&& f) {
  for (Index first = 0, last; first < X.n_features; first = last) {
    last = first + 1;
    while (last < X.n_features && X.starts[last + 1] - X.starts[first] <= kTileColumns) ++last;
    f(Tile{X.codes + first, X.steps + first, X.starts + first, last - first}, first == 0);
  }
}

// The products of several rows with a table, four features of each at a time, from the table's
// entries left and right of each value. The product of a row does not depend on the other rows.
template <int n_rows>
MARGINRANK_INLINE void dot(const Tile& x, const Index (&at)[n_rows], const double* v,
                           double (&result)[n_rows]) {
  Vec4 sums[n_rows] = {}, moves[n_rows] = {};
  const std::uint8_t* codes = x.codes;
  const std::uint16_t* steps = x.steps;
  const Index whole = x.width / 4 * 4;
  for (Index k = 0; k < whole; k += 4) {
    const double* const table[4] = {as_base(v + x.starts[k]), as_base(v + x.starts[k + 1]),
                                    as_base(v + x.starts[k + 2]), as_base(v + x.starts[k + 3])};
    for (int r = 0; r < n_rows; ++r) {
      const std::uint8_t* const code = codes + at[r];
      const Sides at_knots = sides(load2(table[0] + code[0]), load2(table[1] + code[1]),
                                   load2(table[2] + code[2]), load2(table[3] + code[3]));
      sums[r] += at_knots.left;
      moves[r] += load_steps(steps + at[r]) * (at_knots.right - at_knots.left);
    }
    codes = as_base(codes + 4);
    steps = as_base(steps + 4);
  }
  for (int r = 0; r < n_rows; ++r) result[r] = total(sums[r]) + kStep * total(moves[r]);
  for (Index k = whole; k < x.width; ++k) {
    for (int r = 0; r < n_rows; ++r) {
      const double* const left = v + x.starts[k] + x.codes[at[r] + k];
      result[r] += left[0] + kStep * static_cast<double>(x.steps[at[r] + k]) * (left[1] - left[0]);
    }
  }
}

// The product of several documents with the table, added to the sums of other tiles.
template <int n_rows>
MARGINRANK_INLINE void dots_of(const HatRows& X, const Tile& tile, Index i, bool is_first,
                               const double* v, double* u) {
  Index at[n_rows];
  double s[n_rows];
  for (int r = 0; r < n_rows; ++r) at[r] = X.at(i + r);
  dot<n_rows>(tile, at, v, s);
  for (int r = 0; r < n_rows; ++r) u[i + r] = (is_first ? 0.0 : u[i + r]) + s[r];
}

void dots(const HatRows& X, Range range, const double* v, double* u) {
  constexpr int kRows = 4;
  for_each_tile(X, [&](const Tile& tile, bool is_first) {
    Index i = range.first;
    for (; i + kRows <= range.last; i += kRows) dots_of<kRows>(X, tile, i, is_first, v, u);
    for (; i < range.last; ++i) dots_of<1>(X, tile, i, is_first, v, u);
  });
}

using Columns = std::uint16_t[kMostFeatures];  // inside a tile

// `out` += z times a row. All its columns are computed first: computed one by one, each would be a
// load that waits behind the stores before it.
MARGINRANK_INLINE void add(const Tile& x, Index at, const Columns& starts, double z, double* out) {
  const std::uint8_t* const codes = x.codes + at;
  const std::uint16_t* const steps = x.steps + at;
  Columns columns;
  for (Index k = 0; k < x.width; ++k) {
    columns[k] = static_cast<std::uint16_t>(starts[k] + codes[k]);
  }
  __asm__ volatile("" : "+m"(columns));
  const double z_step = kStep * z;
  const Vec2 factor = {z_step, z_step};
  Index k = 0;
  for (; k + 4 <= x.width; k += 4) {
    const Vec4 right = load_steps(steps + k), left = double{kWholeStep} - right;
    const Vec4 even = __builtin_shufflevector(left, right, 0, 4, 2, 6);
    const Vec4 odd = __builtin_shufflevector(left, right, 1, 5, 3, 7);
    add2(as_base(out + columns[k]), factor * low(even));
    add2(as_base(out + columns[k + 1]), factor * low(odd));
    add2(as_base(out + columns[k + 2]), factor * high(even));
    add2(as_base(out + columns[k + 3]), factor * high(odd));
  }
  for (; k < x.width; ++k) {
    const double right = steps[k];
    add2(out + columns[k], factor * Vec2{double{kWholeStep} - right, right});
  }
}

void accumulate(const HatRows& X, Range range, const double* z, double* out) {
  for_each_tile(X, [&](const Tile& tile, bool) {
    Columns starts;
    for (Index k = 0; k < tile.width; ++k) {
      starts[k] = static_cast<std::uint16_t>(tile.starts[k] - tile.starts[0]);
    }
    for (Index i = range.first; i < range.last; ++i) {
      add(tile, X.at(i), starts, z[i - range.first], out + tile.starts[0]);
    }
  });
}

}  // namespace

extern const HatKernels hats;
const HatKernels hats = {&dots, &accumulate};

}  // namespace marginrank::MARGINRANK_SIMD
