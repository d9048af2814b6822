// The logistic function of a pair, which has a slope everywhere.
#pragma once

#include <algorithm>
#include <cmath>

namespace marginrank {

struct LogisticTerm {
  double value, slope, curvature;
};

// log(1 + exp(x)) and its derivatives. Exponentials of -|x| do not overflow, and no digits are lost
// on either side. The value takes a logarithm, so it is computed only `with_value`.
inline LogisticTerm logistic_term(double x, bool with_value) {
  const double e = std::exp(-std::abs(x)), share = 1.0 / (1.0 + e);
  return {with_value ? std::max(x, 0.0) + std::log1p(e) : 0.0, x > 0.0 ? share : e * share,
          e * share * share};
}

}  // namespace marginrank
