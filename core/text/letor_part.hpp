// The contents of some lines of LETOR text, and the options for reading them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "text/pages.hpp"

namespace marginrank {

struct LetorOptions {
  Index first_index = 1;
  Index n_features = -1;          // -1: as many as there are
  std::optional<double> missing;  // replaces NULL; without it NULL is an error
  bool keep_comments = false;
};

struct LetorError {
  Index line = 0, column = 0;  // from 1
  std::string what;
};

// A run of consecutive documents with one query id.
struct QueryRun {
  Index length;
  std::string id;
};

// The contents of consecutive lines.
template <class T>
struct LetorPart {
  std::vector<double> labels;
  std::vector<double> costs;  // empty if no line has one
  std::vector<QueryRun> runs;
  std::vector<Index> row_ends;  // in `columns` and `values`; empty once dense
  Pages<std::int32_t> columns;  // empty once dense
  Pages<T> values;
  std::vector<std::string> comments;
  Index width = 0;  // one more than the highest column
  Index n_entries = 0;
  Index n_lines = 0;
  Index n_with_qid = 0;
  Index line_without_qid = 0, line_with_qid = 0;  // the first of each, from 1
  std::optional<LetorError> error;

  Index n_rows() const { return static_cast<Index>(labels.size()); }
  bool dense() const { return row_ends.empty() && !labels.empty(); }

  void make_dense_if_smaller() {
    const auto cells = static_cast<std::size_t>(n_rows() * width);
    if (cells * sizeof(T) > values.size() * (sizeof(T) + sizeof(std::int32_t))) return;
    Pages<T> table(cells, T{0});
    Index k = 0;
    for (Index i = 0; i < n_rows(); ++i) {
      for (; k < row_ends[i]; ++k) table[i * width + columns[k]] = values[k];
    }
    values.swap(table);
    Pages<std::int32_t>().swap(columns);
    std::vector<Index>().swap(row_ends);
  }
};

}  // namespace marginrank
