// Correctly rounded numbers from text.
#pragma once

#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <system_error>

#include "common.hpp"

namespace marginrank {

enum class NumberFault { none, not_a_number, too_large };

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Largest integers and powers of ten that the type holds exactly.
template <class T>
struct Exact;
template <>
struct Exact<float> {
  static constexpr std::uint64_t mantissa = std::uint64_t{1} << 24;
  static constexpr int power = 10;
};
template <>
struct Exact<double> {
  static constexpr std::uint64_t mantissa = std::uint64_t{1} << 53;
  static constexpr int power = 22;
};

// 10^k as T, exact up to Exact<T>::power.
template <class T>
constexpr T power_of_ten(int k) {
  T result = 1;
  while (k-- > 0) result *= T{10};
  return result;
}

template <class T>
struct PowersOfTen {
  T of[Exact<T>::power + 1];
  constexpr PowersOfTen() : of() {
    for (int k = 0; k <= Exact<T>::power; ++k) of[k] = power_of_ten<T>(k);
  }
};

// The general case, with a sign in front that std::from_chars does not take.
template <class T>
const char* parse_general(const char* p, const char* end, T& value, NumberFault& fault) {
  const char* first = p;
  if (first < end && *first == '+') ++first;
  const auto [stop, error] = std::from_chars(first, end, value);
  if (error == std::errc::result_out_of_range) {
    // Too small is zero, or the subnormal a wider type rounds to; too large is an error.
    const std::string_view text(first, static_cast<std::size_t>(stop - first));
    const auto exponent = text.find_first_of("eE");
    const bool tiny = exponent == text.npos ? text.find_first_of("123456789") > text.find('.')
                                            : text.substr(exponent + 1, 1) == "-";
    double wide = 0;
    std::from_chars(first, end, wide);
    value = tiny ? static_cast<T>(wide) : T{0};
    fault = tiny ? NumberFault::none : NumberFault::too_large;
  } else {
    const bool sign_twice = first != p && first < end && *first == '-';
    fault = error == std::errc{} && !sign_twice ? NumberFault::none : NumberFault::not_a_number;
  }
  return stop;
}

// Reads a number at p and returns where it ends. Plain decimals of few digits, which is what data
// files are full of, take a short cut: an exact integer divided by an exact power of ten is rounded
// once, hence correctly.
template <class T>
const char* parse_number(const char* p, const char* end, T& value, NumberFault& fault) {
  static constexpr PowersOfTen<T> powers;
  const char* const start = p;
  const bool negative = p < end && *p == '-';
  if (negative) ++p;
  std::uint64_t mantissa = 0;
  int digits = 0, decimals = 0;
  for (; p < end && is_digit(*p); ++p, ++digits) {
    mantissa = mantissa * 10 + static_cast<std::uint64_t>(*p - '0');
  }
  if (p < end && *p == '.') {
    ++p;
    for (; p < end && is_digit(*p); ++p, ++digits, ++decimals) {
      mantissa = mantissa * 10 + static_cast<std::uint64_t>(*p - '0');
    }
  }
  const bool ends = p == end || *p == ' ' || *p == '\n' || *p == '\t' || *p == '\r' || *p == '#';
  if (!ends || digits == 0 || digits > 19 || mantissa > Exact<T>::mantissa ||
      decimals > Exact<T>::power) {
    return parse_general(start, end, value, fault);
  }
  const T magnitude = static_cast<T>(mantissa) / powers.of[decimals];
  value = negative ? -magnitude : magnitude;
  fault = NumberFault::none;
  return p;
}

}  // namespace marginrank
