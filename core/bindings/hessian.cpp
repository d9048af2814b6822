// The Hessian of the loss in the weights, its diagonal and its factors, from Python.
#include "sweeps/hessian.hpp"

#include "bindings/module.hpp"
#include "bindings/pairs.hpp"
#include "sweeps/curved_rows.hpp"
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

auto curved_rows_at(const Matrix& X, const Point& point, Index first, Index last, int threads) {
  point.pairs().check_matrix(X);
  const Documents& documents = point.pairs().documents();
  if (first < 0 || last < first || last > documents.n_queries) {
    throw nb::value_error("first and last must be a range of queries");
  }
  const auto m = static_cast<std::size_t>(documents.offsets[last] - documents.offsets[first]);
  const auto n = static_cast<std::size_t>(X.n_columns());
  auto rows = new_matrix<float>(m, n), images = new_matrix<float>(m, n);
  {
    const GilReleased released;
    visit(X, point, [&](const auto& view, const auto& kernel, const auto& state) {
      curved_rows(view, kernel, state, {first, last}, rows.data(), images.data(), threads);
    });
  }
  return nb::make_tuple(std::move(rows), std::move(images));
}

}  // namespace

void bind_hessian(nb::module_& m) {
  m.def("hessian", &hessian_at, "X"_a, "point"_a, "threads"_a);
  m.def("hess_diag", &hess_diag_at, "X"_a, "point"_a, "threads"_a);
  m.def("curved_rows", &curved_rows_at, "X"_a, "point"_a, "first"_a, "last"_a, "threads"_a);
}

}  // namespace marginrank
