// Vectors of four doubles, for the files that are compiled once for each instruction set.
//
// Such a file has MARGINRANK_SIMD naming the set, and all it holds lives in a namespace of that
// name: the linker would keep one copy of a function that two of them share, perhaps one that the
// machine cannot run. For the same reason these files do not call the standard library.
#pragma once

#ifdef __AVX__
#include <immintrin.h>
#endif

#include "base/types.hpp"

namespace marginrank::MARGINRANK_SIMD {

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

}  // namespace marginrank::MARGINRANK_SIMD
