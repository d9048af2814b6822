// Stochastic gradient steps from Python.
#include "sgd.hpp"

#include "bindings/module.hpp"
#include "bindings/pairs.hpp"

namespace marginrank {
namespace {

template <class T>
using Mutable1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The vectors of a stochastic gradient run, which belong to the caller and are changed in place.
SgdState sgd_state(const Mutable1<double>& w, const Mutable1<double>& average,
                   const Mutable1<double>& gradient, const Mutable1<double>& curvature,
                   const Array1<double>& inverse, const Mutable1<double>& counters) {
  const std::size_t n = w.size();
  require(average.size() == n && gradient.size() == n, "w, average and gradient differ in size");
  require(curvature.size() == n || curvature.size() == n * n, "curvature must be n or n x n");
  require(inverse.size() == curvature.size(), "inverse must be as large as curvature");
  static_assert(sizeof(SgdCounters) % sizeof(double) == 0);
  require(counters.size() * sizeof(double) == sizeof(SgdCounters), "counters have another number");
  return {static_cast<Index>(n),
          w.data(),
          average.data(),
          gradient.data(),
          curvature.data(),
          inverse.data(),
          n > 1 && curvature.size() == n * n,
          reinterpret_cast<SgdCounters*>(counters.data())};
}

SgdOptions sgd_options(const Array1<double>& values) {
  require(values.size() == 7, "options are seven numbers");
  return {values(0), values(1), values(2), values(3), values(4), values(5), values(6)};
}

// The number of queries of `order` that were worked on until the next event.
Index sgd_run(const Matrix& X, const Pairs& pairs, const Pairs& curved,
              const Array1<double>& weight, const Array1<Index>& order, const Mutable1<double>& w,
              const Mutable1<double>& average, const Mutable1<double>& gradient,
              const Mutable1<double>& curvature, const Array1<double>& inverse,
              const Mutable1<double>& counters, const Array1<double>& options, int threads) {
  pairs.check_matrix(X);
  check_vector(weight, pairs.levels().n_queries, "weight must have an entry a query");
  require(curved.levels().offsets == pairs.levels().offsets, "curved has other queries");
  require(static_cast<Index>(w.size()) == X.n_columns(), "w must have an entry a column");
  for (std::size_t k = 0; k < order.size(); ++k) {
    require(order(k) >= 0 && order(k) < pairs.levels().n_queries, "order names no query");
  }
  SgdState state = sgd_state(w, average, gradient, curvature, inverse, counters);
  const SgdOptions values = sgd_options(options);
  const GilReleased released;
  return X.visit([&](const auto& view) {
    SgdRun run(view, pairs.levels(), curved.levels(), weight.data(), values, state, threads);
    return run(order.data(), static_cast<Index>(order.size()));
  });
}

void sgd_flush(const Mutable1<double>& w, const Mutable1<double>& average,
               const Mutable1<double>& gradient, const Mutable1<double>& curvature,
               const Array1<double>& inverse, const Mutable1<double>& counters,
               const Array1<double>& options) {
  SgdState state = sgd_state(w, average, gradient, curvature, inverse, counters);
  sgd_step(state, sgd_options(options));
}

}  // namespace

void bind_sgd(nb::module_& m) {
  m.def("sgd_run", &sgd_run, "X"_a, "pairs"_a, "curved"_a, "weight"_a, "order"_a, "w"_a.noconvert(),
        "average"_a.noconvert(), "gradient"_a.noconvert(), "curvature"_a.noconvert(), "inverse"_a,
        "counters"_a.noconvert(), "options"_a, "threads"_a,
        "Stochastic gradient steps over queries; how many were done.");
  m.def("sgd_step", &sgd_flush, "w"_a.noconvert(), "average"_a.noconvert(),
        "gradient"_a.noconvert(), "curvature"_a.noconvert(), "inverse"_a, "counters"_a.noconvert(),
        "options"_a, "A step over what the batch holds.");
}

}  // namespace marginrank
