"""Additive models as something to choose from: those of a fold share all they can.

Knots and scales are those of the documents that a model learns from. Models of one fold that differ
in smoothness share the codes of their values and the shapes of curves, which smoothness multiplies
by numbers alone. Each starts from its neighbour's curves, and from what that has found of the
Hessian.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from marginrank._utils.parameters import check_integer
from marginrank._utils.types import Floats, Integers
from marginrank.additive.fit import (
    AdditiveParameters,
    AdditiveProblem,
    Layout,
    lay_out,
)
from marginrank.data.ranking_data import RankingData
from marginrank.fit.linear import preferences_of
from marginrank.models.additive_model import scores
from marginrank.models.fit_report import FitReport, StopReason
from marginrank.selection.folds import cost_by_label, rows_of
from marginrank.selection.learner import PathLearner, PathModel
from marginrank.solvers.result import Curvature, SolverResult

KEPT_BYTES = 1 << 28  # of codes, up to which those of all folds stay for the next smoothness


class AdditiveLearner(PathLearner):
    """Additive models."""

    search_tol = 1e-3  # closer fits would not change what is chosen
    n_points = 3
    room = (0.1, 100.0)

    def __init__(self) -> None:
        self._parts: dict[tuple[Any, ...], FoldCurves] = {}

    def fit_paths(
        self,
        data: RankingData,
        parameters: AdditiveParameters,
        values: Floats,
        parts: Sequence[Integers | None],
        *,
        seed: int = 0,
    ) -> Iterator[PathModel]:
        """Learn from one part after the other."""
        parameters = replace(parameters, pair_cost=cost_by_label(parameters.pair_cost, data.y))
        for number, rows in enumerate(parts):
            part = self._part(data, parameters, rows)
            for step, (result, model) in enumerate(part.along(parameters, values, seed)):
                yield PathModel(number, step, result, model)

    def default_grid(
        self,
        data: RankingData,
        parameters: AdditiveParameters,
        n_points: int,
        rows: Integers | None = None,
    ) -> Floats:
        """Return powers of ten around the inverse of what all pairs weigh.

        Features have a scale, as a rule, so that this is near what is best.
        """
        check_integer("n_points", n_points, at_least=1)
        some = data if rows is None else rows_of(data, rows, n_jobs=parameters.n_jobs)
        middle = 1.0 / _pair_weight(some, parameters)
        powers = np.arange(n_points) - n_points // 2
        return np.array([float(f"{middle * 10.0**k:.4g}") for k in powers])  # numbers for people

    def predict(self, data: RankingData, model: Any, rows: Integers | None, threads: int) -> Floats:
        """Return the sum of the curves."""
        scores: Floats = model(data.X if rows is None else data.X[rows], threads=threads)
        return scores

    def _part(
        self, data: RankingData, parameters: AdditiveParameters, rows: Integers | None
    ) -> "FoldCurves":
        """Return what models of a part share, which may be there already."""
        scale = parameters.scale if isinstance(parameters.scale, str) else None
        key = id(data), id(rows), parameters.max_bins, scale
        if key not in self._parts:
            train = data if rows is None else rows_of(data, rows, n_jobs=parameters.n_jobs)
            layout = lay_out(train, parameters)
            if rows is not None:  # a fit reads the codes, so that the copy of X can go
                train = train._from_parts(train._parts()._replace(X=layout.hats.X.codes))
            kept = sum(part.n_bytes for part in self._parts.values())
            part = FoldCurves(data, rows, train, layout)
            if kept + part.n_bytes > KEPT_BYTES:
                self._parts.clear()
            self._parts[key] = part
        return self._parts[key]


def _pair_weight(data: RankingData, parameters: AdditiveParameters) -> float:
    """Return what all pairs weigh together where C is one."""
    pairs = preferences_of(data, parameters).pairs
    return float(np.sum(pairs.weighted(1.0, parameters.normalization).weights))


@dataclass
class FoldCurves:
    """A part of the documents, and the last model of it for each C."""

    data: RankingData  # kept, as is `rows`, so that nothing else has their identity
    rows: Integers | None
    train: RankingData
    layout: Layout
    sizes: Floats | None = None
    found: dict[float, Floats] = field(default_factory=dict)
    curvature: Curvature | None = None

    @property
    def n_bytes(self) -> int:
        """Memory of the codes."""
        return sum(codes.nbytes for codes in self.layout.hats.X)

    def along(
        self, parameters: AdditiveParameters, Cs: Floats, seed: int
    ) -> Iterator[tuple[FitReport, Any]]:
        """Yield the models of all C."""
        smoothness = parameters.smoothness_for(self.layout.knots)
        problem = self.layout.problem(smoothness)
        sizes = self.layout.sizes(smoothness)
        ratio = np.ones_like(sizes) if self.sizes is None else self.sizes / sizes
        self.sizes = sizes
        self.found = {C: w * ratio for C, w in self.found.items()}
        if self.curvature is not None:
            self.curvature = self.curvature.scaled(1.0, 1.0 / ratio)
        for C in map(float, Cs):
            here = replace(parameters, C=C, lam=None)
            own = problem.with_interactions(self.train, here, seed=seed)
            # With pairs of features, weights are those of other functions for each C.
            yield self._fit(own, here, seed, alone=own is not problem)

    def _fit(
        self, problem: AdditiveProblem, parameters: AdditiveParameters, seed: int, *, alone: bool
    ) -> tuple[FitReport, Any]:
        """Return a model; unless it is alone, from what others tell, and keep what it tells."""
        C, start = parameters.C, None
        objective = problem.objective(self.train, parameters)
        if not alone and self.found:
            start = self.found[min(self.found, key=lambda other: abs(np.log(other / C)))]
        solve = problem.solver(parameters, objective.loss)
        if not alone and self.curvature is not None:
            solve = partial(solve, curvature=self.curvature.scaled(C))
        results: list[SolverResult] = []

        def remember(*given: Any, **options: Any) -> SolverResult:
            results.append(solve(*given, **options))
            return results[0]

        w, report = problem.minimise(objective, parameters, seed=seed, w0=start, solve=remember)
        if report.stop_reason is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        if not alone:
            known = results[0].curvature
            self.found[C] = w
            self.curvature = None if known is None else known.scaled(1.0 / C)
        model = problem.model(w, report, parameters)
        return report, partial(scores, model.curves, interactions=model.interactions)
