// One query of a problem as a separate problem, with memory for that query only.
#pragma once

#include <memory>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "pairs/level_kernel.hpp"
#include "pairs/listed_kernel.hpp"

namespace marginrank {

// Sets in `one` what only this kind of pairs has, for the documents of query q.
inline void select_pairs(const PairProblem& all, Index q, PairProblem& one) {
  const Index first = all.offsets[q];
  one.level = all.level + first;
  one.n_levels = all.n_levels + q;
  if (!all.rank) return;
  one.preferred = all.preferred + first * all.rank;
  one.other = all.other + first * all.rank;
}
inline void select_pairs(const ListedProblem& all, Index q, ListedProblem& one) {
  one.first = all.first + all.offsets[q];
}

// A query whose documents start at 0.
template <class Kernel>
class QueryView {
 public:
  using Problem = std::decay_t<decltype(std::declval<const Kernel&>().problem())>;
  using Point = typename Kernel::Point;

  explicit QueryView(const Problem& all) : all_(all), one_(all) {
    one_.n_queries = 1;
    one_.offsets = bounds_;
  }
  QueryView(const QueryView&) = delete;

  void select(Index q) {
    const Range docs = all_.documents(q);
    bounds_[1] = docs.size();
    if (!all_.rows) {
      rows_.resize(static_cast<std::size_t>(docs.size()));
      std::iota(rows_.begin(), rows_.end(), docs.first);
    }
    one_.rows = all_.rows ? all_.rows + docs.first : rows_.data();
    one_.query_weight = all_.query_weight + q;
    if (all_.margin) one_.margin = all_.margin + docs.first;
    select_pairs(all_, q, one_);
    if (!point_ || docs.size() > capacity_) {
      capacity_ = docs.size();
      point_ = std::make_unique<Point>(one_);
    }
  }

  const Problem& problem() const { return one_; }
  Point& point() { return *point_; }
  Range documents() const { return {0, bounds_[1]}; }

 private:
  const Problem& all_;
  Problem one_;
  Index bounds_[2] = {0, 0};
  std::vector<Index> rows_;
  Index capacity_ = 0;
  std::unique_ptr<Point> point_;
};

}  // namespace marginrank
