// Correctly rounded numbers from text.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "base/types.hpp"

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

// Power of ten of the first non-zero digit of a decimal that std::from_chars has accepted;
// exponents beyond reason are cut off.
inline Index decimal_exponent(const char* p, const char* end) {
  Index exponent = 0, written = 0;
  bool point = false, found = false;
  for (; p < end && *p != 'e' && *p != 'E'; ++p) {
    point = point || *p == '.';
    if (!is_digit(*p)) continue;
    if (found) {
      exponent += !point;
    } else {
      exponent -= point;
      found = *p != '0';
    }
  }
  if (p < end) {
    const bool negative = ++p < end && *p == '-';
    for (; p < end; ++p) {
      if (is_digit(*p)) written = std::min<Index>(written * 10 + (*p - '0'), 1'000'000'000);
    }
    exponent += negative ? -written : written;
  }
  return exponent;
}

// The general case, with a sign in front that std::from_chars does not take.
template <class T>
const char* parse_general(const char* p, const char* end, T& value, NumberFault& fault) {
  const char* first = p;
  if (first < end && *first == '+') ++first;
  const auto [stop, error] = std::from_chars(first, end, value);
  if (error == std::errc::result_out_of_range) {
    // Too small is zero, or the subnormal a wider type rounds to; too large is an error.
    const bool large = decimal_exponent(first, stop) > 0;
    double wide = 0;
    std::from_chars(first, end, wide);
    value = large ? T{0} : static_cast<T>(wide);
    fault = large ? NumberFault::too_large : NumberFault::none;
  } else {
    const bool sign_twice = first != p && first < end && *first == '-';
    fault = error == std::errc{} && !sign_twice ? NumberFault::none : NumberFault::not_a_number;
  }
  return stop;
}

// Reads a number at p and returns its end. Plain decimals with few digits, the common case in data
// files, take a shortcut: an exact integer divided by an exact power of ten is rounded only once,
// hence correctly.
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
