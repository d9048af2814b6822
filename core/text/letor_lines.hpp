// The lines of LETOR / SVMlight text:
// <label> [qid:<id>] [cost:<number>] [sid:<integer>] <index>:<value> ... [# comment].
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "text/letor_part.hpp"
#include "text/numbers.hpp"

namespace marginrank {

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
  // The fields of a line before its features.
  struct Row {
    double label = 0.0;
    bool has_id = false, has_slack_id = false;
    std::string_view id;
    std::optional<double> cost;
  };

  static bool is_lower(char c) { return 'a' <= c && c <= 'z'; }
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
    Row row;
    const char* stop = word_end(p, end);
    if (!parse_label(p, stop, row.label)) return;
    p = skip_spaces(stop, end);
    while (p < end && is_lower(*p)) {
      stop = word_end(p, end);
      if (!parse_named(p, stop, row)) return;
      p = skip_spaces(stop, end);
    }
    p = parse_features(p, end);
    if (part_.error) return;
    finish_row(row, p, end);
  }

  // qid:, cost: and sid:, in any order. sid: (slacks shared by documents) has no meaning for
  // ranking.
  bool parse_named(const char* p, const char* stop, Row& row) {
    const std::string_view word(p, static_cast<std::size_t>(stop - p));
    const auto begins = [&](std::string_view name) { return word.substr(0, name.size()) == name; };
    if (begins("qid:") && !row.has_id) {
      row.has_id = true;
      row.id = word.substr(4);
      if (row.id.empty()) fail(p, "the query id after qid: is empty");
    } else if (begins("cost:") && !row.cost) {
      row.cost = parse_cost(p + 5, stop);
    } else if (begins("sid:") && !row.has_slack_id) {
      row.has_slack_id = true;
      check_slack_id(word.substr(4), p + 4, stop);
    } else {
      fail(p, bad_index(p, stop, 0));
    }
    return !part_.error;
  }

  double parse_cost(const char* p, const char* stop) {
    double cost = 0.0;
    NumberFault fault;
    const char* parsed = parse_number(p, stop, cost, fault);
    if (fault != NumberFault::none || parsed != stop || !std::isfinite(cost) || cost < 0.0) {
      fail(p, "the cost " + quoted(p, stop) + " is not a finite number of zero or more");
    }
    return cost;
  }

  void check_slack_id(std::string_view id, const char* p, const char* stop) {
    if (id.empty() || id.find_first_not_of("0123456789") != id.npos ||
        id.find_first_not_of('0') == id.npos) {
      fail(p, "the slack id " + quoted(p, stop) + " is not an integer of one or more");
    }
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
    const std::string_view word(p, static_cast<std::size_t>(end - p));
    for (const std::string_view name : {"qid:", "cost:", "sid:"}) {
      if (word.substr(0, name.size()) == name) {
        return std::string(name) + " must come once, right after the label";
      }
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
      fail(p, "the value is " + std::string(word) + "; pass missing= to replace it");
    } else if (fault == NumberFault::too_large) {
      fail(p, "the value " + quoted(p, stop) + " is too large for float" +
                  std::to_string(8 * sizeof(T)));
    } else {
      fail(p, "the value " + quoted(p, stop) + " is not a finite number");
    }
    return false;
  }

  void finish_row(const Row& row, const char* p, const char* end) {
    if (row.cost || !part_.costs.empty()) {
      part_.costs.resize(part_.labels.size(), 1.0);
      part_.costs.push_back(row.cost.value_or(1.0));
    }
    part_.labels.push_back(row.label);
    part_.row_ends.push_back(static_cast<Index>(part_.values.size()));
    if (!part_.columns.empty()) {
      part_.width = std::max(part_.width, Index{part_.columns.back()} + 1);
    }
    part_.n_with_qid += row.has_id;
    Index& first = row.has_id ? part_.line_with_qid : part_.line_without_qid;
    if (first == 0) first = part_.n_lines;
    if (!part_.runs.empty() && part_.runs.back().id == row.id) {
      ++part_.runs.back().length;
    } else {
      part_.runs.push_back({1, std::string(row.id)});
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

}  // namespace marginrank
