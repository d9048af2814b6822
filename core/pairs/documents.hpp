// The part of a problem that all kinds of pairs share: documents grouped by query, and a loss made
// of pieces.
#pragma once

#include <algorithm>
#include <vector>

#include "base/types.hpp"

namespace marginrank {

// The "power" of a smooth piece, log(1 + exp(theta - t)), which only listed pairs have.
constexpr int kLogistic = 0;

struct Piece {
  double coefficient;
  double theta;
  int power;  // 1 or 2 for max(0, theta - t)^power; or kLogistic
  // The columns first_rank .. last_rank of the pair weights that it has; one, if all weigh 1.
  int first_rank = 0, last_rank = 1;
};

// The loss of a query, and the magnitudes of the terms of its sums: rounding errors are about the
// machine precision times these.
struct QueryLoss {
  double value = 0;
  double value_size = 0;
  double slope_size = 0;  // of the sums of |derivative| over the documents

  QueryLoss& operator+=(const QueryLoss& other) {
    value += other.value;
    value_size += other.value_size;
    slope_size += other.slope_size;
    return *this;
  }
};

struct Documents {
  Index n_queries = 0;
  const Index* offsets = nullptr;  // query q has the documents offsets[q] .. offsets[q + 1]
  const Index* rows = nullptr;     // row of X of each document, or null if they are the same
  const double* query_weight = nullptr;
  const double* margin = nullptr;  // d_i, if the pair's margin is theta + d_i - d_j
  std::vector<Piece> pieces;

  Index n_documents() const { return offsets[n_queries]; }
  Range documents(Index q) const { return {offsets[q], offsets[q + 1]}; }
  Index row(Index document) const { return rows ? rows[document] : document; }
  // Whether the loss is one smooth piece, not a sum of hinge terms.
  bool is_smooth() const { return pieces.front().power == kLogistic; }
  Index n_curved() const {
    return std::count_if(pieces.begin(), pieces.end(), [](const Piece& p) { return p.power == 2; });
  }
};

}  // namespace marginrank
