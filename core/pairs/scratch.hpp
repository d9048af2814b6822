// What the kernels of pairs need beside their results.
#pragma once

#include <vector>

#include "base/types.hpp"
#include "ranking/sorting.hpp"

namespace marginrank {

// Work space of one thread.
struct Scratch {
  int threads = 1;  // more for a query that has the machine to itself
  ScoreSorter sorter;
  std::vector<double> key, gradient;
  std::vector<double> weight[2], values[2], sums[2];  // of the preferred side, of the other side
  std::vector<Position> end, begin;
  std::vector<Vec8> workspace[2], values8, sums8;
};

}  // namespace marginrank
