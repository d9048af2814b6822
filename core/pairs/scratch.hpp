// Work space of the pair kernels.
#pragma once

#include <array>
#include <vector>

#include "base/types.hpp"
#include "ranking/sorting.hpp"

namespace marginrank {

// One value for each side of a pair.
template <class T>
using BySide = std::array<T, 2>;
constexpr int kPreferred = 0, kOther = 1;

// Work space of one thread for one query at a time. Vectors are by sorted position.
struct Scratch {
  int threads = 1;  // more for a query that has the machine to itself
  ScoreSorter sorter;

  // Of an evaluation.
  std::vector<double> key;           // scores, less margins, in ascending order
  std::vector<double> gradient;      // of the loss with respect to the scores
  std::vector<Position> end, begin;  // windows of a piece whose windows no product needs

  // Of a product with the Hessian.
  std::vector<double> vector;  // the factor
  std::vector<double> image;   // the product

  // Of both: sums over the partners of each document.
  BySide<std::vector<double>> weight;  // of a document on each side of its pairs
  BySide<std::vector<double>> values;  // summed over partners on this side
  BySide<std::vector<double>> sums;    // over the partners on this side
  BySide<std::vector<Vec8>> workspace;
  std::vector<Vec8> values8, sums8;  // the same for eight vectors at once, one side at a time
};

}  // namespace marginrank
