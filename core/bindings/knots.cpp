// Values among the knots of their features, from Python.
#include "matrix/knots.hpp"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings/matrix.hpp"
#include "bindings/module.hpp"

namespace marginrank {
namespace {

Knots knots_of(Index n_features, const Array1<double>& knots, const Array1<Index>& starts,
               const Array1<std::uint8_t>& categorical) {
  check_starts(starts, n_features);
  require(static_cast<Index>(categorical.size()) == n_features,
          "categorical must have one entry per feature");
  check_vector(knots, starts(starts.size() - 1), "knots must have one entry per column");
  return {knots.data(), starts.data(), categorical.data(), n_features};
}

// (codes, steps) of Matrix.hats
template <class T>
auto encode_rows(const Strided2<T>& x, const Array1<double>& at, const Array1<Index>& starts,
                 const Array1<std::uint8_t>& categorical, int threads) {
  const Dense<T> X = dense_view(x);
  const Knots knots = knots_of(X.n_columns(), at, starts, categorical);
  auto codes = new_matrix<std::uint8_t>(x.shape(0), x.shape(1));
  auto steps = new_matrix<std::uint16_t>(x.shape(0), x.shape(1));
  {
    const GilReleased released;
    encode(X, knots, codes.data(), steps.data(), threads);
  }
  return std::make_tuple(codes, steps);
}

template <class T>
auto scores_of(const Strided2<T>& x, const Array1<double>& at, const Array1<Index>& starts,
               const Array1<std::uint8_t>& categorical, const Array1<double>& values, int threads) {
  const Dense<T> X = dense_view(x);
  const Knots knots = knots_of(X.n_columns(), at, starts, categorical);
  check_vector(values, starts(starts.size() - 1), "values must have one entry per column");
  auto scores = new_array<double>(x.shape(0));
  const GilReleased released;
  curve_scores(X, knots, values.data(), scores.data(), threads);
  return scores;
}

template <class T>
void bind_values(nb::module_& m) {
  m.def("encode_hats", &encode_rows<T>, "x"_a.noconvert(), "knots"_a, "starts"_a, "categorical"_a,
        "threads"_a, "Codes and steps of Matrix.hats, from values.");
  m.def("curve_scores", &scores_of<T>, "x"_a.noconvert(), "knots"_a, "starts"_a, "categorical"_a,
        "values"_a, "threads"_a, "By row, the sum of curves that are given at the knots.");
}

}  // namespace

void bind_knots(nb::module_& m) {
  bind_values<float>(m);
  bind_values<double>(m);
}

}  // namespace marginrank
