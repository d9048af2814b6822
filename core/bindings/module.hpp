// The parts of the module marginrank._core, each bound in the file of its name.
#pragma once

#include <nanobind/nanobind.h>

namespace marginrank {

void bind_matrix(nanobind::module_& m);
void bind_knots(nanobind::module_& m);
void bind_grids(nanobind::module_& m);
void bind_pairs(nanobind::module_& m);
void bind_objective(nanobind::module_& m);
void bind_together(nanobind::module_& m);
void bind_hessian(nanobind::module_& m);
void bind_ranking(nanobind::module_& m);
void bind_coordinate_descent(nanobind::module_& m);
void bind_sgd(nanobind::module_& m);
void bind_text(nanobind::module_& m);
void bind_packed(nanobind::module_& m);

}  // namespace marginrank
