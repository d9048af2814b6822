// Pair statistics in score space: everything here is a function of scores and labels alone.
//
// The loss of a query is  weight * sum over pairs (i, j) of  sum over pieces of
// c_ij * a * max(0, theta - (s_i - s_j))^e,  with pair weights  c_ij = sum_r preferred[i, r] *
// other[j, r]  over the ranks r of the piece: all of them, unless pairs differ in their margins.
// Both the value and its derivatives are sums over partners in a window of the sorted scores.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "base/compensated_sum.hpp"
#include "pairs/level_windows.hpp"
#include "pairs/partner_sums.hpp"

namespace marginrank {

class PairKernel {
 public:
  using Point = PairPoint;
  static constexpr Index kPrefetched = 4096;  // documents; more would not stay in cache

  explicit PairKernel(PairProblem problem) : problem_(std::move(problem)) {}

  const PairProblem& problem() const { return problem_; }
  bool has_pairs(Index q) const {
    return problem_.n_levels[q] > 1 && problem_.query_weight[q] != 0.0;
  }

  // The document at position t of the arguments of hess_vec8.
  Index document(Index q, Index t, const PairPoint& point) const {
    const Index first = problem_.offsets[q];
    return first + point.order[first + t];
  }

  // Value of query q at its scores s; writes the gradient with respect to them to z and what
  // products need to `point`. The order of the point `like`, if given, is taken as a first guess.
  QueryLoss evaluate(Index q, const double* s, double* z, PairPoint& point, const PairPoint* like,
                     Scratch& scratch) const {
    const Range docs = problem_.documents(q);
    Position* order = point.order.at(docs.first);
    if (like) {
      std::copy_n(like->order.at(docs.first), docs.size(), order);
    } else {
      std::iota(order, order + docs.size(), 0);
    }
    if (!has_pairs(q)) {
      std::fill_n(z, docs.size(), 0.0);
      return {};
    }
    if (!sort_scores<Keys::centred>(problem_, q, s, point, scratch)) {
      blank_windows(problem_, docs, point);
      std::fill_n(z, docs.size(), std::nan(""));
      return {std::nan(""), 0.0, 0.0};
    }
    const auto m = static_cast<std::size_t>(docs.size());
    double* curvature = point.curvature.at(docs.first);
    std::fill_n(curvature, m, 0.0);
    scratch.gradient.assign(m, 0.0);
    QueryLoss loss;
    Index curved = 0;
    for (const Piece& piece : problem_.pieces) {
      Position *end, *begin;
      if (piece.power == 2) {
        const Index at = curved++ * problem_.n_documents() + docs.first;
        end = point.end.at(at);
        begin = point.begin.at(at);
      } else {
        scratch.end.resize(m);
        scratch.begin.resize(m);
        end = scratch.end.data();
        begin = scratch.begin.data();
      }
      find_windows(piece.theta, scratch.key, end, begin);
      for (int r = piece.first_rank; r < piece.last_rank; ++r) {
        add_piece(q, piece, r, windows_of(problem_, q, point, end, begin), loss, point, scratch);
      }
    }
    const double weight = problem_.query_weight[q];
    for (std::size_t t = 0; t < m; ++t) {
      z[order[t]] = weight * scratch.gradient[t];
      curvature[t] *= weight;
    }
    return {weight * std::max(loss.value, 0.0), weight * loss.value_size, weight * loss.slope_size};
  }

  // Sum of the weights of the pairs of query q that are active at scores s, for the first of the
  // pieces that they have.
  double active_weight(Index q, const double* s, PairPoint& point, Scratch& scratch) const {
    const Range docs = problem_.documents(q);
    std::iota(point.order.at(docs.first), point.order.at(docs.last), 0);
    if (!has_pairs(q)) return 0.0;
    if (!sort_scores<Keys::as_they_are>(problem_, q, s, point, scratch)) return std::nan("");
    const auto m = static_cast<std::size_t>(docs.size());
    scratch.end.resize(m);
    scratch.begin.resize(m);
    const Windows w = windows_of(problem_, q, point, scratch.end.data(), scratch.begin.data());
    double total = 0;
    int counted = 0;  // ranks
    for (const Piece& piece : problem_.pieces) {
      if (piece.first_rank < counted) continue;
      counted = piece.last_rank;
      find_windows(piece.theta, scratch.key, scratch.end.data(), scratch.begin.data());
      for (int r = piece.first_rank; r < piece.last_rank; ++r) {
        load_weights(problem_, q, r, point, scratch);
        sum_partners(
            w, 1,
            both_sides(problem_, scratch.weight[kPreferred].data(), scratch.weight[kOther].data()),
            scratch);
        total += std::inner_product(scratch.weight[kOther].begin(), scratch.weight[kOther].end(),
                                    scratch.sums[kPreferred].begin(), 0.0);
      }
    }
    return problem_.query_weight[q] * total;
  }

  // z = H u, with the Hessian H of query q in score space at `point`.
  void hess_vec(Index q, const double* u, double* z, const PairPoint& point,
                Scratch& scratch) const {
    const Range docs = problem_.documents(q);
    if (!has_pairs(q)) {
      std::fill_n(z, docs.size(), 0.0);
      return;
    }
    const Position* order = point.order.at(docs.first);
    scratch.vector.resize(static_cast<std::size_t>(docs.size()));
    // H maps constants to zero; subtracting an entry keeps a common offset from costing digits.
    for (Index t = 0; t < docs.size(); ++t) scratch.vector[t] = u[order[t]] - u[order[0]];
    const double* u_sorted = scratch.vector.data();
    const double* curvature = point.curvature.at(docs.first);
    scratch.image.resize(scratch.vector.size());
    for (Index t = 0; t < docs.size(); ++t) scratch.image[t] = curvature[t] * u_sorted[t];
    for_each_curved(q, point, [&](const Windows& w, int r, double scale) {
      add_partners(q, r, w, u_sorted, scale, point, scratch);
    });
    for (Index t = 0; t < docs.size(); ++t) z[order[t]] = scratch.image[t];
  }

  // Prefetches the data of query q for a product: it has left the cache since the last one.
  void prefetch(Index q, const PairPoint& point) const {
    if (q >= problem_.n_queries) return;
    const Range docs = problem_.documents(q);
    if (docs.size() > kPrefetched) return;
    for (Index i = docs.first; i < docs.last; i += 16) {
      __builtin_prefetch(point.order.at(i));
      __builtin_prefetch(point.level.at(i));
      __builtin_prefetch(point.curvature.at(i));
      __builtin_prefetch(point.curvature.at(std::min(i + 8, docs.last - 1)));
      if (problem_.n_curved() == 1) {
        __builtin_prefetch(point.end.at(i));
        __builtin_prefetch(point.begin.at(i));
      }
    }
  }

  // image = H u for eight vectors at once, in sorted order.
  void hess_vec8(Index q, const std::vector<Vec8>& u, const PairPoint& point,
                 std::vector<Vec8>& image, Scratch& scratch) const {
    const Range docs = problem_.documents(q);
    const auto m = static_cast<std::size_t>(docs.size());
    image.assign(m, Vec8{});
    const double* curvature = point.curvature.at(docs.first);
    for (std::size_t t = 0; t < m; ++t) add_product(image[t], curvature[t], u[t]);
    for_each_curved(q, point, [&](const Windows& w, int r, double scale) {
      load_weights(problem_, q, r, point, scratch);
      for (int side = 0; side < 2; ++side) add_partners8(w, side, scale, u, image, scratch);
    });
  }

 private:
  // f(windows, r, scale) for each quadratic piece and each rank r of its pair weights: the
  // off-diagonal part of H is scale * the sums over the partners in these windows.
  template <class F>
  void for_each_curved(Index q, const PairPoint& point, F&& f) const {
    Index at = problem_.offsets[q];
    for (const Piece& piece : problem_.pieces) {
      if (piece.power != 2) continue;
      const Windows w = windows_of(problem_, q, point, point.end.at(at), point.begin.at(at));
      const double scale = -2.0 * piece.coefficient * problem_.query_weight[q];
      for (int r = piece.first_rank; r < piece.last_rank; ++r) f(w, r, scale);
      at += problem_.n_documents();
    }
  }

  // Adds one piece (and one rank of the pair weights) to loss, gradient and curvature.
  //
  // The slack of a pair is at most its reach |theta| + |key of i| + |key of j|, which bounds its
  // rounding error. Sums over pairs of products of the two keys are bounded by sums over
  // documents of their squares.
  void add_piece(Index q, const Piece& piece, int r, const Windows& w, QueryLoss& loss,
                 PairPoint& point, Scratch& scratch) const {
    const Index m = w.size;
    const double* key = scratch.key.data();
    load_weights(problem_, q, r, point, scratch);
    for (int side = 0; side < 2; ++side) {
      scratch.values[side].resize(2 * static_cast<std::size_t>(m));
      for (Index t = 0; t < m; ++t) {
        scratch.values[side][t] = scratch.weight[side][t];
        scratch.values[side][m + t] = scratch.weight[side][t] * key[t];
      }
    }
    sum_partners(
        w, 2,
        both_sides(problem_, scratch.values[kPreferred].data(), scratch.values[kOther].data()),
        scratch);
    const double *above = scratch.sums[kPreferred].data(), *below = scratch.sums[kOther].data();
    double* curvature = point.curvature.at(problem_.offsets[q]);
    CompensatedSum value;
    double value_size = 0, slope_size = 0;
    for (Index t = 0; t < m; ++t) {
      const double pairs_lost = scratch.weight[kPreferred][t] * below[t];
      const double pairs_won = scratch.weight[kOther][t] * above[t];
      // Slack of the active pairs of t: summed as their preferred side, then as their other side.
      const double lost =
          pairs_lost * (piece.theta - key[t]) + scratch.weight[kPreferred][t] * below[m + t];
      const double won =
          pairs_won * (piece.theta + key[t]) - scratch.weight[kOther][t] * above[m + t];
      const double pairs = std::abs(pairs_won) + std::abs(pairs_lost);
      const double reach = std::abs(piece.theta) + std::abs(key[t]);
      if (piece.power == 2) {
        value += lost * (piece.theta - key[t]) + won * key[t];
        value_size += 2.0 * pairs * reach * reach;
        slope_size += 2.0 * (std::abs(pairs_won * (piece.theta + key[t])) +
                             std::abs(pairs_lost * (piece.theta - key[t])) +
                             std::abs(scratch.weight[kOther][t] * above[m + t]) +
                             std::abs(scratch.weight[kPreferred][t] * below[m + t]));
        scratch.gradient[t] += 2.0 * piece.coefficient * (won - lost);
        curvature[t] += 2.0 * piece.coefficient * (pairs_won + pairs_lost);
      } else {
        value += lost;
        value_size += 2.0 * pairs * reach;
        slope_size += pairs;
        scratch.gradient[t] += piece.coefficient * (pairs_won - pairs_lost);
      }
    }
    loss.value += piece.coefficient * value.value();
    loss.value_size += std::abs(piece.coefficient) * value_size;
    loss.slope_size += std::abs(piece.coefficient) * slope_size;
  }

  // scratch.image += scale * (weighted sums of u over the partners of each document).
  void add_partners(Index q, int r, const Windows& w, const double* u, double scale,
                    const PairPoint& point, Scratch& scratch) const {
    const Index m = w.size;
    if (problem_.rank == 0) {
      sum_partners(w, 1, {u, u}, scratch);
      const double *above = scratch.sums[kPreferred].data(), *below = scratch.sums[kOther].data();
      double* image = scratch.image.data();
      for (Index t = 0; t < m; ++t) image[t] += scale * (above[t] + below[t]);
      return;
    }
    load_weights(problem_, q, r, point, scratch);
    for (int side = 0; side < 2; ++side) {
      scratch.values[side].resize(static_cast<std::size_t>(m));
      for (Index t = 0; t < m; ++t) scratch.values[side][t] = scratch.weight[side][t] * u[t];
    }
    sum_partners(
        w, 1,
        both_sides(problem_, scratch.values[kPreferred].data(), scratch.values[kOther].data()),
        scratch);
    for (Index t = 0; t < m; ++t) {
      scratch.image[t] += scale * (scratch.weight[kOther][t] * scratch.sums[kPreferred][t] +
                                   scratch.weight[kPreferred][t] * scratch.sums[kOther][t]);
    }
  }

  static void add_product(Vec8& sum, double scale, const Vec8& value) {
    for (int c = 0; c < 8; ++c) sum.lane[c] += scale * value.lane[c];
  }

  // image += scale * (weighted sums of u over the partners of each document on one side).
  void add_partners8(const Windows& w, int side, double scale, const std::vector<Vec8>& u,
                     std::vector<Vec8>& image, Scratch& scratch) const {
    const auto m = static_cast<std::size_t>(w.size);
    const auto& partner_weight = scratch.weight[side];
    const auto& own_weight = scratch.weight[1 - side];
    scratch.values8.assign(m, Vec8{});
    scratch.sums8.resize(m);
    for (std::size_t t = 0; t < m; ++t) add_product(scratch.values8[t], partner_weight[t], u[t]);
    const auto size = static_cast<std::size_t>(w.n_levels) + 1;
    if (scratch.workspace[0].size() < size) scratch.workspace[0].resize(size);
    simd().counting.partner_sums8(w, side == kPreferred ? Partners::preferred : Partners::other,
                                  scratch.values8.data(), scratch.sums8.data(),
                                  scratch.workspace[0].data());
    for (std::size_t t = 0; t < m; ++t) {
      add_product(image[t], scale * own_weight[t], scratch.sums8[t]);
    }
  }

  PairProblem problem_;
};

}  // namespace marginrank
