// Results of an evaluation, as returned to Python.
#pragma once

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "bindings/pairs.hpp"
#include "sweeps/objective.hpp"

namespace marginrank {

// Columns value, value size and slope size of a QueryLoss, zero for queries without documents.
class QueryLosses {
 public:
  explicit QueryLosses(const Pairs& pairs)
      : table_(new_matrix<double>(static_cast<std::size_t>(pairs.documents().n_queries),
                                  sizeof(QueryLoss) / sizeof(double))) {
    std::fill_n(table_.data(), table_.size(), 0.0);
  }
  std::span<QueryLoss> rows() {
    return {reinterpret_cast<QueryLoss*>(table_.data()), table_.shape(0)};
  }
  const Result2<double>& table() const { return table_; }

 private:
  Result2<double> table_;
};

// The state of a point whose order a new one may start from; null if there is none.
template <class State>
const State* guess_from(const Point* like, const Pairs& pairs) {
  return like && like->pairs().same_queries(pairs) ? like->get<State>() : nullptr;
}

// Results for a w, to be filled in.
struct Evaluation {
  Result1<double> scores, z, gradient;
  QueryLosses losses;
  Point point;

  Evaluation(const nb::object& owner, const Matrix& X)
      : Evaluation(owner, nb::cast<Pairs&>(owner), static_cast<std::size_t>(X.n_columns())) {}

  SweepVectors vectors(const Array1<double>& w) {
    return {span_of(w), span_of(scores), span_of(gradient)};
  }

  // Where a kernel writes to; `state` is that of the point.
  template <class Kernel>
  LossTarget<Kernel> target(const Kernel&, typename Kernel::Point& state, const Point* like) {
    return {losses.rows(), span_of(z), state,
            guess_from<typename Kernel::Point>(like, point.pairs())};
  }

  // (QueryLoss by query, score gradient, gradient, scores, point)
  auto tuple() && { return std::make_tuple(losses.table(), z, gradient, scores, std::move(point)); }

 private:
  Evaluation(const nb::object& owner, Pairs& pairs, std::size_t n_columns)
      : scores(pairs.new_scores()),
        z(new_array<double>(pairs.n_documents())),
        gradient(new_array<double>(n_columns)),
        losses(pairs),
        point(owner) {}
};

}  // namespace marginrank
