// A list of pairs, arranged by document.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/types.hpp"

namespace marginrank {

enum class Side { preferred, other };  // of a document in a pair

// The partners of each document: first those it is preferred to, then those preferred to it.
class Incidence {
 public:
  // Pairs are rows of two documents; `weight` is null if all weigh 1, `margin` if none has its own.
  Incidence(Index n_documents, const Index* pairs, Index n_pairs, const double* weight,
            const double* margin)
      : begin_(2 * static_cast<std::size_t>(n_documents) + 1),
        step_(2 * static_cast<std::size_t>(n_pairs)),
        weight_(weight ? step_.size() : 0),
        margin_(margin ? step_.size() : 0) {
    const Index n_ends = 2 * n_pairs;
    auto slot = [&](Index end) { return 2 * pairs[end] + end % 2; };
    for (Index end = 0; end < n_ends; ++end) ++begin_[slot(end) + 1];
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    for (Index end = 0; end < n_ends; ++end) {
      const Index k = begin_[slot(end)]++;
      step_[k] = static_cast<Position>(pairs[end ^ 1] - pairs[end]);
      if (weight) weight_[k] = weight[end / 2];
      if (margin) margin_[k] = margin[end / 2];
    }
    // Each start has moved to the next one.
    std::move_backward(begin_.begin(), begin_.end() - 1, begin_.end());
    begin_[0] = 0;
  }

  Index n_documents() const { return static_cast<Index>(begin_.size()) / 2; }

  Range partners(Index document, Side side) const {
    const Index slot = 2 * document + (side == Side::other);
    return {begin_[slot], begin_[slot + 1]};
  }
  Range partners(Range documents) const {
    return {begin_[2 * documents.first], begin_[2 * documents.last]};
  }

  // Offset of a partner from its document.
  Position step(Index k) const { return step_[k]; }
  double weight(Index k) const { return weight_.empty() ? 1.0 : weight_[k]; }
  double margin(Index k) const { return margin_.empty() ? 0.0 : margin_[k]; }

  void prefetch(Range documents) const {
    constexpr Index kLine = 64 / sizeof(Position);
    const Range all = partners(documents);
    for (Index k = all.first; k < all.last; k += kLine) {
      __builtin_prefetch(step_.data() + k);
      for (const std::vector<double>* values : {&weight_, &margin_}) {
        if (values->empty()) continue;
        __builtin_prefetch(values->data() + k);
        __builtin_prefetch(values->data() + std::min(k + kLine / 2, all.last - 1));
      }
    }
  }

 private:
  std::vector<Index> begin_;
  std::vector<Position> step_;
  std::vector<double> weight_, margin_;
};

}  // namespace marginrank
