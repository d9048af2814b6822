// Pairs that are listed one by one: value and derivatives in score space, in O(pairs).
//
// Each document gathers from its partners. Every sum belongs to one document and runs in the order
// of its partners, so nothing is scattered and the result does not depend on the threads. A pair is
// visited from both of its sides. Whether a hinge term is active is recomputed from the scores:
// that costs less than storing it. The curvature of a smooth term takes an exponential: it is
// stored.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/buffer.hpp"
#include "base/parallel.hpp"
#include "pairs/documents.hpp"
#include "pairs/incidence.hpp"
#include "pairs/logistic.hpp"
#include "pairs/scratch.hpp"

namespace marginrank {

struct ListedProblem : Documents {
  const Incidence* incidence = nullptr;
  Index first = 0;  // number that the first document has there

  Range partners(Index document, Side side) const {
    return incidence->partners(first + document, side);
  }
  Range partners(Range documents) const { return incidence->partners(shifted(documents)); }
  Range partners() const { return partners(Range{0, n_documents()}); }
  void prefetch_partners(Range documents) const { incidence->prefetch(shifted(documents)); }

 private:
  Range shifted(Range documents) const { return {first + documents.first, first + documents.last}; }
};

// The state of a point for Hessian-vector products: the scores minus the documents' d_i.
// Unset for queries without pairs; NaN, which makes no pair active, where scores are not finite.
struct ListedPoint {
  Buffer<double> key;
  Buffer<double> curvature;  // of a smooth piece, by partner; times the weight of the pair

  explicit ListedPoint(const ListedProblem& problem)
      : key(problem.n_documents()),
        curvature(problem.is_smooth() ? problem.partners().size() : 0) {}
};

class ListedKernel {
 public:
  using Point = ListedPoint;
  static constexpr Index kBlock = 256;           // documents that a thread takes at a time
  static constexpr Index kPrefetched = 16384;    // partners; more would not stay in cache
  static constexpr double kFunctionError = 4.0;  // of an exponential or logarithm, in last places

  explicit ListedKernel(ListedProblem problem)
      : problem_(std::move(problem)),
        incidence_(*problem_.incidence),
        first_partner_(problem_.partners().first) {}

  const ListedProblem& problem() const { return problem_; }
  bool has_pairs(Index q) const {
    return problem_.query_weight[q] != 0.0 && problem_.partners(problem_.documents(q)).size() > 0;
  }
  Index document(Index q, Index t, const ListedPoint&) const { return problem_.offsets[q] + t; }

  // The same interface as PairKernel; `like` is unused, because nothing is sorted.
  QueryLoss evaluate(Index q, const double* s, double* z, ListedPoint& point, const ListedPoint*,
                     Scratch& scratch) const {
    const Range docs = problem_.documents(q);
    if (!has_pairs(q)) {
      std::fill_n(z, docs.size(), 0.0);
      return {};
    }
    if (!set_keys(docs, s, point)) {
      std::fill_n(z, docs.size(), std::nan(""));
      return {std::nan(""), 0.0, 0.0};
    }
    const double weight = problem_.query_weight[q];
    const QueryLoss loss = sum_documents<QueryLoss>(docs, scratch.threads, [&](Index i) {
      double& slope = z[i - docs.first];
      return problem_.is_smooth() ? smooth_loss_of(i, point, slope)
                                  : loss_of(i, point.key.at(i), slope);
    });
    for (Index k = 0; k < docs.size(); ++k) z[k] *= weight;
    return {weight * std::max(loss.value, 0.0), weight * loss.value_size, weight * loss.slope_size};
  }

  double active_weight(Index q, const double* s, ListedPoint& point, Scratch& scratch) const {
    const Range docs = problem_.documents(q);
    if (!has_pairs(q)) return 0.0;
    if (!set_keys(docs, s, point)) return std::nan("");
    auto active = [&](Index i) {
      return add_up(problem_.pieces[0], i, Side::preferred, point.key.at(i)).weight;
    };
    return problem_.query_weight[q] * sum_documents<double>(docs, scratch.threads, active);
  }

  void hess_vec(Index q, const double* u, double* z, const ListedPoint& point,
                Scratch& scratch) const {
    const Range docs = problem_.documents(q);
    if (!has_pairs(q)) {
      std::fill_n(z, docs.size(), 0.0);
      return;
    }
    sum_documents<double>(docs, scratch.threads, [&](Index i) {
      const double* own = u + (i - docs.first);
      double image = 0;
      for_each_curvature(i, point,
                         [&](Position step, double c) { image += c * (*own - own[step]); });
      z[i - docs.first] = problem_.query_weight[q] * image;
      return 0.0;
    });
  }

  void prefetch(Index q, const ListedPoint& point) const {
    if (q >= problem_.n_queries) return;
    const Range docs = problem_.documents(q);
    if (problem_.partners(docs).size() > kPrefetched) return;
    for (Index i = docs.first; i < docs.last; i += 8) __builtin_prefetch(point.key.at(i));
    problem_.prefetch_partners(docs);
  }

  void hess_vec8(Index q, const std::vector<Vec8>& u, const ListedPoint& point,
                 std::vector<Vec8>& image, Scratch&) const {
    const Range docs = problem_.documents(q);
    image.assign(static_cast<std::size_t>(docs.size()), Vec8{});
    for (Index i = docs.first; i < docs.last; ++i) {
      const Vec8* own = u.data() + (i - docs.first);
      Vec8& sum = image[i - docs.first];
      for_each_curvature(i, point, [&](Position step, double c) {
        if (c == 0.0) return;
        const Vec8& partner = own[step];
        for (int lane = 0; lane < 8; ++lane)
          sum.lane[lane] += c * (own->lane[lane] - partner.lane[lane]);
      });
      for (double& lane : sum.lane) lane *= problem_.query_weight[q];
    }
  }

  // f(step, curvature) for each pair of document i and each quadratic piece; both sides of a pair
  // make the same comparison, so they agree whatever the rounding.
  template <class F>
  void for_each_curvature(Index i, const ListedPoint& point, F&& f) const {
    if (problem_.is_smooth()) {
      const Range partners = problem_.partners(Range{i, i + 1});
      for (Index k = partners.first; k < partners.last; ++k) {
        f(incidence_.step(k), point.curvature[k - first_partner_]);
      }
      return;
    }
    const double* key = point.key.at(i);
    for (const Piece& piece : problem_.pieces) {
      if (piece.power != 2) continue;
      for (const Side side : {Side::preferred, Side::other}) {
        const Range partners = problem_.partners(i, side);
        for (Index k = partners.first; k < partners.last; ++k) {
          const double weight = 2.0 * piece.coefficient * incidence_.weight(k);
          const bool active = slack(piece, side, key, k) > 0.0;
          f(incidence_.step(k), active ? weight : 0.0);
        }
      }
    }
  }

 private:
  struct Sums {
    double weight = 0, slack = 0, squares = 0;  // of the active pairs
    double reach = 0, slack_reach = 0;          // bounds on their rounding error
  };

  // What partner k of a document misses of its margin.
  double slack(const Piece& piece, Side side, const double* key, Index k) const {
    const double difference = key[0] - key[incidence_.step(k)];
    return piece.theta + incidence_.margin(k) -
           (side == Side::preferred ? difference : -difference);
  }

  Sums add_up(const Piece& piece, Index i, Side side, const double* key) const {
    Sums sums;
    const Range partners = problem_.partners(i, side);
    for (Index k = partners.first; k < partners.last; ++k) {
      const double missing = std::max(slack(piece, side, key, k), 0.0);
      const double weight = missing > 0.0 ? incidence_.weight(k) : 0.0;
      sums.weight += weight;
      sums.slack += weight * missing;
      sums.squares += weight * missing * missing;
      const double reach = reach_of(piece, key, k);
      sums.reach += weight * reach;
      sums.slack_reach += weight * missing * reach;
    }
    return sums;
  }

  // The loss of the pairs in which document i is preferred; the slope of all its pairs.
  QueryLoss loss_of(Index i, const double* key, double& slope) const {
    QueryLoss loss;
    slope = 0;
    for (const Piece& piece : problem_.pieces) {
      const Sums lost = add_up(piece, i, Side::preferred, key);
      const Sums won = add_up(piece, i, Side::other, key);
      const double size = std::abs(piece.coefficient);
      if (piece.power == 2) {
        loss.value += piece.coefficient * lost.squares;
        loss.value_size += 2.0 * size * lost.slack_reach;
        loss.slope_size += 2.0 * size * (won.reach + lost.reach);
        slope += 2.0 * piece.coefficient * (won.slack - lost.slack);
      } else {
        loss.value += piece.coefficient * lost.slack;
        loss.value_size += size * lost.reach;
        loss.slope_size += size * (won.weight + lost.weight);
        slope += piece.coefficient * (won.weight - lost.weight);
      }
    }
    return loss;
  }

  // The same for a smooth piece; also keeps the curvature of each pair.
  QueryLoss smooth_loss_of(Index i, ListedPoint& point, double& slope) const {
    const Piece& piece = problem_.pieces.front();
    const double* key = point.key.at(i);
    QueryLoss loss;
    slope = 0;
    for (const Side side : {Side::preferred, Side::other}) {
      const bool preferred = side == Side::preferred;
      const Range partners = problem_.partners(i, side);
      for (Index k = partners.first; k < partners.last; ++k) {
        const double weight = piece.coefficient * incidence_.weight(k);
        const LogisticTerm term = logistic_term(slack(piece, side, key, k), preferred);
        const double reach = reach_of(piece, key, k);
        point.curvature[k - first_partner_] = weight * term.curvature;
        slope += preferred ? -weight * term.slope : weight * term.slope;
        loss.slope_size += weight * (kFunctionError * term.slope + term.curvature * reach);
        if (!preferred) continue;
        loss.value += weight * term.value;
        loss.value_size += weight * (kFunctionError * term.value + term.slope * reach);
      }
    }
    return loss;
  }

  // The magnitude of the terms of a slack.
  double reach_of(const Piece& piece, const double* key, Index k) const {
    return std::abs(piece.theta) + std::abs(incidence_.margin(k)) + std::abs(key[0]) +
           std::abs(key[incidence_.step(k)]);
  }

  // False if a score is not finite.
  bool set_keys(Range docs, const double* s, ListedPoint& point) const {
    double finite = 0;
    for (Index i = docs.first; i < docs.last; ++i) {
      const double score = s[i - docs.first];
      point.key[i] = problem_.margin ? score - problem_.margin[i] : score;
      finite += point.key[i] * 0.0;
    }
    if (finite == 0.0) return true;
    std::fill_n(point.key.at(docs.first), docs.size(), std::nan(""));
    if (problem_.is_smooth()) {
      const Range partners = problem_.partners(docs);
      std::fill_n(point.curvature.at(partners.first - first_partner_), partners.size(), 0.0);
    }
    return false;
  }

  // Sum of f(document), in blocks that do not depend on the threads.
  template <class Sum, class F>
  static Sum sum_documents(Range docs, int threads, F&& f) {
    const Index n_blocks = (docs.size() + kBlock - 1) / kBlock;
    auto sum_block = [&](Index b) {
      const Index first = docs.first + b * kBlock, last = std::min(first + kBlock, docs.last);
      Sum sum{};
      for (Index i = first; i < last; ++i) sum += f(i);
      return sum;
    };
    Sum total{};
    if (threads == 1 || n_blocks == 1) {
      for (Index b = 0; b < n_blocks; ++b) total += sum_block(b);
      return total;
    }
    std::vector<Sum> part(static_cast<std::size_t>(n_blocks));
    parallel_for(n_blocks, threads, [&](Index b) { part[b] = sum_block(b); });
    for (const Sum& sum : part) total += sum;
    return total;
  }

  ListedProblem problem_;
  const Incidence& incidence_;
  Index first_partner_;  // of the documents of the problem
};

}  // namespace marginrank
