// Rows whose columns are stored side by side in small types, and how they become numbers again.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/parallel.hpp"
#include "base/types.hpp"

namespace marginrank {

// Converts a half to the float of the same value. It uses integers and one difference of normal
// numbers, so it is exact even if the thread flushes subnormals, and loops over it vectorize.
inline float float_of_half(std::uint16_t half) {
  constexpr std::uint32_t kExponent = 0x7C00u << 13, kRebias = (127u - 15u) << 23;
  constexpr std::uint32_t kSmallestNormal = 113u << 23;  // 2^-14
  const std::uint32_t magnitude = (half & 0x7FFFu) << 13;
  const std::uint32_t exponent = magnitude & kExponent;
  const std::uint32_t infinite = exponent == kExponent ? kRebias : 0;
  const std::uint32_t normal = magnitude + kRebias + infinite;
  const float subnormal =
      std::bit_cast<float>(magnitude + kSmallestNormal) - std::bit_cast<float>(kSmallestNormal);
  const std::uint32_t bits = exponent == 0 ? std::bit_cast<std::uint32_t>(subnormal) : normal;
  return std::bit_cast<float>(bits | (half & 0x8000u) << 16);
}

// How many columns a row has of each type, in the order in which they lie in it.
enum PackedType { kFloat64, kFloat32, kFloat16, kUint16, kUint8, kPackedTypes };
using PackedCounts = std::array<Index, kPackedTypes>;
constexpr std::array<Index, kPackedTypes> kPackedSizes{8, 4, 2, 2, 1};

inline Index packed_row_bytes(const PackedCounts& counts) {
  Index bytes = 0;
  for (std::size_t type = 0; type < kPackedTypes; ++type)
    bytes += counts[type] * kPackedSizes[type];
  return bytes;
}

// Reads `n` numbers of a type, which need not be aligned, as numbers of another; returns their end.
template <class Stored, class T, class Convert>
const std::byte* unpack(const std::byte* from, Index n, T* to, Convert convert) {
  for (Index i = 0; i < n; ++i) {
    Stored value;
    std::memcpy(&value, from + i * sizeof(Stored), sizeof(Stored));
    to[i] = static_cast<T>(convert(value));
  }
  return from + n * sizeof(Stored);
}

// One row in the order of its bytes.
template <class T>
void unpack_row(const std::byte* row, const PackedCounts& counts, T* to) {
  const auto same = [](auto value) { return value; };
  row = unpack<double>(row, counts[kFloat64], to, same);
  to += counts[kFloat64];
  row = unpack<float>(row, counts[kFloat32], to, same);
  to += counts[kFloat32];
  row = unpack<std::uint16_t>(row, counts[kFloat16], to, float_of_half);
  to += counts[kFloat16];
  row = unpack<std::uint16_t>(row, counts[kUint16], to, same);
  to += counts[kUint16];
  unpack<std::uint8_t>(row, counts[kUint8], to, same);
}

// Rows of packed bytes as rows of numbers; column k is the number `position[k]` of a packed row.
template <class T>
void unpack_rows(const std::byte* packed, Index n_rows, const PackedCounts& counts,
                 const Index* position, Index n_columns, T* out, int threads) {
  constexpr Index kBlock = Index{1} << 16;  // numbers, that a thread takes at a time
  const Index bytes = packed_row_bytes(counts);
  const Index rows_a_block = std::max<Index>(kBlock / n_columns, 1);
  const Index n_blocks = (n_rows + rows_a_block - 1) / rows_a_block;
  const auto make = [&] { return std::vector<T>(static_cast<std::size_t>(n_columns)); };
  parallel_for(n_blocks, threads, make, [&](Index block, std::vector<T>& row) {
    const Index last = std::min(n_rows, (block + 1) * rows_a_block);
    for (Index i = block * rows_a_block; i < last; ++i) {
      unpack_row(packed + i * bytes, counts, row.data());
      T* to = out + i * n_columns;
      for (Index k = 0; k < n_columns; ++k) to[k] = row[position[k]];
    }
  });
}

}  // namespace marginrank
