// x' H x for a vector x with few entries, where H is the Hessian of a query in score space.
#pragma once

#include <algorithm>
#include <vector>

#include "pairs/level_kernel.hpp"
#include "pairs/listed_kernel.hpp"

namespace marginrank {

// The stored entries of one column in one query, in the order of the kernel.
struct ColumnEntry {
  Index column;
  Position position;
  double value;
};

// x' H x for a vector x with few entries: the diagonal part, less twice the active pairs in which
// both documents have an entry.
class SparseQuadratic {
 public:
  SparseQuadratic(const PairKernel& kernel, const PairPoint& point)
      : problem_(kernel.problem()), point_(point) {}

  double operator()(Index q, ColumnEntry* entries, Index count) {
    const Index first = problem_.offsets[q];
    // H maps constants to zero: an offset that all documents share is subtracted, to save digits.
    if (count == problem_.documents(q).size()) {
      const double offset = entries[0].value;
      for (Index a = 0; a < count; ++a) entries[a].value -= offset;
    }
    double result = 0;
    for (Index a = 0; a < count; ++a) {
      const ColumnEntry& e = entries[a];
      result += point_.curvature[first + e.position] * e.value * e.value;
    }
    if (count < 2) return result;
    Index at = first;
    for (const Piece& piece : problem_.pieces) {
      if (piece.power != 2) continue;
      const double scale = 4.0 * piece.coefficient * problem_.query_weight[q];
      compact_windows(entries, count, first, at);
      for (int r = piece.first_rank; r < piece.last_rank; ++r) {
        result -= scale * product_over_pairs(q, entries, count, r);
      }
      at += problem_.n_documents();
    }
    return std::max(result, 0.0);
  }

 private:
  void compact_windows(const ColumnEntry* entries, Index count, Index first, Index at) {
    level_.resize(static_cast<std::size_t>(count));
    end_.resize(static_cast<std::size_t>(count));
    Position inside = 0;
    for (Index a = 0; a < count; ++a) {
      const Position limit = point_.end[at + entries[a].position];
      while (inside < count && entries[inside].position < limit) ++inside;
      end_[a] = inside;
      level_[a] = point_.level[first + entries[a].position];
    }
  }

  double product_over_pairs(Index q, const ColumnEntry* entries, Index count, int r) {
    const auto m = static_cast<std::size_t>(count);
    values_.resize(m);
    sums_.resize(m);
    for (std::size_t a = 0; a < m; ++a) {
      values_[a] = entries[a].value * weight(q, entries[a].position, r, problem_.preferred);
    }
    // Setting up the counters costs about the number of levels; short columns do without.
    const Index brute = count * count;
    if (brute <= problem_.n_levels[q] + 50 * count) {
      sum_directly(count);
    } else {
      workspace_.resize(static_cast<std::size_t>(partner_sums_workspace(problem_.n_levels[q], 1)));
      const Windows windows{static_cast<Position>(count),
                            problem_.n_levels[q],
                            problem_.width,
                            level_.data(),
                            end_.data(),
                            nullptr};
      simd().counting.partner_sums(windows, Partners::preferred, 1, values_.data(), sums_.data(),
                                   workspace_.data());
    }
    double total = 0;
    for (std::size_t a = 0; a < m; ++a) {
      total += sums_[a] * entries[a].value * weight(q, entries[a].position, r, problem_.other);
    }
    return total;
  }

  void sum_directly(Index count) {
    for (Index a = 0; a < count; ++a) {
      sums_[a] = 0;
      for (Position b = 0; b < end_[a]; ++b) {
        const Level above = level_[b] - level_[a];
        if (above > 0 && above <= problem_.width) sums_[a] += values_[b];
      }
    }
  }

  double weight(Index q, Position position, int r, const double* side) const {
    if (problem_.rank == 0) return 1.0;
    const Index first = problem_.offsets[q];
    return side[(first + point_.order[first + position]) * problem_.rank + r];
  }

  const PairProblem& problem_;
  const PairPoint& point_;
  std::vector<Level> level_;
  std::vector<Position> end_;
  std::vector<double> values_, sums_;
  std::vector<Vec8> workspace_;
};

// The same for listed pairs: each entry is compared with all partners of its document.
class ListedQuadratic {
 public:
  ListedQuadratic(const ListedKernel& kernel, const ListedPoint& point)
      : kernel_(kernel), point_(point) {}

  double operator()(Index q, const ColumnEntry* entries, Index count) {
    const Range docs = kernel_.problem().documents(q);
    if (static_cast<Index>(values_.size()) < docs.size()) {
      values_.resize(static_cast<std::size_t>(docs.size()));
    }
    for (Index a = 0; a < count; ++a) values_[entries[a].position] = entries[a].value;
    double result = 0;
    for (Index a = 0; a < count; ++a) {
      const Position t = entries[a].position;
      if (values_[t] == 0.0) continue;
      kernel_.for_each_curvature(docs.first + t, point_, [&](Position step, double c) {
        const double partner = values_[t + step], difference = values_[t] - partner;
        // A pair of two entries is visited twice.
        result += (partner == 0.0 ? 1.0 : 0.5) * c * difference * difference;
      });
    }
    for (Index a = 0; a < count; ++a) values_[entries[a].position] = 0.0;
    return std::max(result * kernel_.problem().query_weight[q], 0.0);
  }

 private:
  const ListedKernel& kernel_;
  const ListedPoint& point_;
  std::vector<double> values_;  // by position, zero between calls
};

inline SparseQuadratic sparse_quadratic(const PairKernel& kernel, const PairPoint& point) {
  return {kernel, point};
}
inline ListedQuadratic sparse_quadratic(const ListedKernel& kernel, const ListedPoint& point) {
  return {kernel, point};
}

}  // namespace marginrank
