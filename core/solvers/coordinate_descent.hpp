// Coordinate descent on a quadratic model with a separable penalty.
//
// Minimizes  u'Hu / 2 - b'u + l1 |u|_1 + l2 |u|^2 / 2,  optionally with u >= 0. H is n x n,
// symmetric and positive semidefinite. The residual  b - Hu  is kept up to date, so that a
// coordinate that does not move costs O(1) and one that moves O(n).
#pragma once

#include <algorithm>
#include <cmath>

#include "base/types.hpp"

namespace marginrank {

struct SeparablePenalty {
  double l1, l2;
  bool positive;
};

struct DescentOutcome {
  Index passes;
  double violation;  // of the optimality conditions, in units of b, as the last full pass met it
};

class CoordinateDescent {
 public:
  CoordinateDescent(const double* H, Index n, const SeparablePenalty& penalty, double* u,
                    double* residual)
      : H_(H), n_(n), penalty_(penalty), u_(u), residual_(residual) {}

  // Full passes, each followed by passes over the support alone, until no coordinate of a full pass
  // was off by more than tol.
  DescentOutcome run(Index max_passes, double tol) {
    DescentOutcome outcome{0, HUGE_VAL};
    while (outcome.passes < max_passes && outcome.violation > tol) {
      outcome.violation = pass([](double) { return true; });
      ++outcome.passes;
      double inside = outcome.violation;
      while (outcome.passes < max_passes && inside > std::max(tol, 0.1 * outcome.violation)) {
        inside = pass([](double u) { return u != 0.0; });
        ++outcome.passes;
      }
    }
    return outcome;
  }

 private:
  template <class Takes>
  double pass(Takes&& takes) {
    double violation = 0;
    for (Index j = 0; j < n_; ++j) {
      if (takes(u_[j])) violation = std::max(violation, update(j));
    }
    return violation;
  }

  // Minimizes over coordinate j; returns by how much its optimality condition was violated.
  double update(Index j) {
    const double* row = H_ + j * n_;
    const double curvature = row[j] + penalty_.l2;
    if (!(curvature > 0)) return 0.0;
    const double best = shrink(residual_[j] + row[j] * u_[j]) / curvature;
    const double step = best - u_[j];
    if (step == 0.0) return 0.0;
    u_[j] = best;
    for (Index i = 0; i < n_; ++i) residual_[i] -= step * row[i];
    return std::abs(step) * curvature;
  }

  double shrink(double v) const {
    if (v > penalty_.l1) return v - penalty_.l1;
    if (v < -penalty_.l1 && !penalty_.positive) return v + penalty_.l1;
    return 0.0;
  }

  const double* H_;
  Index n_;
  SeparablePenalty penalty_;
  double* u_;
  double* residual_;
};

}  // namespace marginrank
