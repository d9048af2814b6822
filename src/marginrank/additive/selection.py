"""Additive models for the search over parameters, with work shared by fits to the same fold.

Knots and scales are chosen from the training documents of the fold. Models of one fold share the
encoded features and the basis functions, because the smoothness only scales the functions. Each fit
starts from the curves and the Hessian of the previous one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from marginrank._utils.parameters import check_integer
from marginrank._utils.types import Floats, Integers
from marginrank.additive.fit import AdditiveParameters, AdditiveProblem, Layout, lay_out
from marginrank.data.ranking_data import RankingData
from marginrank.fit.linear import preferences_of
from marginrank.fit.positions import effects_on_clicks
from marginrank.models.additive_model import AdditiveModel, scores
from marginrank.models.fit_report import FitReport, StopReason
from marginrank.selection.folds import cost_by_label, rows_of
from marginrank.selection.learner import PathLearner, PathModel
from marginrank.solvers.result import Curvature, SolverResult

KEPT_BYTES = 1 << 28  # if the codes take fewer bytes, all folds are cached for the next smoothness


class AdditiveLearner(PathLearner):
    """Fits additive models and scores documents for a search over parameters."""

    search_tol = 1e-3  # closer fits change scores by far less than their standard errors
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
        cost, margin = (
            cost_by_label(value, data.y) for value in (parameters.pair_cost, parameters.margin)
        )
        parameters = replace(parameters, pair_cost=cost, margin=margin)
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
        """Return values of C to try for an additive model: powers of ten around a typical value.

        The typical value is the inverse total weight of the pairs: with scaled features, the best C
        is usually near it.
        """
        check_integer("n_points", n_points, at_least=1)
        some = data if rows is None else rows_of(data, rows, n_jobs=parameters.n_jobs)
        pairs = preferences_of(some, parameters).pairs
        middle = 1.0 / float(np.sum(pairs.weighted(1.0, parameters.normalization).weights))
        powers = np.arange(n_points) - n_points // 2
        return np.array([float(f"{middle * 10.0**k:.4g}") for k in powers])  # short to print

    def predict(
        self, data: RankingData, model: AdditiveModel, rows: Integers | None, threads: int
    ) -> Floats:
        """Return the scores of documents: sums of curves, plus effects of display positions."""
        X = data.X if rows is None else data.X[rows]
        own = scores(model.curves, X, threads, model.interactions)
        return own + effects_on_clicks(data, model.report, rows)

    def _part(
        self, data: RankingData, parameters: AdditiveParameters, rows: Integers | None
    ) -> "FoldCurves":
        scale = parameters.scale if isinstance(parameters.scale, str) else None
        key = id(data), id(rows), parameters.max_bins, scale
        if key not in self._parts:
            train = data if rows is None else rows_of(data, rows, n_jobs=parameters.n_jobs)
            layout = lay_out(train, parameters)
            if rows is not None:  # fits read only the codes; free the copy of X
                train = train._from_parts(train._parts()._replace(X=layout.hats.X.codes))
            kept = sum(part.n_bytes for part in self._parts.values())
            part = FoldCurves(data, rows, train, layout)
            if kept + part.n_bytes > KEPT_BYTES:
                self._parts.clear()
            self._parts[key] = part
        return self._parts[key]


@dataclass
class FoldCurves:
    """Training documents of a fold, encoded, and the weights of models fitted to them so far."""

    data: RankingData  # `data` and `rows` are kept alive because the cache key contains their id()
    rows: Integers | None
    train: RankingData
    layout: Layout
    sizes: Floats | None = None  # factors of the basis functions for the last smoothness
    found: dict[float, Floats] = field(default_factory=dict)  # weights of fitted models by C
    curvature: Curvature | None = None  # Hessian of the last fit, divided by its C

    @property
    def n_bytes(self) -> int:
        return sum(codes.nbytes for codes in self.layout.hats.X)

    def along(
        self, parameters: AdditiveParameters, Cs: Floats, seed: int
    ) -> Iterator[tuple[FitReport, AdditiveModel]]:
        """Fit an additive model to the fold for each C in `Cs`; yield each report and model."""
        parameters = replace(parameters, C=1.0, lam=None).chosen_for(self.train)
        smoothness = parameters.roughness_weight
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
            # With interactions, the basis differs for each C, so there is no warm start.
            yield self._fit(own, here, seed, alone=own is not problem)

    def _fit(
        self, problem: AdditiveProblem, parameters: AdditiveParameters, seed: int, *, alone: bool
    ) -> tuple[FitReport, AdditiveModel]:
        """Return a fitted model; unless `alone`, start at stored weights and store the result."""
        C, start = parameters.loss_weight, None
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

        w, report = problem.minimize(objective, parameters, seed=seed, w0=start, solve=remember)
        if report.stop_reason is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        if not alone:
            known = results[0].curvature
            self.found[C] = w
            self.curvature = None if known is None else known.scaled(1.0 / C)
        return report, problem.model(w, report, parameters)
