// LETOR / SVMlight text from a matrix: the shortest digits that read back as the same number.
#pragma once

#include <charconv>
#include <string>

#include "base/types.hpp"

namespace marginrank {

template <class Number>
void append_number(std::string& text, Number value) {
  char digits[40];
  const auto result = std::to_chars(digits, digits + sizeof digits, value);
  text.append(digits, result.ptr);
}

// The features of a row; the last column is written even if zero when `full_width`, so that a
// reader sees how many there are.
template <class Matrix>
void append_features(const Matrix& X, Index row, Index first_index, bool full_width,
                     std::string& text) {
  using Value = typename Matrix::Value;
  const Index last = X.n_columns() - 1;
  bool last_written = false;
  auto append = [&](Index column, Value value) {
    text += ' ';
    append_number(text, column + first_index);
    text += ':';
    append_number(text, value);
    last_written = last_written || column == last;
  };
  X.for_each(row, 0, X.n_columns(), [&](Index column, double value) {
    if (value != 0.0) append(column, static_cast<Value>(value));
  });
  if (full_width && !last_written && last >= 0) append(last, Value{0});
}

}  // namespace marginrank
