// Argument validation for the bindings.
#pragma once

#include <limits>

#include "base/types.hpp"
#include "bindings/arrays.hpp"
#include "matrix/hats.hpp"

namespace marginrank {

inline void require(bool condition, const char* message) {
  if (!condition) throw nb::value_error(message);
}

inline void check_vector(const Array1<double>& v, Index n, const char* message) {
  require(static_cast<Index>(v.size()) == n, message);
}

inline void check_rows(const Array1<Index>& rows, Index n_rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    require(rows(i) >= 0 && rows(i) < n_rows, "rows must lie inside the matrix");
  }
}

// The first columns of features of hat functions, and the number of all columns.
inline void check_starts(const Array1<Index>& starts, Index n_features) {
  require(static_cast<Index>(starts.size()) == n_features + 1 && starts(0) == 0,
          "starts must begin with 0 and have n_features + 1 entries");
  for (Index k = 0; k < n_features; ++k) {
    const Index width = starts(k + 1) - starts(k);
    require(2 <= width && width <= kWidestFeature, "a feature must have 2 to 256 columns");
  }
}

// Twice the documents of a query must fit a Position.
constexpr Index kLargestQuery = std::numeric_limits<Position>::max() / 2;
static_assert(kLargestQuery == (Index{1} << 30) - 1);

inline void check_offsets(const Array1<Index>& offsets, std::size_t n_documents) {
  require(offsets.size() >= 1 && offsets(0) == 0, "offsets must begin with 0");
  for (std::size_t q = 0; q + 1 < offsets.size(); ++q) {
    require(offsets(q) <= offsets(q + 1), "offsets must increase");
    require(offsets(q + 1) - offsets(q) <= kLargestQuery,
            "a query has 2**30 documents or more; split it");
  }
  require(offsets(offsets.size() - 1) == static_cast<Index>(n_documents),
          "offsets must end with the number of documents");
}

}  // namespace marginrank
