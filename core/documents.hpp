// What every kind of pairs has in common: documents grouped by query, and a loss made of pieces.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "simd.hpp"

namespace marginrank {

struct Piece {
  double coefficient;
  double theta;
  int power;  // 1 or 2
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
  Index n_curved() const {
    return std::count_if(pieces.begin(), pieces.end(), [](const Piece& p) { return p.power == 2; });
  }
};

// Memory that is not touched before the threads that use it do.
template <class T>
class Buffer {
 public:
  explicit Buffer(Index size) : data_(std::make_unique_for_overwrite<T[]>(size)) {}
  T& operator[](Index i) { return data_[i]; }
  const T& operator[](Index i) const { return data_[i]; }
  T* at(Index i) { return data_.get() + i; }
  const T* at(Index i) const { return data_.get() + i; }

 private:
  std::unique_ptr<T[]> data_;
};

}  // namespace marginrank
