"""Stochastic gradient descent by query, in a metric that is learned on the way.

With u the weight of all pairs, F(w) / (C u) is a mean over pairs, λ/2 ‖w‖² + E ℓ(s_i − s_j) with
λ = 1 / (C u). A step over a batch B of queries is

    w ← w − min(γ_t / ū, f_B / g_Bᵀ P g_B) · P g_B,

where f_B and g_B are value and gradient of the batch, ū the mean weight of a batch, and P the
inverse of the mean Hessian: γ = 1 would be a Newton step as far as the batch can tell. The second
bound is Polyak's: it keeps a batch of outliers from throwing the weights away.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from marginrank import _core
from marginrank._base.types import Floats, Integers
from marginrank.data.ranking_data import Queries
from marginrank.objective.losses import Loss

FULL_FEATURES = 512  # with more, P is diagonal
FIRST_BATCH = 16  # documents for each feature before the first step,
LARGEST_FIRST_BATCH = 4096  # but no more than so many
WINDOW = 48  # documents for each feature whose Hessians are added up,
SMALLEST_WINDOW, LARGEST_WINDOW = 1024, 16384
GROWTH = 1.5  # of the documents in the first window between two inversions
MEMORY = (
    0.25  # share of the older Hessians that a new window keeps: rare outliers are not forgotten
)
LONG_QUERY = 512  # documents; longer queries are cut, or a pass would have too few steps
RUN_DOCUMENTS = 1 << 16  # between two looks at the keyboard
DRAWN_PAIRS = 1 << 18  # pairs drawn at a time
# What the gain that P promises is multiplied by, to be no less than the distance to the optimum in
# most cases: a diagonal knows less of it.
FULL_SLACK, DIAGONAL_SLACK = 2.0, 10.0


class Counter(IntEnum):
    """Places of the native SgdCounters."""

    BATCH_VALUE = 0
    BATCH_WEIGHT = 1
    BATCH_ENTRIES = 2
    BATCH_DOCUMENTS = 3
    STEPS = 4
    WEIGHT = 5
    SEEN = 6
    VALUE = 7
    DOCUMENTS = 8
    COLLECTING = 9
    CURVATURE_WEIGHT = 10
    NEXT_EVENT = 11


@dataclass(frozen=True)
class Rate:
    """The rate γ_t = rate · (offset + t)^−power of step t = 1, 2, and so on."""

    rate: float
    offset: float
    power: float


@dataclass(frozen=True)
class Schedule:
    """What steps need to know beside the data.

    λ is ridge / total, or ridge over the weight of the pairs so far where the total is 0.
    """

    ridge: float
    total: float
    rate: Rate


def automatic_rate(n_features: int) -> Rate:
    """Return the rate that needs no tuning.

    In the metric of the Hessian the best rate falls as 1/t; 2/(t + 1) forgets the start sooner. A
    diagonal leaves directions of small curvature, in which that would stop too early.
    """
    return Rate(2.0, 1.0, 1.0) if n_features <= FULL_FEATURES else Rate(1.0, 1.0, 0.5)


def curved_pieces(loss: Loss) -> Floats:
    """Return the pieces of a loss with each kink made a parabola from θ − 1 to θ + 1.

    A hinge has no Hessian; this is what stands for it in the metric.
    """
    pieces: list[tuple[float, float, float]] = []
    for p in loss.pieces:
        if p.power == 2:
            pieces.append((p.coefficient, p.theta, 2))
        else:
            quarter = 0.25 * p.coefficient
            pieces += [(quarter, p.theta + 1.0, 2), (-quarter, p.theta - 1.0, 2)]
    return np.array(pieces)


class StepProblem:
    """Queries to take steps over.

    Parameters
    ----------
    matrix : Matrix
        X.
    queries : Queries
        The documents by query.
    loss : Loss
        The loss on a pair.
    query_weight : ndarray of shape (n_queries,)
        What multiplies the loss of each query.
    sample_weight : ndarray of shape (n_documents,), optional
        Document weights, in the order of the grouped documents.

    Attributes
    ----------
    weight : ndarray of shape (n_queries,)
        Weight of all pairs of each query.
    """

    def __init__(
        self,
        matrix: _core.Matrix,
        queries: Queries,
        loss: Loss,
        query_weight: Floats,
        sample_weight: Floats | None,
    ) -> None:
        self.matrix = matrix
        self.queries = queries
        self.loss = loss
        self.query_weight = query_weight
        self.sample_weight = sample_weight
        self.weight = query_weight * pair_weights(matrix, queries, sample_weight)
        self.pairs = self._native(loss.as_array())
        self.curved = self._native(curved_pieces(loss))

    def _native(self, pieces: Floats) -> _core.Pairs:
        return _native_pairs(
            self.matrix, self.queries, self.query_weight, self.sample_weight, pieces
        )

    @property
    def active(self) -> Integers:
        """The queries that have pairs that count."""
        return np.flatnonzero(self.weight > 0)

    def cut_long_queries(self, chosen: Integers, seed: int, first: int) -> "StepProblem":
        """Return the chosen queries with the long ones cut into random parts.

        A part's pairs are a sample of the query's, so that its gradient, scaled up, is right on
        average. How query q is cut depends on `seed` and `first` + q alone.
        """
        queries = self.queries
        sizes = np.diff(queries.offsets)
        keep = np.zeros(queries.n_queries, dtype=bool)
        keep[chosen] = True
        documents = np.flatnonzero(np.repeat(keep, sizes))
        sizes = sizes[chosen]
        parts = -(-sizes // LONG_QUERY)
        part = np.repeat(np.cumsum(parts) - parts, sizes)
        ends = np.cumsum(sizes)
        for k in np.flatnonzero(parts > 1):
            rng = np.random.default_rng([seed, first + chosen[k]])
            part[ends[k] - sizes[k] : ends[k]] += rng.permutation(sizes[k]) % parts[k]
        order = np.argsort(part, kind="stable")
        documents, part = documents[order], part[order]
        offsets = np.searchsorted(part, np.arange(part[-1] + 2)).astype(np.int64)
        rows = documents if queries.rows is None else queries.rows[documents]
        labels = queries.level[documents].astype(np.float64)
        cut = Queries.from_labels(labels, offsets, rows, 1)
        weight = None if self.sample_weight is None else self.sample_weight[documents]
        query_of_part = np.repeat(np.arange(chosen.size), parts)
        kept = np.bincount(query_of_part, pair_weights(self.matrix, cut, weight), chosen.size)
        scale = np.divide(self.weight[chosen], kept, out=np.zeros(chosen.size), where=kept > 0)
        return StepProblem(self.matrix, cut, self.loss, scale[query_of_part], weight)


def _native_pairs(
    matrix: _core.Matrix,
    queries: Queries,
    query_weight: Floats,
    sample_weight: Floats | None,
    pieces: Floats,
) -> _core.Pairs:
    side = None if sample_weight is None else np.ascontiguousarray(sample_weight[:, None])
    return _core.Pairs(
        n_rows=matrix.n_rows,
        offsets=queries.offsets,
        rows=queries.rows,
        level=queries.level,
        n_levels=queries.n_levels,
        query_weight=query_weight,
        preferred=side,
        other=side,
        margin=None,
        adjacent=False,
        pieces=pieces,
    )


def pair_weights(matrix: _core.Matrix, queries: Queries, sample_weight: Floats | None) -> Floats:
    """Return the sum over each query's pairs of the product of their documents' weights."""
    if sample_weight is None:
        return queries.n_pairs.astype(np.float64)
    # At scores 0 every pair is inside the margin of 1.
    inside = np.array([[1.0, 1.0, 1.0]])
    ones = np.ones(queries.n_queries)
    pairs = _native_pairs(matrix, queries, ones, sample_weight, inside)
    return _core.active_weights(pairs, np.zeros(queries.n_documents), 1)


class PairSampler:
    """Draws pairs of a problem with probabilities in proportion to their weights."""

    def __init__(self, problem: StepProblem, chosen: Integers) -> None:
        queries = problem.queries
        self._problem = problem
        sizes = np.diff(queries.offsets)
        query = np.repeat(np.arange(queries.n_queries), sizes)
        # Documents by query, then by level: those below a level come before it.
        self._documents = np.lexsort((queries.level, query))
        level = queries.level[self._documents]
        weight = problem.sample_weight
        own = np.ones(level.size) if weight is None else weight[self._documents]
        self._mass = np.concatenate([[0.0], np.cumsum(own)])
        starts = np.flatnonzero(
            (np.diff(level, prepend=-1) != 0) | (np.diff(query, prepend=-1) > 0)
        )
        level_start = np.repeat(starts, np.diff(starts, append=level.size))
        self._query_start = np.repeat(queries.offsets[:-1], sizes)
        self._level_start = level_start
        below = self._mass[level_start] - self._mass[self._query_start]
        factor = np.zeros(queries.n_queries)
        factor[chosen] = problem.query_weight[chosen]
        self._preferred = np.cumsum(factor[query] * own * below)
        self.total = float(self._preferred[-1])

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Integers, Integers]:
        """Return the documents of `count` pairs: the preferred ones and the others."""
        last = np.flatnonzero(np.diff(self._preferred, prepend=0.0) > 0)[-1]
        i = np.searchsorted(self._preferred, rng.random(count) * self.total, side="right")
        i = np.minimum(i, last)
        low = self._mass[self._query_start[i]]
        high = self._mass[self._level_start[i]]
        j = np.searchsorted(self._mass, low + rng.random(count) * (high - low), side="right") - 1
        j = np.clip(j, self._query_start[i], self._level_start[i] - 1)
        return self._documents[i], self._documents[j]

    def problem(self, count: int, weight: float, rng: np.random.Generator) -> StepProblem:
        """Return `count` drawn pairs as queries of two documents, of the given weight each."""
        pairs = np.stack(self.draw(count, rng), axis=1).ravel()
        rows = self._problem.queries.rows
        queries = Queries(
            offsets=np.arange(0, 2 * count + 1, 2, dtype=np.int64),
            rows=pairs if rows is None else rows[pairs],
            level=np.tile(np.array([1, 0], dtype=np.int32), count),
            n_levels=np.full(count, 2, dtype=np.int32),
            n_pairs=np.ones(count, dtype=np.int64),
            n_adjacent_pairs=np.ones(count, dtype=np.int64),
        )
        matrix = self._problem.matrix
        return StepProblem(matrix, queries, self._problem.loss, np.full(count, weight), None)


class Sgd:
    """The state of a stochastic gradient run; all of it depends on the queries so far alone.

    Parameters
    ----------
    n_features : int
        Number of features.

    Attributes
    ----------
    w, average : ndarray of shape (n_features,)
        The weights, and their average with weights that grow as t³.
    """

    def __init__(self, n_features: int) -> None:
        n = n_features
        self.w, self.average, self._gradient = np.zeros(n), np.zeros(n), np.zeros(n)
        size = n * n if n <= FULL_FEATURES else n
        self._curvature, self._inverse = np.zeros(size), np.zeros(size)
        self._counters = np.zeros(len(Counter))
        self._window = float(np.clip(WINDOW * n, SMALLEST_WINDOW, LARGEST_WINDOW))
        self._window_end = self._window
        self._first_batch = float(min(FIRST_BATCH * n, LARGEST_FIRST_BATCH))
        self._counters[Counter.COLLECTING] = 1.0
        self._counters[Counter.NEXT_EVENT] = self._first_batch

    @property
    def steps(self) -> int:
        """Number of steps."""
        return int(self._counters[Counter.STEPS])

    @property
    def value(self) -> float:
        """Sum of the values of all batches, each at the weights before its step."""
        return float(self._counters[Counter.VALUE])

    @property
    def weight(self) -> float:
        """Weight of all pairs in these batches."""
        return float(self._counters[Counter.WEIGHT])

    @property
    def seen(self) -> float:
        """Weight of the pairs that stand for the total where none is given."""
        return float(self._counters[Counter.SEEN])

    @seen.setter
    def seen(self, weight: float) -> None:
        self._counters[Counter.SEEN] = weight

    def run(self, problem: StepProblem, order: Integers, schedule: Schedule, threads: int) -> None:
        """Take steps over the queries in this order.

        Sets: w, average, steps, value, weight, seen.
        """
        options = self._options(schedule)
        for part in _in_runs(problem, order):
            while True:
                done = _core.sgd_run(
                    problem.matrix,
                    problem.pairs,
                    problem.curved,
                    problem.weight,
                    part,
                    self.w,
                    self.average,
                    self._gradient,
                    self._curvature,
                    self._inverse,
                    self._counters,
                    options,
                    threads,
                )
                part = part[done:]
                if self._counters[Counter.DOCUMENTS] < self._counters[Counter.NEXT_EVENT]:
                    break
                self._turn(schedule)  # and then the step that waited for it
        self._check_finite()

    def flushed(self, schedule: Schedule) -> "Sgd":
        """Return what the state would be if a step over the open batch were taken now."""
        result = deepcopy(self)
        if self._counters[Counter.BATCH_WEIGHT] > 0:
            if self.steps == 0:
                result._invert(schedule)
            _core.sgd_step(
                result.w,
                result.average,
                result._gradient,
                result._curvature,
                result._inverse,
                result._counters,
                self._options(schedule),
            )
            result._check_finite()
        return result

    def promised_gain(self, gradient: Floats) -> float:
        """Estimate how far the mean over pairs with this gradient is above its optimum.

        ½ gᵀPg is what a Newton step would gain; infinite as long as there is no P.
        """
        if self.steps == 0:
            return np.inf
        full = self._inverse.size > gradient.size
        if full:
            step = self._inverse.reshape(gradient.size, gradient.size) @ gradient
        else:
            step = self._inverse * gradient
        return (FULL_SLACK if full else DIAGONAL_SLACK) * 0.5 * float(gradient @ step)

    def _options(self, schedule: Schedule) -> Floats:
        # A step works on all of P, so it waits until its batch is worth that.
        batch_entries = 0.5 * self._inverse.size
        rate = schedule.rate
        shape = (rate.rate, rate.offset, rate.power)
        return np.array([schedule.ridge, schedule.total, batch_entries, self._first_batch, *shape])

    def _turn(self, schedule: Schedule) -> None:
        """Renew P from the Hessians of the current window, or open another window.

        Windows open when the documents have doubled since the last one, as the Hessian changes with
        the weights, but less and less.
        """
        counters = self._counters
        documents = counters[Counter.DOCUMENTS]
        if not counters[Counter.COLLECTING]:
            self._curvature *= MEMORY
            counters[Counter.CURVATURE_WEIGHT] *= MEMORY
            counters[Counter.COLLECTING] = 1.0
            self._window_end = counters[Counter.NEXT_EVENT] = documents + self._window
            return
        self._invert(schedule)
        if documents >= self._window_end:
            counters[Counter.COLLECTING] = 0.0
            counters[Counter.NEXT_EVENT] = 2.0 * documents
        else:
            counters[Counter.NEXT_EVENT] = min(GROWTH * documents, self._window_end)

    def _invert(self, schedule: Schedule) -> None:
        """Set P to the inverse of the mean Hessian so far, drawn towards its diagonal."""
        counters, n = self._counters, self.w.size
        total = schedule.total or counters[Counter.SEEN] + counters[Counter.BATCH_WEIGHT]
        mean = self._curvature / counters[Counter.CURVATURE_WEIGHT]
        full = self._inverse.size > n
        matrix = mean.reshape(n, n) if full else None
        diagonal = _floored(mean if matrix is None else np.diag(matrix)) + schedule.ridge / total
        if matrix is None:
            self._inverse[:] = 1.0 / diagonal
            return
        documents = counters[Counter.DOCUMENTS] - (self._window_end - self._window)
        scale = 1.0 / np.sqrt(diagonal)
        matrix *= scale[:, None] * scale * (documents / (n + documents))
        matrix[np.diag_indices(n)] = 1.0 + 1e-10
        inverse = np.linalg.inv(matrix) * scale[:, None] * scale
        self._inverse[:] = (0.5 * (inverse + inverse.T)).ravel()

    def _check_finite(self) -> None:
        bad = np.flatnonzero(~np.isfinite(self.w))
        if bad.size:
            raise ValueError(
                f"X[:, {bad[0]}] has values so large that sums overflow; scale the feature."
            )


def _in_runs(problem: StepProblem, order: Integers) -> Iterator[Integers]:
    """Cut an order of queries into runs of about RUN_DOCUMENTS documents."""
    sizes = np.diff(problem.queries.offsets)[order]
    run = np.cumsum(sizes) // RUN_DOCUMENTS
    yield from np.split(order, np.flatnonzero(np.diff(run)) + 1)


def _floored(diagonal: Floats) -> Floats:
    """Give features that were the same in all documents so far a curvature like the others'."""
    overflow = np.flatnonzero(~np.isfinite(diagonal))
    if overflow.size:
        raise ValueError(
            f"X[:, {overflow[0]}] has values so large that sums overflow; scale the feature."
        )
    positive = diagonal > 0
    return np.where(positive, diagonal, np.median(diagonal[positive]) if positive.any() else 0.0)
