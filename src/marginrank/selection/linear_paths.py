"""Linear models over a grid of C, fitted together for several sets of rows such as folds.

C times the loss plus ½‖w‖² has the same optimum as the loss plus 1/C times ½‖w‖². So every C is a
ridge weight 1/C of the same objective. Training rows of a fold are the same objective with weight
zero on the queries of the other rows. All these problems share X, and each pass over X serves all
of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from marginrank._utils.parameters import ParameterError, check_integer, given
from marginrank._utils.threads import effective_threads, serial_blas
from marginrank._utils.types import Booleans, Floats, Integers
from marginrank.data.ranking_data import RankingData
from marginrank.fit.inputs import matrix_on, objective_on
from marginrank.fit.linear import Parameters, preferences_of, require_pairs
from marginrank.fit.positions import PositionTerm, click_scores
from marginrank.fit.scaling import (
    Scale,
    ScaleSearch,
    find_linear_scale,
    to_raw,
    with_scale,
)
from marginrank.models.fit_report import StopReason
from marginrank.models.parameters import no_scale
from marginrank.objective.losses import LOSSES
from marginrank.objective.objective import Objective
from marginrank.objective.pair_sets import PairSet
from marginrank.selection.folds import cost_by_label, rows_of
from marginrank.selection.learner import PathLearner, PathModel
from marginrank.solvers import find_solver
from marginrank.solvers.result import SolverResult
from marginrank.solvers.smooth.newton import newton
from marginrank.solvers.smooth.newton_paths import PathSolution, newton_paths
from marginrank.solvers.smooth.preconditioner import FEW_FEATURES
from marginrank.solvers.smooth.shared_hessian import HessianGroup

# Ends of the grid of C, in octaves from the C at which loss and regularizer have equal curvature.
# The upper end is farther, because correlated features have directions of far less curvature.
BELOW, ABOVE = -6.0, 14.0
SMALLEST_C = 1e-300  # smallest C: its inverse is finite
GRID_SAMPLE = 20_000  # documents from which the curvature of the loss is estimated
SIDE_BY_SIDE = 10  # problems solved together; each takes about 100 bytes per document
MOST_GROUPS = 2  # most groups of queries per part for which shared Hessians save time
CHUNK_ENTRIES = 1 << 22  # entries of X that are copied at a time to compute a scale


class LinearLearner(PathLearner):
    """Fits linear models over a grid of C for a search; a model is its weight vector."""

    search_tol = 1e-4  # smaller `tol` changes scores by far less than their standard errors
    n_points = 21

    def fit_paths(
        self,
        data: RankingData,
        parameters: Parameters,
        values: Floats,
        parts: Sequence[Integers | None],
        *,
        seed: int = 0,
    ) -> Iterator[PathModel]:
        """Yield models for all sets of training rows and all C, fitted together.

        If a set has only some documents of a query, its documents are copied and fitted alone.
        """
        cost, margin = (
            cost_by_label(value, data.y) for value in (parameters.pair_cost, parameters.margin)
        )
        parameters = replace(parameters, pair_cost=cost, margin=margin)
        asked = [QueryPart.of(data, number, rows) for number, rows in enumerate(parts)]
        whole = [part for part in asked if not part.cuts_queries]
        with serial_blas():
            if whole:
                yield from SharedProblems(data, parameters, whole).solve(values, seed)
            for part in asked:
                if part.cuts_queries and part.rows is not None:
                    own = rows_of(data, part.rows, n_jobs=parameters.n_jobs)
                    alone = [QueryPart.of(own, part.number, None)]
                    yield from SharedProblems(own, parameters, alone).solve(values, seed)

    def default_grid(
        self,
        data: RankingData,
        parameters: Parameters,
        n_points: int,
        rows: Integers | None = None,
    ) -> Floats:
        """Return a grid of C, from strong to weak regularization.

        It extends from 1/64 to 16,384 times the C at which loss and regularizer have the same
        curvature at w = 0; below this C the regularizer dominates. Features of typical scale
        determine the curvature.
        """
        check_integer("n_points", n_points, at_least=1)
        with serial_blas():
            # A sample is enough, so X is not copied to a device.
            on_host = replace(parameters, device=None)
            problems = SharedProblems(data, on_host, [QueryPart.of(data, 0, rows)])
            # Use the squared hinge for all losses, because some losses have no curvature.
            objective = replace(problems.objective(0, 1.0), loss=LOSSES["squared_hinge"], ridge=0.0)
            share = GRID_SAMPLE / objective.n_active_documents
            objective = objective.sample(share, seed=0) if share < 1.0 else objective
            curvature = objective.at_zero().hess_diag()[: data.n_features]
        overflow = np.flatnonzero(~np.isfinite(curvature))
        if overflow.size:
            raise ValueError(
                f"X[:, {overflow[0]}] has values so large that sums overflow; scale the feature."
            )
        if not np.any(curvature > 0):
            raise ValueError(
                "no feature of X differs between documents with different labels, or values are so "
                "small that their squares are zero; check X."
            )
        # Use the middle half of the features: a few of very large or small scale must not decide.
        weakest, strongest = np.round(np.log2(np.quantile(curvature[curvature > 0], (0.25, 0.75))))
        lowest, highest = BELOW - strongest, ABOVE - weakest
        if n_points == 1:
            return np.full(1, 2.0 ** ((lowest + highest) / 2))
        octaves: Floats = np.linspace(lowest, highest, n_points)
        return 2.0**octaves

    def predict(
        self, data: RankingData, model: Floats, rows: Integers | None, threads: int
    ) -> Floats:
        """Return the scores Xw, plus the effects of display positions if the data have clicks."""
        return click_scores(data, model, rows, threads)


LINEAR = LinearLearner()


class QueryPart(NamedTuple):
    """A set of training rows, such as a fold without its test rows."""

    number: int
    rows: Integers | None  # None for all rows
    left_out: Booleans  # mask of the queries without any of these rows
    cuts_queries: bool  # whether the part has only some documents of a query

    @classmethod
    def of(cls, data: RankingData, number: int, rows: Integers | None) -> "QueryPart":
        """Return the QueryPart with the training rows `rows`; None stands for all rows."""
        if rows is None:
            return cls(number, None, np.zeros(data.n_queries, dtype=bool), cuts_queries=False)
        count = np.bincount(data.qid[rows], minlength=data.n_queries)
        cuts = bool(np.any((count > 0) & (count < data.queries.sizes)))
        return cls(number, rows, count == 0, cuts)


class SharedProblems:
    """Fits for several sets of training queries, such as folds, which share one X."""

    def __init__(
        self, data: RankingData, parameters: Parameters, parts: Sequence[QueryPart]
    ) -> None:
        threads = effective_threads(parameters.n_jobs)
        self._parts = parts
        self._parameters = parameters
        preferences = preferences_of(data, parameters)
        self._pairs = preferences.pairs
        positions = PositionTerm.of(data)
        self._unscaled = objective_on(
            data,
            preferences,
            normalization=parameters.normalization,
            threads=threads,
            matrix=positions.beside(matrix_on(data, parameters.device)),
        )
        require_pairs(self._unscaled, data)
        scales = (_scale_of(data, part.rows, parameters.scale) for part in parts)
        self._scales = [positions.scaled(scale) for scale in scales]
        self._reference = with_scale(self._unscaled, self._scales[0])

    def solve(self, Cs: Floats, seed: int) -> Iterator[PathModel]:
        """Yield a fitted model for each set of training queries and each C, as it is found."""
        for C in (Cs[0], Cs[-1]):
            # Raises an error if C is too large.
            self._pairs.weighted(float(C), self._parameters.normalization)
        if Cs[0] < SMALLEST_C:
            least = f" is too small for a path; use at least {SMALLEST_C:g}."
            raise ParameterError(given("C", float(Cs[0])), least)
        minimize = find_solver(self._parameters.solver, self._reference.loss)
        found = self._together(Cs, seed) if minimize is newton else self._apart(minimize, Cs, seed)
        for k, step, result in found:
            scale = self._scales[k]
            raw = replace(result, w=to_raw(result.w, scale))
            yield PathModel(self._parts[k].number, step, raw, raw.w, scale)

    def objective(self, k: int, C: float) -> Objective:
        """Return the training objective for a value of C on the k-th set of training queries."""
        return with_scale(self._unscaled.on(pairs=self._weighted(k, C)), self._scales[k])

    def _weighted(self, k: int, C: float) -> PairSet:
        pairs = self._pairs.without(self._parts[k].left_out)
        if not pairs.has_weight:
            raise ValueError(
                f"fold {self._parts[k].number + 1} has no pair to learn from; check y and qid, or "
                "use other folds."
            )
        return pairs.weighted(C, self._parameters.normalization)

    def _together(self, Cs: Floats, seed: int) -> Iterator[PathSolution]:
        """Yield solutions for several sets of queries at a time, with shared passes over X."""
        for first in range(0, len(self._parts), SIDE_BY_SIDE):
            some = range(first, min(first + SIDE_BY_SIDE, len(self._parts)))
            found = newton_paths(
                self._reference,
                [self.objective(k, 1.0) for k in some],
                1.0 / Cs,
                tol=self._parameters.tol,
                max_iter=self._parameters.max_iter,
                seed=seed,
                groups=self._groups(some),
            )
            for one in found:
                result = one.result.times(float(Cs[one.step]))
                yield PathSolution(first + one.problem, one.step, result)

    def _groups(self, parts: Sequence[int]) -> list[HessianGroup]:
        """Return groups of queries that belong to the same parts; [] if there are many groups."""
        left_out = np.array([self._parts[k].left_out for k in parts])
        patterns, group = np.unique(left_out, axis=1, return_inverse=True)
        if patterns.shape[1] > MOST_GROUPS * len(parts):
            return []
        whole = self._pairs.weighted(1.0, self._parameters.normalization)
        # Normalization multiplies the weights of all queries of one part by the same factor.
        own = [float(np.sum(self._weighted(k, 1.0).weights)) for k in parts]
        of_whole = [float(np.sum(whole.weights[~without])) for without in left_out]
        factors = np.divide(own, of_whole)
        # With many features, factorizing a Hessian for each part costs more than it saves: all
        # parts share one.
        is_shared = self._reference.n_features > FEW_FEATURES
        groups = []
        for g, absent in enumerate(patterns.T):
            pairs = whole.without(np.ravel(group) != g)
            if pairs.has_weight and not absent.all():
                fraction = pairs.n_active_documents / pairs.n_documents
                objective = replace(self._reference.on(pairs=pairs), fraction=fraction)
                shares = np.ones(len(parts)) if is_shared else np.where(absent, 0.0, factors)
                groups.append(HessianGroup(objective, shares))
        return groups

    def _apart(
        self, minimize: Callable[..., SolverResult], Cs: Floats, seed: int
    ) -> Iterator[PathSolution]:
        """Yield solutions one by one, each warm-started from the previous C of its queries."""
        # Solve all parts before the next C, so that an interrupted search has complete candidates.
        starts: list[Floats | None] = [None] * len(self._parts)
        for step, C in enumerate(Cs):
            for k, w in enumerate(starts):
                result = minimize(
                    self.objective(k, float(C)),
                    w0=w,
                    tol=self._parameters.tol,
                    max_iter=self._parameters.max_iter,
                    seed=seed,
                )
                if result.stop is StopReason.INTERRUPTED:
                    raise KeyboardInterrupt
                starts[k] = result.w
                yield PathSolution(k, step, result)


def _scale_of(data: RankingData, rows: Integers | None, scale: object) -> Scale | None:
    if rows is None or no_scale(scale):
        return find_linear_scale(data, scale)
    search = ScaleSearch(scale)
    for chunk in _chunks(data, rows):
        search.add(chunk)
    return search.found()


def _chunks(data: RankingData, rows: Integers) -> Iterator[RankingData]:
    """Yield the given rows in chunks of whole queries."""
    rows = rows[np.argsort(data.qid[rows], kind="stable")]
    starts = np.flatnonzero(np.diff(data.qid[rows], prepend=-1))
    size = max(CHUNK_ENTRIES // data.n_features, 1)
    # A chunk begins with the first query that begins in each range of `size` rows.
    firsts = starts[np.flatnonzero(np.diff(starts // size, prepend=-1))]
    for chunk in np.split(rows, firsts[1:]):
        yield rows_of(data, chunk)
