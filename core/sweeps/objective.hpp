// The loss and its derivatives, at scores and at weights.
#pragma once

#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "sweeps/queries.hpp"
#include "sweeps/shared_sweeper.hpp"
#include "sweeps/sweeper.hpp"

namespace marginrank {

// The outputs of an evaluation of the loss.
template <class Kernel>
struct LossTarget {
  using Point = typename Kernel::Point;

  std::span<QueryLoss> losses;  // one per query; those without documents are not written
  std::span<double> z;          // gradient with respect to the scores
  Point& point;                 // what products with the Hessian need
  const Point* like;            // its order, if given, is taken as a first guess

  void evaluate(const Kernel& kernel, Index q, const double* scores, double* slopes,
                Scratch& scratch) const {
    losses[q] = kernel.evaluate(q, scores, slopes, point, like, scratch);
  }
};

// The loss at given scores.
template <class Kernel>
void evaluate_pairs(const Kernel& kernel, std::span<const double> scores,
                    const LossTarget<Kernel>& to, int threads) {
  const auto& problem = kernel.problem();
  auto f = [&](Index q, const double* s, double* out, Scratch& scratch) {
    to.evaluate(kernel, q, s, out, scratch);
  };
  map_queries(problem, make_blocks(problem, 0), Done::nothing, scores.data(), f, to.z.data(),
              threads);
}

// The loss at the weights v, with the scores u and the gradient, out.
template <class Matrix, class Kernel>
void evaluate(const Matrix& X, const Kernel& kernel, const SweepVectors& vectors,
              const LossTarget<Kernel>& to, int threads) {
  auto f = [&](Index q, const double* u, double* out, Scratch& scratch) {
    to.evaluate(kernel, q, u, out, scratch);
  };
  Sweeper(X, kernel.problem(), threads).sweep(vectors, f, to.z.data());
}

// The same as a part of a sweep that several problems share.
template <class Kernel>
SharedProblem shared_evaluation(const Kernel& kernel, const SweepVectors& vectors,
                                const LossTarget<Kernel>& to) {
  auto map = [&kernel, to](Index q, const double* u, double* out, Scratch& scratch) {
    to.evaluate(kernel, q, u, out, scratch);
  };
  auto has_pairs = [&kernel](Index q) { return kernel.has_pairs(q); };
  return {vectors, to.z.data(), map, has_pairs};
}

// By query, the weight of the pairs that are active for the first piece at given scores.
template <class Kernel>
void active_weights(const Kernel& kernel, std::span<const double> scores,
                    typename Kernel::Point& point, std::span<double> weights, int threads) {
  const auto& problem = kernel.problem();
  std::vector<double> unused(static_cast<std::size_t>(problem.n_documents()));
  auto f = [&](Index q, const double* s, double*, Scratch& scratch) {
    weights[q] = kernel.active_weight(q, s, point, scratch);
  };
  map_queries(problem, make_blocks(problem, 0), Done::nothing, scores.data(), f, unused.data(),
              threads);
}

// z = H u in score space.
template <class Kernel>
void hess_vec_pairs(const Kernel& kernel, const typename Kernel::Point& point,
                    std::span<const double> u, std::span<double> z, int threads) {
  const auto& problem = kernel.problem();
  auto f = [&](Index q, const double* in, double* out, Scratch& scratch) {
    kernel.hess_vec(q, in, out, point, scratch);
  };
  map_queries(problem, make_blocks(problem, 0), Done::nothing, u.data(), f, z.data(), threads);
}

// out = X' H X v and u = X v.
template <class Matrix, class Kernel>
void hess_vec(const Matrix& X, const Kernel& kernel, const typename Kernel::Point& point,
              const SweepVectors& vectors, int threads) {
  const auto& problem = kernel.problem();
  Buffer<double> z(problem.n_documents());
  auto f = [&](Index q, const double* in, double* result, Scratch& scratch) {
    kernel.hess_vec(q, in, result, point, scratch);
    kernel.prefetch(q + 1, point);
  };
  Sweeper(X, problem, threads).sweep(vectors, f, z.at(0));
}

// The same as a part of a sweep that several problems share.
template <class Kernel>
SharedProblem shared_product(const Kernel& kernel, const typename Kernel::Point& point,
                             const SweepVectors& vectors) {
  auto map = [&kernel, &point](Index q, const double* in, double* result, Scratch& scratch) {
    kernel.hess_vec(q, in, result, point, scratch);
    kernel.prefetch(q + 1, point);
  };
  auto has_pairs = [&kernel](Index q) { return kernel.has_pairs(q); };
  return {vectors, nullptr, map, has_pairs};
}

}  // namespace marginrank
