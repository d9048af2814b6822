// Stochastic gradient steps: a few queries at a time, in a metric that is estimated along the way.
//
// The objective is the mean over the weight of the pairs,
// lambda / 2 sum_j penalty_j w_j^2 + E[loss of a pair],
// and a step over a batch B of queries is  w -= eta * P g_B,  where g_B sums the gradients of the
// batch and P is the inverse of the mean Hessian seen so far, or of its diagonal.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "pairs/query_view.hpp"
#include "simd/simd.hpp"
#include "sweeps/diagonal.hpp"
#include "sweeps/hessian.hpp"

namespace marginrank {

struct SgdOptions {
  double ridge;                // lambda is ridge / total,
  double total;                // or ridge / (the weight seen so far) if the total is 0
  double rate, offset, power;  // the step t is rate * (offset + t)^-power of a Newton step
};

// Sums since the last step.
struct SgdBatch {
  double value = 0;
  double weight = 0;
  Index entries = 0;  // stored entries of X
  Index documents = 0;
};

struct SgdState {
  Index n_features;
  bool full;                    // whether the metric is a matrix, not a diagonal
  Index first_batch;            // least number of documents before the first step
  std::vector<double> penalty;  // of the square of each weight
  std::vector<double> w;
  std::vector<double> average;
  std::vector<double> gradient;   // of the batch
  std::vector<double> curvature;  // sum of Hessians, n x n, or of their diagonals, n
  std::vector<double> inverse;    // of the same shape: P
  SgdBatch batch;
  Index steps = 0;
  Index documents = 0;  // visited so far
  double weight = 0;    // of all pairs in steps so far
  double seen = 0;   // the same, where no total is given: a second pass over a total adds nothing
  double value = 0;  // of all batches at the weights before their step, including the regularizer
  double curvature_weight = 0;
  bool collecting = true;  // whether Hessians are added up
  double next_event = 0;   // number of documents at which to return to the caller

  SgdState(Index n, bool full_metric, Index least_first_batch)
      : n_features(n),
        full(full_metric),
        first_batch(least_first_batch),
        penalty(static_cast<std::size_t>(n), 1.0),
        w(penalty.size()),
        average(w.size()),
        gradient(w.size()),
        curvature(full ? w.size() * w.size() : w.size()),
        inverse(curvature.size()) {}

  bool event_is_due() const { return static_cast<double>(documents) >= next_event; }

  // A step costs O(n^2) with a full P, so it waits until the batch is large enough.
  bool step_is_due() const {
    const bool filled = batch.weight > 0 && 2 * batch.entries >= static_cast<Index>(inverse.size());
    return filled && (steps > 0 || batch.documents >= first_batch);
  }

  // Takes a step over the batch and empties it.
  void step(const SgdOptions& options) {
    constexpr double kLatest = 4;  // the average weighs step t about as t^(kLatest - 1)
    const auto t = static_cast<double>(++steps);
    weight += batch.weight;
    if (options.total == 0) seen += batch.weight;
    const double lambda = options.ridge / (options.total > 0 ? options.total : seen);
    const double share = lambda * batch.weight;
    double norm = 0;
    for (Index j = 0; j < n_features; ++j) {
      const double penalised = penalty[j] * w[j];
      norm += penalised * w[j];
      gradient[j] += share * penalised;
    }
    const double batch_value = batch.value + 0.5 * share * norm;
    const std::vector<double> direction = apply_metric(gradient);
    const double slope =
        std::inner_product(direction.begin(), direction.end(), gradient.begin(), 0.0);
    const double newton = options.rate * std::pow(options.offset + t, -options.power) * t / weight;
    // Polyak's step would bring the batch's loss to zero if it were linear; more is never right.
    const double eta = slope > 0 ? std::min(newton, batch_value / slope) : 0.0;
    const double latest = kLatest / (t + kLatest - 1);
    for (Index j = 0; j < n_features; ++j) {
      w[j] -= eta * direction[j];
      average[j] += latest * (w[j] - average[j]);
    }
    value += batch_value;
    std::fill(gradient.begin(), gradient.end(), 0.0);
    batch = {};
  }

  // Keeps a share of the Hessians so far.
  void scale_curvature(double share) {
    for (double& c : curvature) c *= share;
    curvature_weight *= share;
  }

 private:
  // P g
  std::vector<double> apply_metric(const std::vector<double>& g) const {
    std::vector<double> direction(g.size());
    if (full) {
      simd().rows<double>().dots({inverse.data(), n_features, n_features, nullptr}, {0, n_features},
                                 g.data(), direction.data());
    } else {
      for (std::size_t j = 0; j < g.size(); ++j) direction[j] = inverse[j] * g[j];
    }
    return direction;
  }
};

template <class Matrix, class Kernel>
class SgdRun {
 public:
  // `curved` holds the same pairs with a loss that has a Hessian; `weight` has one entry per query.
  SgdRun(const Matrix& X, const Kernel& pairs, const Kernel& curved, const double* weight,
         const SgdOptions& options, SgdState& state, int threads)
      : X_(X),
        pairs_(pairs.problem()),
        curved_(curved.problem()),
        weight_(weight),
        options_(options),
        state_(state),
        threads_(threads) {}

  // Works on the given queries until the next event; returns how many of them are done.
  Index operator()(const Index* order, Index count) {
    if (state_.step_is_due()) state_.step(options_);
    for (Index k = 0; k < count; ++k) {
      add_query(order[k]);
      if (state_.event_is_due()) return k + 1;
      if (state_.step_is_due()) state_.step(options_);
    }
    return count;
  }

 private:
  static constexpr Index kWorthThreads = Index{1} << 24;  // products that are worth threads

  void add_query(Index q) {
    pairs_.select(q);
    const Range docs = pairs_.documents();
    scores_.resize(static_cast<std::size_t>(docs.size()));
    slopes_.resize(scores_.size());
    const Index* rows = pairs_.problem().rows;
    X_.dots(rows, docs, state_.w.data(), scores_.data());
    const Kernel kernel(pairs_.problem());
    SgdBatch& batch = state_.batch;
    batch.value +=
        kernel.evaluate(0, scores_.data(), slopes_.data(), pairs_.point(), nullptr, scratch_).value;
    X_.accumulate_then_dots(rows, docs, slopes_.data(), state_.gradient.data(),
                            {docs.last, docs.last}, nullptr, nullptr);
    batch.weight += weight_[q];
    batch.entries += X_.entries(rows, docs);
    batch.documents += docs.size();
    state_.documents += docs.size();
    if (state_.collecting) add_curvature(q);
  }

  void add_curvature(Index q) {
    curved_.select(q);
    const Kernel kernel(curved_.problem());
    kernel.evaluate(0, scores_.data(), slopes_.data(), curved_.point(), nullptr, scratch_);
    const auto size = static_cast<Index>(state_.curvature.size());
    part_.resize(state_.curvature.size());
    const int threads = curved_.documents().size() * size < kWorthThreads ? 1 : threads_;
    if (state_.full) {
      hessian(X_, kernel, curved_.point(), part_.data(), threads);
    } else {
      hess_diag(X_, kernel, curved_.point(), part_.data(), threads);
    }
    for (Index j = 0; j < size; ++j) state_.curvature[j] += part_[j];
    state_.curvature_weight += weight_[q];
  }

  const Matrix& X_;
  QueryView<Kernel> pairs_, curved_;
  const double* weight_;
  const SgdOptions& options_;
  SgdState& state_;
  int threads_;
  std::vector<double> scores_, slopes_, part_;
  Scratch scratch_;
};

}  // namespace marginrank
