"""Linear models over a grid of C, learned from all documents or from parts of them, side by side.

C times the loss plus ½‖w‖² has the optimum of the loss plus 1/C times ½‖w‖². So all values of C are
ridges of one objective. Parts of whole queries, as the folds of a cross validation, are the same
objective with a weight of zero on the other queries: they share X, and every sweep over it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from marginrank._utils.parameters import ParameterError, check_integer, given
from marginrank._utils.threads import effective_threads, serial_blas
from marginrank._utils.types import Booleans, Floats, Integers
from marginrank.data.ranking_data import RankingData
from marginrank.fit.linear import Parameters, require_pairs
from marginrank.fit.pairs import choose_pairs, objective_on
from marginrank.fit.scaling import (
    Scale,
    ScaleSearch,
    find_linear_scale,
    to_raw,
    with_scale,
)
from marginrank.models.fit_report import StopReason
from marginrank.models.parameters import no_scale
from marginrank.objective.losses import LOSSES, get_loss
from marginrank.objective.objective import Objective
from marginrank.selection.folds import cost_by_label, rows_of
from marginrank.solvers import find_solver
from marginrank.solvers.result import SolverResult
from marginrank.solvers.smooth.newton import newton
from marginrank.solvers.smooth.newton_paths import Found, newton_paths

BELOW, ABOVE = -6.0, 14.0  # octaves of C, from where loss and regulariser are of one curvature
SMALLEST_C = 1e-300  # of which the inverse is a number
GRID_SAMPLE = 20_000  # documents that tell which that is
SIDE_BY_SIDE = 10  # problems: each has about a hundred bytes a document while it is solved
CHUNK_ENTRIES = 1 << 22  # of X, that are copied at a time to find a scale


@dataclass(frozen=True)
class Solution:
    """The model of one part of the documents for one C.

    Attributes
    ----------
    part, step : int
        Which of the parts, and which C of the grid.
    result : SolverResult
        Weights of the features as they are; objective and gap as those of a fit with this C.
    scale : Scale or None
        What the features were divided by.
    """

    part: int
    step: int
    result: SolverResult
    scale: Scale | None

    @property
    def model(self) -> Floats:
        """The weights."""
        return self.result.w


def solve_paths(
    data: RankingData,
    parameters: Parameters,
    Cs: Floats,
    parts: Sequence[Integers | None],
    *,
    seed: int = 0,
) -> Iterator[Solution]:
    """Learn from each part for each C, and yield models as they are found.

    Those of one part come in the order of the grid.

    Parameters
    ----------
    data : RankingData
        The documents.
    parameters : Parameters
        Everything but C.
    Cs : ndarray
        The grid, ascending.
    parts : sequence of ndarray or None
        Rows to learn from; None for all. Parts with all or no documents of each query share X; of
        others, the documents are copied.
    seed : int
        For the samples that speed up the fits.
    """
    parameters = replace(parameters, pair_cost=cost_by_label(parameters.pair_cost, data.y))
    asked = [Part.of(data, number, rows) for number, rows in enumerate(parts)]
    whole = [part for part in asked if not part.cuts_queries]
    with serial_blas():
        if whole:
            yield from Problems(data, parameters, whole).solve(Cs, seed)
        for part in asked:
            if part.cuts_queries and part.rows is not None:
                own = rows_of(data, part.rows, n_jobs=parameters.n_jobs)
                alone = Problems(own, parameters, [Part.of(own, part.number, None)])
                yield from alone.solve(Cs, seed)


def default_Cs(
    data: RankingData, parameters: Parameters, n_points: int, rows: Integers | None = None
) -> Floats:
    """Return a grid of C, from where the regulariser outweighs the loss to where it has no say.

    Where both have the same curvature at w = 0, the loss begins to matter. For a feature, that is
    at a C that depends on its scale; the middle half of the features counts, so that a few of very
    large or small values do not decide. The grid goes further up than down, as correlated features
    have directions of far less curvature. The curvature is that of the squared hinge for all
    losses, as some have none.

    Parameters
    ----------
    data : RankingData
        The documents.
    parameters : Parameters
        Everything but C.
    n_points : int
        Length of the grid.
    rows : ndarray, optional
        Rows of the queries to look at; all by default.
    """
    check_integer("n_points", n_points, at_least=1)
    with serial_blas():
        objective = Problems(data, parameters, [Part.of(data, 0, rows)]).objective(0, 1.0)
        objective = replace(objective, loss=LOSSES["squared_hinge"], ridge=0.0)
        share = GRID_SAMPLE / objective.n_active_documents
        objective = objective.sample(share, seed=0) if share < 1.0 else objective
        curvature = objective.at_zero().hess_diag()
    overflow = np.flatnonzero(~np.isfinite(curvature))
    if overflow.size:
        raise ValueError(
            f"X[:, {overflow[0]}] has values so large that sums overflow; scale the feature."
        )
    if not np.any(curvature > 0):
        raise ValueError(
            "no feature of X tells documents with different labels apart, or all values are so "
            "small that squares of them are zero; check X."
        )
    weakest, strongest = np.round(np.log2(np.quantile(curvature[curvature > 0], (0.25, 0.75))))
    lowest, highest = BELOW - strongest, ABOVE - weakest
    if n_points == 1:
        return np.full(1, 2.0 ** ((lowest + highest) / 2))
    octaves: Floats = np.linspace(lowest, highest, n_points)
    return 2.0**octaves


class Part(NamedTuple):
    """Rows to learn from.

    Attributes
    ----------
    number : int
        Which part.
    rows : ndarray or None
        Rows of X; None for all.
    left_out : ndarray of bool, shape (n_queries,)
        The queries that have no document in it.
    cuts_queries : bool
        Whether it has some documents of a query and lacks others.
    """

    number: int
    rows: Integers | None
    left_out: Booleans
    cuts_queries: bool

    @classmethod
    def of(cls, data: RankingData, number: int, rows: Integers | None) -> "Part":
        """Return a part of the data."""
        if rows is None:
            return cls(number, None, np.zeros(data.n_queries, dtype=bool), cuts_queries=False)
        count = np.bincount(data.qid[rows], minlength=data.n_queries)
        cuts = bool(np.any((count > 0) & (count < data.queries.sizes)))
        return cls(number, rows, count == 0, cuts)


class Problems:
    """An objective for each part of whole queries, all on one X.

    Attributes
    ----------
    reference : Objective
        That of all data, with C = 1.
    """

    def __init__(self, data: RankingData, parameters: Parameters, parts: Sequence[Part]) -> None:
        threads = effective_threads(parameters.n_jobs)
        self._parts = parts
        self._parameters = parameters
        preferences = choose_pairs(
            data,
            get_loss(parameters.loss),
            pair_selection=parameters.pair_selection,
            pair_cost=parameters.pair_cost,
            margin=parameters.margin,
            threads=threads,
        )
        self._pairs = preferences.pairs
        self._unscaled = objective_on(
            data, preferences, normalization=parameters.normalization, threads=threads
        )
        require_pairs(self._unscaled, data)
        self._scales = [_scale_of(data, part.rows, parameters.scale) for part in parts]
        self.reference = with_scale(self._unscaled, self._scales[0])

    def solve(self, Cs: Floats, seed: int) -> Iterator[Solution]:
        """Yield the models of all parts."""
        for C in (Cs[0], Cs[-1]):
            self._pairs.weighted(float(C), self._parameters.normalization)  # may be too large
        if Cs[0] < SMALLEST_C:
            told = f" is too small for a path, which divides by it; take at least {SMALLEST_C:g}."
            raise ParameterError(given("C", float(Cs[0])), told)
        minimise = find_solver(self._parameters.solver, self.reference.loss)
        found = self._together(Cs, seed) if minimise is newton else self._apart(minimise, Cs, seed)
        for k, step, result in found:
            scale = self._scales[k]
            raw = replace(result, w=to_raw(result.w, scale))
            yield Solution(self._parts[k].number, step, raw, scale)

    def objective(self, k: int, C: float) -> Objective:
        """Return the objective of part k."""
        pairs = self._pairs.without(self._parts[k].left_out)
        if not pairs.has_weight:
            raise ValueError(
                f"fold {self._parts[k].number + 1} has no pair to learn from; check y and qid, or "
                "take other folds."
            )
        pairs = pairs.weighted(C, self._parameters.normalization)
        return with_scale(self._unscaled.on(pairs=pairs), self._scales[k])

    def _together(self, Cs: Floats, seed: int) -> Iterator[Found]:
        """Solve all at once, or as many at a time as there is room for."""
        for first in range(0, len(self._parts), SIDE_BY_SIDE):
            some = range(first, min(first + SIDE_BY_SIDE, len(self._parts)))
            found = newton_paths(
                self.reference,
                [self.objective(k, 1.0) for k in some],
                1.0 / Cs,
                tol=self._parameters.tol,
                max_iter=self._parameters.max_iter,
                seed=seed,
            )
            for one in found:
                result = one.result.times(float(Cs[one.step]))
                yield Found(first + one.problem, one.step, result)

    def _apart(
        self, minimise: Callable[..., SolverResult], Cs: Floats, seed: int
    ) -> Iterator[Found]:
        """Solve one after another, each from the weights of its part for the last C.

        All parts come before the next C, so that whoever stops here has some C for all parts.
        """
        starts: list[Floats | None] = [None] * len(self._parts)
        for step, C in enumerate(Cs):
            for k, w in enumerate(starts):
                result = minimise(
                    self.objective(k, float(C)),
                    w0=w,
                    tol=self._parameters.tol,
                    max_iter=self._parameters.max_iter,
                    seed=seed,
                )
                if result.stop is StopReason.INTERRUPTED:
                    raise KeyboardInterrupt
                starts[k] = result.w
                yield Found(k, step, result)


def _scale_of(data: RankingData, rows: Integers | None, scale: object) -> Scale | None:
    """Return the scale of some rows, which are copied a few queries at a time."""
    if rows is None or no_scale(scale):
        return find_linear_scale(data, scale)
    search = ScaleSearch(scale)
    for chunk in _chunks(data, rows):
        search.add(chunk)
    return search.found()


def _chunks(data: RankingData, rows: Integers) -> Iterator[RankingData]:
    """Yield some rows as chunks of whole queries."""
    rows = rows[np.argsort(data.qid[rows], kind="stable")]
    starts = np.flatnonzero(np.diff(data.qid[rows], prepend=-1))
    size = max(CHUNK_ENTRIES // data.n_features, 1)
    # Of the queries that begin in each stretch of `size` rows, the first begins a chunk.
    firsts = starts[np.flatnonzero(np.diff(starts // size, prepend=-1))]
    for chunk in np.split(rows, firsts[1:]):
        yield rows_of(data, chunk)
