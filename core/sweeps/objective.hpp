// The loss and its derivatives, at scores and at weights.
#pragma once

#include <vector>

#include "base/buffer.hpp"
#include "sweeps/queries.hpp"
#include "sweeps/shared_sweeper.hpp"
#include "sweeps/sweeper.hpp"

namespace marginrank {

// Writes the loss of each query that has documents at given scores, and its gradient with respect
// to them to z. The order of the point `like`, if given, is taken as a first guess.
template <class Kernel>
void evaluate_pairs(const Kernel& kernel, const double* scores, QueryLoss* losses, double* z,
                    typename Kernel::Point& point, const typename Kernel::Point* like,
                    int threads) {
  const auto& problem = kernel.problem();
  auto f = [&](Index q, const double* s, double* out, Scratch& scratch) {
    losses[q] = kernel.evaluate(q, s, out, point, like, scratch);
  };
  map_queries(problem, make_blocks(problem, 0), Done::nothing, scores, f, z, threads);
}

// The same at w, with the scores and the gradient.
template <class Matrix, class Kernel>
void evaluate(const Matrix& X, const Kernel& kernel, const double* w, double* scores,
              QueryLoss* losses, double* z, double* gradient, typename Kernel::Point& point,
              const typename Kernel::Point* like, int threads) {
  const auto& problem = kernel.problem();
  auto f = [&](Index q, const double* u, double* out, Scratch& scratch) {
    losses[q] = kernel.evaluate(q, u, out, point, like, scratch);
  };
  Sweeper(X, problem, threads).sweep(w, scores, f, z, gradient);
}

// The same as a part of a sweep that several problems share.
template <class Kernel>
SharedProblem evaluating(const Kernel& kernel, const double* w, double* scores, QueryLoss* losses,
                         double* z, double* gradient, typename Kernel::Point& point,
                         const typename Kernel::Point* like) {
  auto map = [&kernel, &point, losses, like](Index q, const double* u, double* out,
                                             Scratch& scratch) {
    losses[q] = kernel.evaluate(q, u, out, point, like, scratch);
  };
  return {w, scores, z, gradient, map, [&kernel](Index q) { return kernel.has_pairs(q); }};
}

// By query, the weight of the pairs that are active for the first piece at given scores.
template <class Kernel>
void active_weights(const Kernel& kernel, const double* scores, typename Kernel::Point& point,
                    double* weights, int threads) {
  const auto& problem = kernel.problem();
  std::vector<double> unused(static_cast<std::size_t>(problem.n_documents()));
  auto f = [&](Index q, const double* s, double*, Scratch& scratch) {
    weights[q] = kernel.active_weight(q, s, point, scratch);
  };
  map_queries(problem, make_blocks(problem, 0), Done::nothing, scores, f, unused.data(), threads);
}

// z = H u in score space.
template <class Kernel>
void hess_vec_pairs(const Kernel& kernel, const typename Kernel::Point& point, const double* u,
                    double* z, int threads) {
  const auto& problem = kernel.problem();
  auto f = [&](Index q, const double* in, double* out, Scratch& scratch) {
    kernel.hess_vec(q, in, out, point, scratch);
  };
  map_queries(problem, make_blocks(problem, 0), Done::nothing, u, f, z, threads);
}

// out = X' H X v and u = X v.
template <class Matrix, class Kernel>
void hess_vec(const Matrix& X, const Kernel& kernel, const typename Kernel::Point& point,
              const double* v, double* u, double* out, int threads) {
  const auto& problem = kernel.problem();
  Buffer<double> z(problem.n_documents());
  auto f = [&](Index q, const double* in, double* result, Scratch& scratch) {
    kernel.hess_vec(q, in, result, point, scratch);
    kernel.prefetch(q + 1, point);
  };
  Sweeper(X, problem, threads).sweep(v, u, f, z.at(0), out);
}

// The same as a part of a sweep that several problems share.
template <class Kernel>
SharedProblem multiplying(const Kernel& kernel, const typename Kernel::Point& point,
                          const double* v, double* u, double* out) {
  auto map = [&kernel, &point](Index q, const double* in, double* result, Scratch& scratch) {
    kernel.hess_vec(q, in, result, point, scratch);
    kernel.prefetch(q + 1, point);
  };
  return {v, u, nullptr, out, map, [&kernel](Index q) { return kernel.has_pairs(q); }};
}

}  // namespace marginrank
