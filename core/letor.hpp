// LETOR / SVMlight text: <label> [qid:<id>] <index>:<value> ... [# comment], one document a line.
//
// Text comes in pieces of whole lines. A piece is cut at line ends and its parts are parsed in
// parallel; each part is kept in the smaller of the dense and the sparse form until the end, when
// the parts are moved into place one by one. So memory stays near the size of the result.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "numbers.hpp"
#include "parallel.hpp"

namespace marginrank {

struct LetorOptions {
  Index first_index = 1;
  Index n_features = -1;          // -1: as many as there are
  std::optional<double> missing;  // what stands for NULL; none: an error
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

// Memory that goes back to the system as soon as it is freed; malloc would keep it, and the parts
// of a text would stay beside the result they have been moved to.
template <class T>
struct PageAllocator {
  using value_type = T;

  T* allocate(std::size_t n) {
    void* pages =
        mmap(nullptr, n * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    return static_cast<T*>(pages);
  }
  void deallocate(T* pages, std::size_t n) { munmap(pages, n * sizeof(T)); }
  bool operator==(const PageAllocator&) const { return true; }
};

template <class T>
using Pages = std::vector<T, PageAllocator<T>>;

// What some consecutive lines hold.
template <class T>
struct LetorPart {
  std::vector<double> labels;
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

template <class T>
class LineParser {
 public:
  LineParser(const LetorOptions& options, LetorPart<T>& part) : options_(options), part_(part) {}

  // Parses whole lines; stops at the first error.
  void parse(const char* text, const char* text_end) {
    const auto size = static_cast<std::size_t>(text_end - text);
    part_.values.reserve(size / 8);
    part_.columns.reserve(size / 8);
    for (const char* line = text; line < text_end && !part_.error;) {
      const void* found = std::memchr(line, '\n', static_cast<std::size_t>(text_end - line));
      const char* end = found ? static_cast<const char*>(found) : text_end;
      ++part_.n_lines;
      line_ = line;
      parse_line(line, end > line && end[-1] == '\r' ? end - 1 : end);
      line = end + 1;
    }
    part_.n_entries = static_cast<Index>(part_.values.size());
    part_.make_dense_if_smaller();
  }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\t'; }
  static const char* skip_spaces(const char* p, const char* end) {
    while (p < end && is_space(*p)) ++p;
    return p;
  }
  static const char* word_end(const char* p, const char* end) {
    while (p < end && !is_space(*p) && *p != '#') ++p;
    return p;
  }
  static std::string quoted(const char* p, const char* end) {
    constexpr std::ptrdiff_t kShown = 40;
    std::string text(1, '\'');
    text.append(p, std::min(end, p + kShown));
    text.append(end - p > kShown ? "...'" : "'");
    return text;
  }

  void fail(const char* at, std::string what) {
    part_.error = LetorError{part_.n_lines, at - line_ + 1, std::move(what)};
  }

  void parse_line(const char* p, const char* end) {
    p = skip_spaces(p, end);
    if (p == end || *p == '#') return;
    double label;
    const char* stop = word_end(p, end);
    if (!parse_label(p, stop, label)) return;
    p = skip_spaces(stop, end);
    std::string_view id;
    const bool has_id = end - p >= 4 && std::memcmp(p, "qid:", 4) == 0;
    if (has_id) {
      stop = word_end(p, end);
      id = {p + 4, static_cast<std::size_t>(stop - p - 4)};
      if (id.empty()) return fail(p, "the query id after qid: is empty");
      p = stop;
    }
    p = parse_features(p, end);
    if (part_.error) return;
    finish_row(label, has_id, id, p, end);
  }

  bool parse_label(const char* p, const char* stop, double& label) {
    NumberFault fault;
    const char* parsed = parse_number(p, stop, label, fault);
    if (fault == NumberFault::too_large) {
      fail(p, "the label " + quoted(p, stop) + " is too large");
    } else if (fault != NumberFault::none || parsed != stop || !std::isfinite(label)) {
      fail(p, "the label " + quoted(p, stop) + " is not a finite number");
    }
    return !part_.error;
  }

  // Returns where the features end: at the comment or the end of the line.
  const char* parse_features(const char* p, const char* end) {
    Index previous = options_.first_index - 1;
    for (p = skip_spaces(p, end); p < end && *p != '#'; p = skip_spaces(p, end)) {
      const char* const start = p;
      Index index = 0;
      for (; p < end && is_digit(*p) && index <= INT32_MAX; ++p) index = index * 10 + (*p - '0');
      if (p == start || p == end || *p != ':') {
        fail(start, bad_index(start, word_end(start, end), index));
        return p;
      }
      if (!check_index(start, index, previous)) return p;
      previous = index;
      p = parse_value(p + 1, end, index - options_.first_index);
      if (part_.error) return p;
    }
    return p;
  }

  static std::string bad_index(const char* p, const char* end, Index index) {
    if (index > INT32_MAX) return "the index in " + quoted(p, end) + " is larger than 2147483647";
    if (std::string_view(p, static_cast<std::size_t>(end - p)).substr(0, 4) == "qid:") {
      return "qid: must come once, right after the label";
    }
    return "expected index:value, found " + quoted(p, end);
  }

  bool check_index(const char* at, Index index, Index previous) {
    if (index > INT32_MAX) {
      fail(at, "the index is larger than 2147483647");
    } else if (index < options_.first_index) {
      fail(at, "index 0, but indices start at 1; pass zero_based=True if they start at 0");
    } else if (index == previous) {
      fail(at, "index " + std::to_string(index) + " appears twice");
    } else if (index < previous) {
      fail(at, "index " + std::to_string(index) + " after " + std::to_string(previous) +
                   ": indices must increase");
    } else if (options_.n_features >= 0 && index - options_.first_index >= options_.n_features) {
      fail(at, "index " + std::to_string(index) +
                   " is beyond n_features=" + std::to_string(options_.n_features));
    }
    return !part_.error;
  }

  const char* parse_value(const char* p, const char* end, Index column) {
    T value;
    NumberFault fault;
    const char* parsed = parse_number(p, end, value, fault);
    const bool whole = parsed == end || is_space(*parsed) || *parsed == '#';
    if (fault != NumberFault::none || !whole || !std::isfinite(value)) {
      const char* stop = word_end(p, end);
      if (!replace_missing(p, stop, fault, value)) return stop;
      parsed = stop;
    }
    part_.columns.push_back(static_cast<std::int32_t>(column));
    part_.values.push_back(value);
    return parsed;
  }

  // NULL and nan are missing values; anything else that is not a finite number is an error.
  bool replace_missing(const char* p, const char* stop, NumberFault fault, T& value) {
    const std::string_view word(p, static_cast<std::size_t>(stop - p));
    const bool missing = word == "NULL" || word == "nan" || word == "NaN" || word == "NAN";
    if (missing && options_.missing) {
      value = static_cast<T>(*options_.missing);
      return true;
    }
    if (missing) {
      fail(p, "the value is " + std::string(word) + "; say what to put there with missing=");
    } else if (fault == NumberFault::too_large) {
      fail(p, "the value " + quoted(p, stop) + " is too large for float" +
                  std::to_string(8 * sizeof(T)));
    } else {
      fail(p, "the value " + quoted(p, stop) + " is not a finite number");
    }
    return false;
  }

  void finish_row(double label, bool has_id, std::string_view id, const char* p, const char* end) {
    part_.labels.push_back(label);
    part_.row_ends.push_back(static_cast<Index>(part_.values.size()));
    if (!part_.columns.empty()) {
      part_.width = std::max(part_.width, Index{part_.columns.back()} + 1);
    }
    part_.n_with_qid += has_id;
    Index& first = has_id ? part_.line_with_qid : part_.line_without_qid;
    if (first == 0) first = part_.n_lines;
    if (!part_.runs.empty() && part_.runs.back().id == id) {
      ++part_.runs.back().length;
    } else {
      part_.runs.push_back({1, std::string(id)});
    }
    if (options_.keep_comments) {
      const char* text = p < end ? skip_spaces(p + 1, end) : end;  // behind the #
      part_.comments.emplace_back(text, end);
    }
  }

  const LetorOptions& options_;
  LetorPart<T>& part_;
  const char* line_ = nullptr;
};

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
  bool with_qid_ = false;
};

}  // namespace marginrank
