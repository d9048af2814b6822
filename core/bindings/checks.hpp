// What the kernels rely on and Python may get wrong.
#pragma once

#include <limits>

#include "base/types.hpp"
#include "bindings/arrays.hpp"

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
