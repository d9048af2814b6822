// The Hessian of the loss in the weights, and its diagonal, from Python.
#include "sweeps/hessian.hpp"

#include "bindings/module.hpp"
#include "bindings/pairs.hpp"
#include "sweeps/diagonal.hpp"

namespace marginrank {
namespace {

auto hessian_at(const Matrix& X, const Point& point, int threads) {
  point.pairs().check_matrix(X);
  const auto n = static_cast<std::size_t>(X.n_columns());
  auto H = new_matrix<double>(n, n);
  const GilReleased released;
  visit(X, point, [&](const auto& view, const auto& kernel, const auto& state) {
    hessian(view, kernel, state, H.data(), threads);
  });
  return H;
}

auto hess_diag_at(const Matrix& X, const Point& point, int threads) {
  point.pairs().check_matrix(X);
  auto diag = new_array<double>(static_cast<std::size_t>(X.n_columns()));
  const GilReleased released;
  visit(X, point, [&](const auto& view, const auto& kernel, const auto& state) {
    hess_diag(view, kernel, state, diag.data(), threads);
  });
  return diag;
}

}  // namespace

void bind_hessian(nb::module_& m) {
  m.def("hessian", &hessian_at, "X"_a, "point"_a, "threads"_a);
  m.def("hess_diag", &hess_diag_at, "X"_a, "point"_a, "threads"_a);
}

}  // namespace marginrank
