// The types every kernel is written in.
#pragma once

#include <cstddef>
#include <cstdint>

// For functions that the inner loops share with other files. These are compiled for several
// instruction sets, and a function emitted out of line could be called on the wrong machine.
#define MARGINRANK_INLINE __attribute__((always_inline)) inline

namespace marginrank {

using Index = std::int64_t;
using Level = std::int32_t;
using Position = std::int32_t;  // of a document inside its query

// A run of consecutive documents.
struct Range {
  Index first;
  Index last;

  MARGINRANK_INLINE Index size() const { return last - first; }
};

// Eight doubles, one cache line.
struct alignas(64) Vec8 {
  double lane[8];
};

}  // namespace marginrank
