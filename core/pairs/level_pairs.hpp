// All pairs of different levels, and the state of a point.
#pragma once

#include "base/buffer.hpp"
#include "pairs/documents.hpp"
#include "simd/counting.hpp"

namespace marginrank {

// The pairs of documents of one query with different levels.
struct PairProblem : Documents {
  const Level* level = nullptr;       // dense rank of a document's label inside its query
  const Level* n_levels = nullptr;    // by query
  Level width = kAnyWidth;            // largest difference of the levels of a pair
  int rank = 0;                       // 0: all c_ij = 1
  const double* preferred = nullptr;  // documents x rank
  const double* other = nullptr;      // documents x rank
};

// The state of a point (a vector of scores) for Hessian-vector products: the sorted order of each
// query, the windows of each quadratic piece, and the diagonal of the Hessian in score space. All
// but the order is left unset for queries without pairs.
struct PairPoint {
  Buffer<Position> order;       // document at each sorted position, relative to its query
  Buffer<Level> level;          // by sorted position
  Buffer<double> curvature;     // by sorted position
  Buffer<Position> end, begin;  // quadratic pieces x documents, by sorted position

  explicit PairPoint(const PairProblem& problem)
      : order(problem.n_documents()),
        level(problem.n_documents()),
        curvature(problem.n_documents()),
        end(problem.n_documents() * problem.n_curved()),
        begin(problem.n_documents() * problem.n_curved()) {}
};

}  // namespace marginrank
