// LETOR / SVMlight text, one document per line.
//
// Text comes in pieces of whole lines. A piece is cut at line ends and its parts are parsed in
// parallel. Each part is stored dense or sparse, whichever is smaller, and at the end the parts are
// moved into place one by one, so memory stays near the size of the result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/parallel.hpp"
#include "text/letor_lines.hpp"
#include "text/letor_part.hpp"

namespace marginrank {

// Collects the parts of a text.
template <class T>
class LetorParser {
 public:
  explicit LetorParser(const LetorOptions& options) : options_(options) {}

  // Parses whole lines, the last of which may lack its line end.
  std::optional<LetorError> feed(const char* text, Index size, int threads) {
    const std::vector<const char*> cuts = cut_at_lines(text, text + size);
    const std::size_t first = parts_.size();
    parts_.resize(first + cuts.size() - 1);
    parallel_for(static_cast<Index>(cuts.size()) - 1, threads, [&](Index k) {
      LineParser<T>(options_, parts_[first + static_cast<std::size_t>(k)])
          .parse(cuts[k], cuts[k + 1]);
    });
    for (std::size_t k = first; k < parts_.size(); ++k) {
      if (auto error = check(parts_[k])) return error;
      n_lines_ += parts_[k].n_lines;
    }
    return std::nullopt;
  }

  // A new source begins: line numbers start again.
  void begin_source() { n_lines_ = 0; }

  Index n_rows() const { return n_rows_; }
  Index n_features() const { return options_.n_features >= 0 ? options_.n_features : width_; }
  Index n_entries() const { return n_entries_; }
  bool has_qid() const { return with_qid_; }
  bool has_costs() const { return has_costs_; }
  std::vector<LetorPart<T>>& parts() { return parts_; }

  // Moves the features into a table of zeros, freeing the parts' own.
  void move_to_dense(T* table, int threads) {
    const std::vector<Index> starts = row_starts();
    const Index n = n_features();
    parallel_for(static_cast<Index>(parts_.size()), threads, [&](Index k) {
      LetorPart<T>& part = parts_[k];
      T* rows = table + starts[k] * n;
      if (part.dense()) {
        for (Index i = 0; i < part.n_rows(); ++i) {
          std::copy_n(part.values.data() + i * part.width, part.width, rows + i * n);
        }
      } else {
        for_each_entry(part, [&](Index i, Index column, T value) { rows[i * n + column] = value; });
      }
      Pages<T>().swap(part.values);
      Pages<std::int32_t>().swap(part.columns);
    });
  }

  // The same for the arrays of a CSR matrix, which may have room to spare.
  void move_to_csr(T* values, std::int32_t* columns, Index* indptr) {
    Index k = 0, row = 0;
    indptr[0] = 0;
    for (LetorPart<T>& part : parts_) {
      for (Index i = 0; i < part.n_rows(); ++i) indptr[row + i + 1] = 0;
      for_each_entry(part, [&](Index i, Index column, T value) {
        values[k] = value;
        columns[k++] = static_cast<std::int32_t>(column);
        ++indptr[row + i + 1];
      });
      for (Index i = 0; i < part.n_rows(); ++i) indptr[row + i + 1] += indptr[row + i];
      row += part.n_rows();
      Pages<T>().swap(part.values);
      Pages<std::int32_t>().swap(part.columns);
    }
  }

 private:
  static std::vector<const char*> cut_at_lines(const char* text, const char* end) {
    constexpr Index kPartBytes = 1 << 18;
    const Index n_parts = std::max<Index>((end - text) / kPartBytes, 1);
    std::vector<const char*> cuts{text};
    for (Index k = 1; k < n_parts; ++k) {
      const char* guess = std::max(cuts.back(), text + (end - text) / n_parts * k);
      const void* line_end = std::memchr(guess, '\n', static_cast<std::size_t>(end - guess));
      if (line_end) cuts.push_back(static_cast<const char*>(line_end) + 1);
    }
    cuts.push_back(end);
    return cuts;
  }

  // Adds a part to the counts; all lines must have a query id, or none.
  std::optional<LetorError> check(const LetorPart<T>& part) {
    auto located = [&](Index line, Index column, std::string what) {
      return LetorError{n_lines_ + line, column, std::move(what)};
    };
    if (n_rows_ == 0 && part.n_rows() > 0) {
      with_qid_ = part.line_with_qid != 0 &&
                  (part.line_without_qid == 0 || part.line_with_qid < part.line_without_qid);
    }
    const Index odd = with_qid_ ? part.line_without_qid : part.line_with_qid;
    if (odd != 0 && (!part.error || odd < part.error->line)) {
      return located(odd, 1,
                     with_qid_ ? "this line has no qid:, but others have"
                               : "this line has a qid:, but others have none");
    }
    if (part.error) return located(part.error->line, part.error->column, part.error->what);
    n_rows_ += part.n_rows();
    n_entries_ += part.n_entries;
    width_ = std::max(width_, part.width);
    has_costs_ = has_costs_ || !part.costs.empty();
    return std::nullopt;
  }

  std::vector<Index> row_starts() const {
    std::vector<Index> starts;
    Index row = 0;
    for (const LetorPart<T>& part : parts_) {
      starts.push_back(row);
      row += part.n_rows();
    }
    return starts;
  }

  // Calls f(row, column, value) for the entries of a part; zeros are left out.
  template <class F>
  static void for_each_entry(const LetorPart<T>& part, F&& f) {
    if (part.dense()) {
      const T* value = part.values.data();
      for (Index i = 0; i < part.n_rows(); ++i) {
        for (Index j = 0; j < part.width; ++j, ++value) {
          if (*value != T{0}) f(i, j, *value);
        }
      }
      return;
    }
    Index k = 0;
    for (Index i = 0; i < part.n_rows(); ++i) {
      for (; k < part.row_ends[i]; ++k) {
        if (part.values[k] != T{0}) f(i, part.columns[k], part.values[k]);
      }
    }
  }

  LetorOptions options_;
  std::vector<LetorPart<T>> parts_;
  Index n_rows_ = 0, width_ = 0, n_entries_ = 0, n_lines_ = 0;
  bool with_qid_ = false, has_costs_ = false;
};

}  // namespace marginrank
