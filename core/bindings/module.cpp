// The Python module marginrank._core: numpy arrays in, numpy arrays out, no mathematics.
#include "bindings/module.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/checks.hpp"
#include "simd/dispatch.hpp"

namespace marginrank {
namespace {

void bind_instruction_sets(nb::module_& m) {
  m.def("instruction_sets", &instruction_sets,
        "Variants of the kernels that this machine can run; the last is in use.");
  m.def("compiled_instruction_sets", &compiled_instruction_sets,
        "Variants of the kernels that were compiled, for any machine.");
  m.def(
      "use_instruction_set",
      [](const std::string& name) {
        require(use_instruction_set(name), "this machine does not support that instruction set");
      },
      "name"_a, "Use another of them, to test and measure it.");
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "Native kernels of marginrank; use them through marginrank.objective.";
  nb::set_leak_warnings(false);
  bind_matrix(m);
  bind_knots(m);
  bind_grids(m);
  bind_packed(m);
  bind_pairs(m);
  bind_text(m);
  bind_objective(m);
  bind_together(m);
  bind_hessian(m);
  bind_coordinate_descent(m);
  bind_sgd(m);
  bind_ranking(m);
  bind_instruction_sets(m);
}

}  // namespace marginrank
