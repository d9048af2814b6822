// Functions of two features, given at the nodes of a grid; and sums over the cells of many grids.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "matrix/knots.hpp"

namespace marginrank {

// Grid g has the axes 2g and 2g + 1 of `axes`, whose features are `features`. Its values at the
// nodes, row by row, follow the values of the previous grid.
struct Grids {
  Knots axes;
  const Index* features;
  const double* values;

  Index size() const { return axes.n_features / 2; }
  Index length(Index axis) const { return axes.starts[axis + 1] - axes.starts[axis]; }
};

// Where x lies on an axis, no further than its outer knots.
inline Place place_on(const Knots& axes, Index axis, double x) {
  const Place place = place_of(axes, axis, x);
  return {place.left, std::clamp(place.p, 0.0, 1.0)};
}

inline double between(const double* left, double p) { return left[0] + p * (left[1] - left[0]); }

// scores[i] = sum over grids of their value at row i, which is bilinear between four nodes.
template <class T>
void grid_scores(const Dense<T>& X, const Grids& grids, double* scores, int threads) {
  std::fill_n(scores, X.n_rows(), 0.0);
  for_each_row_block(X.n_rows(), threads, [&](Index, Range block) {
    const double* values = grids.values;
    for (Index a = 0; a < 2 * grids.size(); a += 2) {
      const Index width = grids.length(a + 1);
      for (Index i = block.first; i < block.last; ++i) {
        const auto x = static_cast<double>(X.row(i)[grids.features[a]]);
        const auto y = static_cast<double>(X.row(i)[grids.features[a + 1]]);
        const Place row = place_on(grids.axes, a, x), column = place_on(grids.axes, a + 1, y);
        const double* const corner = values + row.left * width + column.left;
        const double above = between(corner, column.p), below = between(corner + width, column.p);
        scores[i] += above + row.p * (below - above);
      }
      values += grids.length(a) * width;
    }
  });
}

// For each two features a < b the sums of z over the documents of each cell, codes_a by codes_b:
// `width`² sums per pair. Codes are feature by feature.
inline void cell_sums(const std::uint8_t* codes, const double* z, Index n_features,
                      Index n_documents, Index width, double* sums, int threads) {
  std::vector<Index> first{0};  // pair of each a
  for (Index a = 0; a < n_features; ++a) first.push_back(first.back() + n_features - 1 - a);
  parallel_for(n_features, threads, [&](Index a) {
    double* cells = sums + first[a] * width * width;
    const std::uint8_t* const row = codes + a * n_documents;
    for (Index b = a + 1; b < n_features; ++b, cells += width * width) {
      const std::uint8_t* const column = codes + b * n_documents;
      std::fill_n(cells, width * width, 0.0);
      for (Index i = 0; i < n_documents; ++i) cells[row[i] * width + column[i]] += z[i];
    }
  });
}

}  // namespace marginrank
