// The blocks that a sweep is cut into, and their sums.
//
// Blocks depend on the data alone, and their sums are added in their order, so results are
// bitwise the same for any number of threads.
#pragma once

#include <algorithm>
#include <vector>

#include "matrix/parts.hpp"
#include "pairs/documents.hpp"

namespace marginrank {

struct Block {
  Range queries;
  Range documents;
  bool whole;  // whole queries, not a part of one
  bool fused;  // whole queries that fit in cache
};

constexpr double kCacheBytes = 8 << 20;  // rows of one query beyond this leave the cache

inline std::vector<Block> make_blocks(const Documents& problem, double bytes_per_row) {
  const Index target = std::max(problem.n_documents() / kBlocks, kSmallBlock);
  std::vector<Block> blocks;
  Block open{{0, 0}, {0, 0}, true, true};
  auto close = [&](Index q) {
    if (open.documents.size() > 0) blocks.push_back(open);
    open = {{q, q}, {problem.offsets[q], problem.offsets[q]}, true, true};
  };
  for (Index q = 0; q < problem.n_queries; ++q) {
    const Range docs = problem.documents(q);
    if (docs.size() > target || static_cast<double>(docs.size()) * bytes_per_row > kCacheBytes) {
      close(q);
      for (Index i = docs.first; i < docs.last; i += target) {
        blocks.push_back(
            {{q, q + 1}, {i, std::min(i + target, docs.last)}, docs.size() <= target, false});
      }
      close(q + 1);
      continue;
    }
    open.queries.last = q + 1;
    open.documents.last = docs.last;
    if (open.documents.size() >= target) close(q + 1);
  }
  close(problem.n_queries);
  return blocks;
}

// The indices of some blocks: a loop over blocks without work would only wake threads up.
template <class Condition>
std::vector<Index> blocks_where(const std::vector<Block>& blocks, Condition&& condition) {
  std::vector<Index> chosen;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (condition(blocks[b])) chosen.push_back(static_cast<Index>(b));
  }
  return chosen;
}

// A vector of n sums for each block, kept two cache lines apart: adjacent blocks belong to
// different threads, which must not write to one line.
class Partials {
 public:
  Partials(std::size_t n_blocks, Index n)
      : n_(n), lines_(static_cast<std::size_t>(n) / 8 + 3), sums_(n_blocks * lines_) {}

  double* operator[](std::size_t block) { return sums_[block * lines_].lane; }

  void add_up(double* out) {
    std::fill_n(out, n_, 0.0);
    for (std::size_t block = 0; block * lines_ < sums_.size(); ++block) {
      const double* part = (*this)[block];
      for (Index j = 0; j < n_; ++j) out[j] += part[j];
    }
  }

 private:
  Index n_;
  std::size_t lines_;
  std::vector<Vec8> sums_;
};

}  // namespace marginrank
