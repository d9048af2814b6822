// A quadratic model with a penalty from Python.
#include "solvers/coordinate_descent.hpp"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings/checks.hpp"
#include "bindings/module.hpp"

namespace marginrank {
namespace {

// (u, residual, passes, violation)
auto descend(const Array2<double>& H, const Array1<double>& u, const Array1<double>& residual,
             double l1, double l2, bool positive, Index max_passes, double tol) {
  const auto n = static_cast<Index>(H.shape(0));
  require(H.shape(0) == H.shape(1), "H must be square");
  check_vector(u, n, "u must have one entry per row of H");
  check_vector(residual, n, "residual must have one entry per row of H");
  auto new_u = new_array<double>(u.size()), new_residual = new_array<double>(u.size());
  std::copy_n(u.data(), u.size(), new_u.data());
  std::copy_n(residual.data(), u.size(), new_residual.data());
  DescentOutcome outcome;
  {
    const GilReleased released;
    CoordinateDescent descent(H.data(), n, {l1, l2, positive}, new_u.data(), new_residual.data());
    outcome = descent.run(max_passes, tol);
  }
  return std::make_tuple(new_u, new_residual, outcome.passes, outcome.violation);
}

}  // namespace

void bind_coordinate_descent(nb::module_& m) {
  m.def("coordinate_descent", &descend, "H"_a, "u"_a, "residual"_a, "l1"_a, "l2"_a, "positive"_a,
        "max_passes"_a, "tol"_a,
        "Minimize u'Hu / 2 - b'u + l1 |u|_1 + l2 |u|^2 / 2, given u and b - Hu.");
}

}  // namespace marginrank
