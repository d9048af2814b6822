// Kernels on rows of hat functions: see matrix/hats.hpp.
#pragma once

#include <cstdint>

#include "base/types.hpp"

namespace marginrank {

constexpr std::uint16_t kWholeStep = 1 << 15;       // p = 1
constexpr double kStep = 1.0 / double{kWholeStep};  // a power of two, so that p is exact

// Rows in document order: document i is row rows[i], or row i without `rows`.
struct HatRows {
  const std::uint8_t* codes;
  const std::uint16_t* steps;
  const Index* starts;
  Index n_features;
  const Index* rows;

  MARGINRANK_INLINE Index at(Index i) const { return (rows ? rows[i] : i) * n_features; }
};

struct HatKernels {
  // u[i] = h_i . v for the documents of `range`.
  void (*dots)(const HatRows& X, Range range, const double* v, double* u);

  // out += sum of z[i - range.first] h_i over `range`.
  void (*accumulate)(const HatRows& X, Range range, const double* z, double* out);
};

}  // namespace marginrank
