"""Sparse models over a grid of C or radius, each warm-started from the previous one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginrank._utils.parameters import check_integer
from marginrank._utils.threads import serial_blas
from marginrank._utils.types import Floats, Integers
from marginrank.data.ranking_data import RankingData
from marginrank.fit.inputs import matrix_on
from marginrank.fit.linear import check_not_ndcg, make_objective, require_pairs
from marginrank.fit.positions import PositionTerm, click_scores
from marginrank.fit.scaling import Scale, find_linear_scale, with_scale
from marginrank.fit.sparse import SparseParameters, first_C, first_radius
from marginrank.models.fit_report import StopReason
from marginrank.objective.objective import Objective
from marginrank.objective.regularizers import ElasticNet, L1Ball, L1Regularizer
from marginrank.selection.folds import cost_by_label, rows_of
from marginrank.selection.learner import PathLearner, PathModel
from marginrank.solvers.hinge.structured import structured_smoothing
from marginrank.solvers.result import Callback, SolverResult
from marginrank.solvers.sparse.proximal_newton import ProximalNewton

PATH_TOL = 1e-4  # tol of the fits: neighbors on a grid differ by more than this
SPAN = 1000.0  # ratio of the last value of a grid to the first


class SparseLearner(PathLearner):
    """Fits sparse models over a grid of C or radius for a search; a model is a sparse matrix row.

    `callback` is called with each iteration of each fit.
    """

    search_tol = PATH_TOL
    n_points = 50

    def __init__(self, parameter: str, callback: Callback | None = None) -> None:
        self.parameter = parameter
        self._callback = callback

    def fit_paths(
        self,
        data: RankingData,
        parameters: SparseParameters,
        values: Floats,
        parts: Sequence[Integers | None],
        *,
        seed: int = 0,
    ) -> Iterator[PathModel]:
        """Yield fitted models for all grid values, for one set of training rows after the other."""
        for part, rows in enumerate(parts):
            train, own = data, parameters
            if rows is not None:
                train = rows_of(data, rows, n_jobs=parameters.n_jobs)
                own = replace(parameters, pair_cost=cost_by_label(parameters.pair_cost, data.y))
            with serial_blas():
                objective, scale = self._objective(train, own, PositionTerm.of(train))
                for step, result in enumerate(self.walk(objective, own, values, seed)):
                    model = sp.csr_array(result.w[None, :])
                    if scale is not None:
                        model.data /= scale.values[model.indices]
                    yield PathModel(part, step, result, model, scale)

    def default_grid(
        self,
        data: RankingData,
        parameters: SparseParameters,
        n_points: int,
        rows: Integers | None = None,
    ) -> Floats:
        """Return a geometric grid that starts at the smallest useful C or radius."""
        check_integer("n_points", n_points, at_least=1)
        train = data if rows is None else rows_of(data, rows, n_jobs=parameters.n_jobs)
        with serial_blas():
            # The grid must not depend on effects of positions.
            without = PositionTerm(None, data.n_features)
            objective, _ = self._objective(train, replace(parameters, device=None), without)
            if self.parameter == "radius":
                first = first_radius(objective, positive=parameters.positive)
            else:
                first = first_C(
                    objective, l1_ratio=parameters.l1_ratio, positive=parameters.positive
                )
        if first == 0:
            raise ValueError("l1_ratio=0 has no default grid; pass Cs.")
        if not np.isfinite(first):
            raise ValueError(
                "no feature of X differs between documents with different labels; check X."
            )
        return np.geomspace(first, SPAN * first, n_points)

    def predict(self, data: RankingData, model: Any, rows: Integers | None, threads: int) -> Floats:
        """Return the scores Xw, plus the effects of display positions if the data have clicks."""
        return click_scores(data, np.ravel(model.toarray()), rows, threads)

    def with_value(self, parameters: SparseParameters, value: float) -> SparseParameters:
        """Return the parameters with C or the radius set to `value`."""
        of_grid: dict[str, Any] = {self.parameter: value}
        return replace(parameters, **of_grid)

    def walk(
        self, objective: Objective, parameters: SparseParameters, values: Floats, seed: int
    ) -> Iterator[SolverResult]:
        """Yield the solution for each grid value, warm-started from the previous solution."""
        regularizers = [self._regularizer(parameters, float(value)) for value in values]
        how = {"max_iter": parameters.max_iter, "seed": seed, "callback": self._callback}
        solve = _solve_smooth if objective.loss.smooth else _solve_hinge
        results = solve(objective, regularizers, parameters.tol, how)
        for value, result in zip(values, results, strict=True):
            if result.stop is StopReason.INTERRUPTED:
                raise KeyboardInterrupt
            # The solver minimized the objective divided by C: then only the penalty depends on C.
            yield result if self.parameter == "radius" else result.times(float(value))

    def _objective(
        self, data: RankingData, parameters: SparseParameters, positions: PositionTerm
    ) -> tuple[Objective, Scale | None]:
        """Return the loss with weight 1, as an objective on scaled features, and the scale."""
        check_not_ndcg(parameters.objective, "path")
        matrix = positions.beside(matrix_on(data, parameters.device))
        objective = make_objective(data, replace(parameters, C=None), matrix=matrix)
        require_pairs(objective, data)
        scale = positions.scaled(find_linear_scale(data, parameters.scale))
        return with_scale(objective, scale), scale

    def _regularizer(self, parameters: SparseParameters, value: float) -> L1Regularizer:
        if self.parameter == "radius":
            return L1Ball(value, parameters.positive)
        l1 = parameters.l1_ratio
        return ElasticNet(l1 / value, (1.0 - l1) / value, parameters.positive)


def _solve_smooth(
    objective: Objective, regularizers: Sequence[L1Regularizer], tol: float, how: dict[str, Any]
) -> Iterator[SolverResult]:
    solver = ProximalNewton(objective, **how)
    point = objective.at_zero()
    for regularizer in regularizers:
        yield solver.solve(regularizer, start_at=point, tol=tol)
        if solver.point is not None:
            point = solver.point.base


def _solve_hinge(
    objective: Objective, regularizers: Sequence[L1Regularizer], tol: float, how: dict[str, Any]
) -> Iterator[SolverResult]:
    w = None
    for regularizer in regularizers:
        result = structured_smoothing(objective, regularizer=regularizer, w0=w, tol=tol, **how)
        w = result.w
        yield result
