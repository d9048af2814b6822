// Small things every kernel needs.
#pragma once

#include <cstddef>
#include <cstdint>

// For what simd.cpp shares with other files: it is compiled for several instruction sets, and a
// function that were emitted out of line could end up being called on the wrong machine.
#define MARGINRANK_INLINE __attribute__((always_inline)) inline

namespace marginrank {

using Index = std::int64_t;
using Level = std::int32_t;
using Position = std::int32_t;  // of a document inside its query

// Eight doubles, one cache line.
struct alignas(64) Vec8 {
  double lane[8];
};

}  // namespace marginrank
