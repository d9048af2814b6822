// Stochastic gradient steps: a few queries at a time, in a metric that is learned on the way.
//
// The objective is the mean over the weight of the pairs,  lambda / 2 |w|^2 + E[loss of a pair],
// and a step over a batch B of queries is  w -= eta * P g_B,  where g_B sums the gradients of the
// batch and P is the inverse of the mean Hessian seen so far, or of its diagonal.
#pragma once

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "simd/simd.hpp"
#include "sweeps/diagonal.hpp"
#include "sweeps/hessian.hpp"

namespace marginrank {

// One query as a problem of its own, whose documents start at 0.
class QueryView {
 public:
  explicit QueryView(const PairProblem& all) : all_(all), one_(all) {
    one_.n_queries = 1;
    one_.offsets = bounds_;
  }
  QueryView(const QueryView&) = delete;

  void look_at(Index q) {
    const Range docs = all_.documents(q);
    bounds_[1] = docs.size();
    if (!all_.rows) {
      rows_.resize(static_cast<std::size_t>(docs.size()));
      std::iota(rows_.begin(), rows_.end(), docs.first);
    }
    one_.rows = all_.rows ? all_.rows + docs.first : rows_.data();
    one_.level = all_.level + docs.first;
    one_.n_levels = all_.n_levels + q;
    one_.query_weight = all_.query_weight + q;
    if (all_.rank) {
      one_.preferred = all_.preferred + docs.first * all_.rank;
      one_.other = all_.other + docs.first * all_.rank;
    }
    if (all_.margin) one_.margin = all_.margin + docs.first;
    if (!point_ || docs.size() > capacity_) {
      capacity_ = docs.size();
      point_ = std::make_unique<PairPoint>(one_);
    }
  }

  const PairProblem& problem() const { return one_; }
  PairPoint& point() { return *point_; }
  Range documents() const { return {0, bounds_[1]}; }

 private:
  const PairProblem& all_;
  PairProblem one_;
  Index bounds_[2] = {0, 0};
  std::vector<Index> rows_;
  Index capacity_ = 0;
  std::unique_ptr<PairPoint> point_;
};

// What a run leaves for the next one, beside the vectors. The batch is what has been added up since
// the last step.
struct SgdCounters {
  double batch_value;
  double batch_weight;
  double batch_entries;
  double batch_documents;
  double steps;
  double weight;      // of all pairs in steps so far
  double seen;        // the same, where no total is given: a second pass over a total adds nothing
  double value;       // of all batches at the weights before their step, the regulariser included
  double documents;   // that have been looked at
  double collecting;  // whether Hessians are added up
  double curvature_weight;
  double next_event;  // documents at which the caller has something to do
};

struct SgdOptions {
  double ridge;                // lambda is ridge / total,
  double total;                // or ridge / (the weight seen so far) if the total is 0
  double batch_entries;        // least size of a batch in stored entries of X,
  double first_batch;          // and that of the first in documents
  double rate, offset, power;  // the step t is rate * (offset + t)^-power of a Newton step
};

struct SgdState {
  Index n;
  double* w;
  double* average;
  double* gradient;       // of the batch
  double* curvature;      // sum of Hessians, n x n, or of their diagonals, n
  const double* inverse;  // of the same shape: P
  bool full;              // n x n
  SgdCounters* counters;
};

// Takes a step over the batch and empties it.
inline void sgd_step(SgdState& state, const SgdOptions& options) {
  constexpr double kLatest = 4;  // the average weighs step t about as t^(kLatest - 1)
  SgdCounters& c = *state.counters;
  const Index n = state.n;
  const double t = ++c.steps;
  c.weight += c.batch_weight;
  if (options.total == 0) c.seen += c.batch_weight;
  const double lambda = options.ridge / (options.total > 0 ? options.total : c.seen);
  const double share = lambda * c.batch_weight;
  double value =
      c.batch_value + 0.5 * share * std::inner_product(state.w, state.w + n, state.w, 0.0);
  for (Index j = 0; j < n; ++j) state.gradient[j] += share * state.w[j];
  std::vector<double> direction(static_cast<std::size_t>(n));
  if (state.full) {
    simd().rows<double>().dots({state.inverse, n, n, nullptr}, {0, n}, state.gradient,
                               direction.data());
  } else {
    for (Index j = 0; j < n; ++j) direction[j] = state.inverse[j] * state.gradient[j];
  }
  const double slope = std::inner_product(direction.begin(), direction.end(), state.gradient, 0.0);
  const double newton = options.rate * std::pow(options.offset + t, -options.power) * t / c.weight;
  // Polyak's step would bring the batch's loss to zero if it were linear; more is never right.
  const double eta = slope > 0 ? std::min(newton, value / slope) : 0.0;
  const double latest = kLatest / (t + kLatest - 1);
  for (Index j = 0; j < n; ++j) {
    state.w[j] -= eta * direction[j];
    state.average[j] += latest * (state.w[j] - state.average[j]);
  }
  c.value += value;
  std::fill_n(state.gradient, n, 0.0);
  c.batch_value = c.batch_weight = c.batch_entries = c.batch_documents = 0;
}

template <class Matrix>
class SgdRun {
 public:
  // `curved` holds the same pairs with a loss that has a Hessian.
  SgdRun(const Matrix& X, const PairProblem& pairs, const PairProblem& curved, const double* weight,
         const SgdOptions& options, SgdState& state, int threads)
      : X_(X),
        pairs_(pairs),
        curved_(curved),
        weight_(weight),
        options_(options),
        state_(state),
        threads_(threads) {}

  // Works on the given queries until the next event; returns how many of them are done.
  Index operator()(const Index* order, Index count) {
    SgdCounters& c = *state_.counters;
    if (is_due()) sgd_step(state_, options_);
    for (Index k = 0; k < count; ++k) {
      add_query(order[k]);
      if (c.documents >= c.next_event) return k + 1;
      if (is_due()) sgd_step(state_, options_);
    }
    return count;
  }

 private:
  static constexpr Index kWorthThreads = Index{1} << 24;  // products; less is done sooner alone

  bool is_due() const {
    const SgdCounters& c = *state_.counters;
    const bool filled = c.batch_weight > 0 && c.batch_entries >= options_.batch_entries;
    return filled && (c.steps > 0 || c.batch_documents >= options_.first_batch);
  }

  void add_query(Index q) {
    SgdCounters& c = *state_.counters;
    pairs_.look_at(q);
    const Range docs = pairs_.documents();
    scores_.resize(static_cast<std::size_t>(docs.size()));
    slopes_.resize(scores_.size());
    const Index* rows = pairs_.problem().rows;
    X_.dots(rows, docs, state_.w, scores_.data());
    const PairKernel kernel(pairs_.problem());
    c.batch_value +=
        kernel.evaluate(0, scores_.data(), slopes_.data(), pairs_.point(), nullptr, scratch_).value;
    X_.accumulate_then_dots(rows, docs, slopes_.data(), state_.gradient, {docs.last, docs.last},
                            nullptr, nullptr);
    const auto size = static_cast<double>(docs.size());
    c.batch_weight += weight_[q];
    c.batch_entries += static_cast<double>(X_.entries(rows, docs));
    c.batch_documents += size;
    c.documents += size;
    if (c.collecting != 0.0) add_curvature(q);
  }

  void add_curvature(Index q) {
    curved_.look_at(q);
    const PairKernel kernel(curved_.problem());
    kernel.evaluate(0, scores_.data(), slopes_.data(), curved_.point(), nullptr, scratch_);
    const Index size = state_.full ? state_.n * state_.n : state_.n;
    part_.resize(static_cast<std::size_t>(size));
    const int threads = curved_.documents().size() * size < kWorthThreads ? 1 : threads_;
    if (state_.full) {
      hessian(X_, kernel, curved_.point(), part_.data(), threads);
    } else {
      hess_diag(X_, kernel, curved_.point(), part_.data(), threads);
    }
    for (Index j = 0; j < size; ++j) state_.curvature[j] += part_[j];
    state_.counters->curvature_weight += weight_[q];
  }

  const Matrix& X_;
  QueryView pairs_, curved_;
  const double* weight_;
  const SgdOptions& options_;
  SgdState& state_;
  int threads_;
  std::vector<double> scores_, slopes_, part_;
  Scratch scratch_;
};

}  // namespace marginrank
