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

// Some features of rows of hat functions, so few that their part of a table stays in the first
// level of cache while all rows of a query go through it.
struct Tile {
  const std::uint8_t* codes;
  const std::uint16_t* steps;
  const Index* starts;
  Index width;

  MARGINRANK_INLINE Tile row(Index at) const { return {codes + at, steps + at, starts, width}; }
};

constexpr Index kTileColumns = 1536;

template <class F>
MARGINRANK_INLINE void for_each_tile(const HatRows& X, F&& f) {
  for (Index first = 0, last; first < X.n_features; first = last) {
    last = first + 1;
    while (last < X.n_features && X.starts[last + 1] - X.starts[first] <= kTileColumns) ++last;
    f(Tile{X.codes + first, X.steps + first, X.starts + first, last - first}, first == 0);
  }
}

// Features four at a time: what the table has on the left of each value and on the right.
MARGINRANK_INLINE double dot(Tile x, const double* v) {
  Vec4 sums = {}, moves = {};
  Index k = 0;
  for (; k + 4 <= x.width; k += 4) {
    const Sides at_knots = sides(
        load2(v + x.starts[k] + x.codes[k]), load2(v + x.starts[k + 1] + x.codes[k + 1]),
        load2(v + x.starts[k + 2] + x.codes[k + 2]), load2(v + x.starts[k + 3] + x.codes[k + 3]));
    sums += at_knots.left;
    moves += load_steps(x.steps + k) * (at_knots.right - at_knots.left);
  }
  double s = total(sums), moved = total(moves);
  for (; k < x.width; ++k) {
    const double* const left = v + x.starts[k] + x.codes[k];
    s += left[0];
    moved += static_cast<double>(x.steps[k]) * (left[1] - left[0]);
  }
  return s + kStep * moved;
}

MARGINRANK_INLINE void add(Tile x, double z, double* out) {
  const double z_step = kStep * z;
  Index k = 0;
  for (; k + 4 <= x.width; k += 4) {
    const Vec4 right = load_steps(x.steps + k) * z_step;
    const Vec4 left = z - right;
    add2(out + x.starts[k] + x.codes[k], __builtin_shufflevector(left, right, 0, 4));
    add2(out + x.starts[k + 1] + x.codes[k + 1], __builtin_shufflevector(left, right, 1, 5));
    add2(out + x.starts[k + 2] + x.codes[k + 2], __builtin_shufflevector(left, right, 2, 6));
    add2(out + x.starts[k + 3] + x.codes[k + 3], __builtin_shufflevector(left, right, 3, 7));
  }
  for (; k < x.width; ++k) {
    double* const left = out + x.starts[k] + x.codes[k];
    const double right = static_cast<double>(x.steps[k]) * z_step;
    left[0] += z - right;
    left[1] += right;
  }
}

void dots(const HatRows& X, Range range, const double* v, double* u) {
  for_each_tile(X, [&](const Tile& tile, bool is_first) {
    for (Index i = range.first; i < range.last; ++i) {
      u[i] = (is_first ? 0.0 : u[i]) + dot(tile.row(X.at(i)), v);
    }
  });
}

void accumulate(const HatRows& X, Range range, const double* z, double* out) {
  for_each_tile(X, [&](const Tile& tile, bool) {
    for (Index i = range.first; i < range.last; ++i) {
      add(tile.row(X.at(i)), z[i - range.first], out);
    }
  });
}

}  // namespace

extern const HatKernels hats;
const HatKernels hats = {&dots, &accumulate};

}  // namespace marginrank::MARGINRANK_SIMD
