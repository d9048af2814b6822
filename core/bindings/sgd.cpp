// Stochastic gradient steps from Python.
#include "solvers/sgd.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "bindings/module.hpp"
#include "bindings/pairs.hpp"

namespace marginrank {
namespace {

using AnyShape = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Vector = std::vector<double> SgdState::*;

SgdOptions make_options(double ridge, double total, double rate, double offset, double power) {
  require(ridge > 0 && std::isfinite(ridge), "ridge must be positive and finite");
  require(total >= 0 && std::isfinite(total), "total must be zero or positive and finite");
  require(std::isfinite(rate) && std::isfinite(offset) && std::isfinite(power),
          "rate, offset and power must be finite");
  return {ridge, total, rate, offset, power};
}

SgdState make_state(Index n_features, bool full, Index first_batch) {
  require(n_features >= 0, "n_features must not be negative");
  require(first_batch >= 0, "first_batch must not be negative");
  return SgdState(n_features, full, first_batch);
}

// A vector of the state, or a matrix if it is one of a full metric.
template <Vector field>
nb::object copy_of(const SgdState& state) {
  const std::vector<double>& values = state.*field;
  const auto n = static_cast<std::size_t>(state.n_features);
  auto data = std::make_unique_for_overwrite<double[]>(values.size());
  std::copy(values.begin(), values.end(), data.get());
  const std::size_t shape[2] = {n, n};
  const std::size_t ndim = values.size() == n ? 1 : 2;
  double* const first = data.get();
  return nb::cast(nb::ndarray<nb::numpy, double>(first, ndim, shape, owner_of(std::move(data))));
}

void assign(std::vector<double>& target, const AnyShape& values) {
  require(values.size() == target.size(),
          "the array must have the size of the field that it replaces");
  std::copy_n(values.data(), values.size(), target.begin());
}

template <Vector field>
void set_to(SgdState& state, const AnyShape& values) {
  assign(state.*field, values);
}

// The number of queries of `order` that were worked on until the next event.
Index run(SgdState& state, const Matrix& X, const Pairs& pairs, const Pairs& curved,
          const Array1<double>& weight, const Array1<Index>& order, const SgdOptions& options,
          int threads) {
  const Index n_queries = pairs.documents().n_queries;
  pairs.check_matrix(X);
  curved.check_matrix(X);
  check_vector(weight, n_queries, "weight must have one entry per query");
  require(curved.same_queries(pairs) && curved.kernel().index() == pairs.kernel().index(),
          "curved and pairs must have the same documents");
  require(!pairs.documents().is_smooth() && !curved.documents().is_smooth(),
          "steps need a loss of hinge terms");
  require(state.n_features == X.n_columns(),
          "the matrix and the state must have the same number of features");
  for (std::size_t k = 0; k < order.size(); ++k) {
    require(order(k) >= 0 && order(k) < n_queries, "order must hold numbers of queries");
  }
  const GilReleased released;
  return X.visit([&](const auto& view) {
    return std::visit(
        [&](const auto& kernel) {
          using Kernel = std::decay_t<decltype(kernel)>;
          SgdRun run(view, kernel, std::get<Kernel>(curved.kernel()), weight.data(), options, state,
                     threads);
          return run(order.data(), static_cast<Index>(order.size()));
        },
        pairs.kernel());
  });
}

// f(name, field) for every field of a state except its sizes.
template <class State, class F>
void for_each_field(State& state, F&& f) {
  f("penalty", state.penalty);
  f("w", state.w);
  f("average", state.average);
  f("gradient", state.gradient);
  f("curvature", state.curvature);
  f("inverse", state.inverse);
  f("batch_value", state.batch.value);
  f("batch_weight", state.batch.weight);
  f("batch_entries", state.batch.entries);
  f("batch_documents", state.batch.documents);
  f("steps", state.steps);
  f("documents", state.documents);
  f("weight", state.weight);
  f("seen", state.seen);
  f("value", state.value);
  f("curvature_weight", state.curvature_weight);
  f("collecting", state.collecting);
  f("next_event", state.next_event);
}

nb::dict to_fields(const SgdState& state) {
  nb::dict fields;
  fields["n_features"] = state.n_features;
  fields["full"] = state.full;
  fields["first_batch"] = state.first_batch;
  for_each_field(state, [&](const char* name, const auto& value) {
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>) {
      fields[name] = value;
    } else {
      fields[name] = to_array(std::vector<double>(value));
    }
  });
  return fields;
}

// The value of a field, or a ValueError: nanobind's own cast would raise a C++ runtime error.
template <class T>
T field(const nb::dict& fields, const char* name) {
  T value;
  if (!nb::try_cast(fields[name], value)) {
    throw nb::value_error(("the state has a " + std::string(name) + " of the wrong type").c_str());
  }
  return value;
}

SgdState from_fields(const nb::dict& fields) {
  SgdState state = make_state(field<Index>(fields, "n_features"), field<bool>(fields, "full"),
                              field<Index>(fields, "first_batch"));
  for_each_field(state, [&](const char* name, auto& value) {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_arithmetic_v<Value>) {
      value = field<Value>(fields, name);
    } else {
      assign(value, field<AnyShape>(fields, name));
    }
  });
  return state;
}

}  // namespace

void bind_sgd(nb::module_& m) {
  nb::class_<SgdOptions>(m, "SgdOptions", "Step sizes, and the weight of |w|^2 / 2.")
      .def(nb::new_(&make_options), nb::kw_only(), "ridge"_a, "total"_a, "rate"_a, "offset"_a,
           "power"_a);

  nb::class_<SgdState>(m, "SgdState", "State of stochastic gradient descent between steps.")
      // Not nb::new_: unpickling makes an object without arguments.
      .def(
          "__init__",
          [](SgdState* state, Index n_features, bool full, Index first_batch) {
            new (state) SgdState(make_state(n_features, full, first_batch));
          },
          "n_features"_a, nb::kw_only(), "full"_a, "first_batch"_a)
      .def_prop_rw("penalty", &copy_of<&SgdState::penalty>, &set_to<&SgdState::penalty>,
                   "Of the square of each weight, times lambda / 2.")
      .def_prop_rw("w", &copy_of<&SgdState::w>, &set_to<&SgdState::w>)
      .def_prop_rw("average", &copy_of<&SgdState::average>, &set_to<&SgdState::average>)
      .def_prop_ro("gradient", &copy_of<&SgdState::gradient>, "Of the batch.")
      .def_prop_ro("curvature", &copy_of<&SgdState::curvature>, "Sum of Hessians.")
      .def_prop_rw("inverse", &copy_of<&SgdState::inverse>, &set_to<&SgdState::inverse>, "P.")
      .def_ro("full", &SgdState::full)
      .def_ro("steps", &SgdState::steps)
      .def_ro("documents", &SgdState::documents)
      .def_ro("weight", &SgdState::weight)
      .def_rw("seen", &SgdState::seen)
      .def_ro("value", &SgdState::value)
      .def_ro("curvature_weight", &SgdState::curvature_weight)
      .def_rw("collecting", &SgdState::collecting)
      .def_rw("next_event", &SgdState::next_event)
      .def_prop_ro("batch_weight", [](const SgdState& state) { return state.batch.weight; })
      .def_prop_ro("event_is_due", &SgdState::event_is_due)
      .def("run", &run, "X"_a, "pairs"_a, "curved"_a, "weight"_a, "order"_a, "options"_a,
           "threads"_a, "Take steps over queries until the next event; return how many were done.")
      .def("step", &SgdState::step, "options"_a, "A step over what the batch holds.")
      .def("scale_curvature", &SgdState::scale_curvature, "share"_a,
           "Keep a share of the Hessians so far.")
      .def("copy", [](const SgdState& state) { return SgdState(state); })
      .def("__getstate__", &to_fields)
      .def("__setstate__", [](SgdState& state, const nb::dict& fields) {
        new (&state) SgdState(from_fields(fields));
      });
}

}  // namespace marginrank
