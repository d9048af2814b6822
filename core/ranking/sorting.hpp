// The order of a query's documents by score.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "base/types.hpp"

namespace marginrank {

struct Keyed {
  double key;
  Position document;

  // Ties are broken by document, so the order does not depend on the initial permutation.
  bool operator<(const Keyed& other) const {
    return key < other.key || (key == other.key && document < other.document);
  }
};

// Insertion sort that gives up, leaving a permutation, once it has moved entries `budget` places.
inline bool insertion_sort(std::vector<Keyed>& entries, Index budget) {
  for (std::size_t i = 1; i < entries.size(); ++i) {
    const Keyed entry = entries[i];
    std::size_t j = i;
    for (; j > 0 && entry < entries[j - 1]; --j) entries[j] = entries[j - 1];
    entries[j] = entry;
    budget -= static_cast<Index>(i - j);
    if (budget < 0) return false;
  }
  return true;
}

// The key in single precision as an integer of the same order, and the position it stands at.
inline std::uint64_t packed_key(double key, std::size_t position) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(key) + 0.0f);  // -0 becomes 0
  const std::uint32_t sign = std::uint32_t{1} << 31;
  const std::uint32_t ordered = bits & sign ? ~bits : bits | sign;
  return std::uint64_t{ordered} << 32 | position;
}

// Radix sort by the upper 32 bits, one byte per pass from the lowest.
inline void radix_sort(std::vector<std::uint64_t>& keys, std::vector<std::uint64_t>& buffer) {
  std::array<std::array<std::uint32_t, 256>, 4> start{};
  for (const std::uint64_t k : keys) {
    for (int pass = 0; pass < 4; ++pass) ++start[pass][(k >> (32 + 8 * pass)) & 255];
  }
  buffer.resize(keys.size());
  for (int pass = 0; pass < 4; ++pass) {
    std::uint32_t total = 0;
    for (std::uint32_t& s : start[pass]) total += std::exchange(s, total);
    for (const std::uint64_t k : keys) buffer[start[pass][(k >> (32 + 8 * pass)) & 255]++] = k;
    keys.swap(buffer);
  }
}

class ScoreSorter {
 public:
  std::vector<Keyed> entries;  // to be sorted; fastest if already nearly in order

  // Sorts finite keys. Nearly sorted input is finished by insertion; otherwise a radix sort on
  // single precision brings it close first.
  void sort() {
    const auto size = static_cast<Index>(entries.size());
    if (insertion_sort(entries, size / 2)) return;
    packed_.resize(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) packed_[i] = packed_key(entries[i].key, i);
    if (size < 64) {
      std::sort(packed_.begin(), packed_.end());
    } else {
      radix_sort(packed_, buffer_);
    }
    unsorted_.swap(entries);
    entries.resize(packed_.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      entries[i] = unsorted_[packed_[i] & 0xFFFFFFFF];
    }
    if (!insertion_sort(entries, 8 * size)) std::sort(entries.begin(), entries.end());
  }

 private:
  std::vector<std::uint64_t> packed_, buffer_;
  std::vector<Keyed> unsorted_;
};

}  // namespace marginrank
