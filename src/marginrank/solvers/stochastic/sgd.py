"""Stochastic gradient descent by query, in a metric that is learned on the way.

With u the weight of all pairs, F(w) / (C u) is a mean over pairs, λ/2 ‖w‖² + E ℓ(s_i − s_j) with
λ = 1 / (C u). A step over a batch B of queries is

    w ← w − min(γ_t / ū, f_B / g_Bᵀ P g_B) · P g_B,

where f_B and g_B are value and gradient of the batch, ū the mean weight of a batch, and P the
inverse of the mean Hessian: γ = 1 would be a Newton step as far as the batch can tell. The second
bound is Polyak's: it keeps a batch of outliers from throwing the weights away.

Features that are divided by a scale σ stay as they are: ½ Σ σ_j² w_j² takes the place of ½‖w‖², and
everything else follows. Weights are those of the features as they are.

Steps work on native pairs and arrays in memory, not on an objective: they are the one solver for
which a query at a time is all there is.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

import numpy as np

from marginrank import _core
from marginrank._utils.threads import cached_property
from marginrank._utils.types import Floats, Integers
from marginrank.objective.level_pairs import LevelPairs
from marginrank.objective.losses import Loss, Piece
from marginrank.objective.pair_sampling import PairDrawer
from marginrank.objective.pair_sets import PairSet

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

    def native(self) -> _core.SgdOptions:
        """Return what the kernels take."""
        return _core.SgdOptions(
            ridge=self.ridge,
            total=self.total,
            rate=self.rate.rate,
            offset=self.rate.offset,
            power=self.rate.power,
        )


def automatic_rate(n_features: int) -> Rate:
    """Return the rate that needs no tuning.

    In the metric of the Hessian the best rate falls as 1/t; 2/(t + 1) forgets the start sooner. A
    diagonal leaves directions of small curvature, in which that would stop too early.
    """
    return Rate(2.0, 1.0, 1.0) if n_features <= FULL_FEATURES else Rate(1.0, 1.0, 0.5)


def curved(loss: Loss) -> Loss:
    """Return a loss with each kink made a parabola from θ − 1 to θ + 1.

    A hinge has no Hessian; this is what stands for it in the metric.
    """
    pieces: list[Piece] = []
    for p in loss.pieces:
        if p.power == 2:
            pieces.append(p)
        else:
            quarter = 0.25 * p.coefficient
            pieces += [Piece(quarter, p.theta + 1.0, 2), Piece(-quarter, p.theta - 1.0, 2)]
    return Loss(loss.name, tuple(pieces), loss.margin)


class StepProblem:
    """Queries to take steps over.

    Parameters
    ----------
    matrix : _core.Matrix
        X.
    pair_set : PairSet
        The pairs of the queries.
    loss : Loss
        The loss on a pair.

    Attributes
    ----------
    weight : ndarray of shape (n_queries,)
        Weight of all pairs of each query.
    sizes : ndarray of int64, shape (n_queries,)
        Number of documents of each query.
    """

    def __init__(self, matrix: _core.Matrix, pair_set: PairSet, loss: Loss) -> None:
        self.matrix = matrix
        self.pair_set = pair_set
        self.loss = loss
        self.weight = pair_set.weights
        self.sizes = pair_set.documents.sizes
        self.pairs = pair_set.native(loss)
        self.curved = self.pairs if loss.smooth else pair_set.native(curved(loss))

    @property
    def active(self) -> Integers:
        """The queries that have pairs that count."""
        return np.flatnonzero(self.weight > 0)

    def cut_long_queries(self, seed: int, first: int) -> "StepProblem":
        """Return the active queries with the long ones cut into random parts.

        How query q is cut depends on `seed` and `first` + q alone.
        """
        if not np.any(self.sizes[self.active] > LONG_QUERY):
            return self
        parts = self.pair_set.cut(self.active, largest=LONG_QUERY, seed=seed, first=first)
        return StepProblem(self.matrix, parts, self.loss)

    @cached_property
    def _drawer(self) -> PairDrawer:
        return self.pair_set.drawer(self.active)

    def draw(self, rng: np.random.Generator) -> Iterator["StepProblem"]:
        """Yield drawn pairs as queries of two documents: half as many as active documents."""
        drawer = self._drawer
        n_pairs = max(1, int(self.sizes[self.active].sum()) // 2)
        for first in range(0, n_pairs, DRAWN_PAIRS):
            pairs = drawer.draw(min(DRAWN_PAIRS, n_pairs - first), rng)
            drawn = LevelPairs.one_by_one(self.pair_set, *pairs, drawer.total / n_pairs)
            yield StepProblem(self.matrix, drawn, self.loss)

    def value_and_gradient(self, w: Floats, threads: int) -> tuple[float, Floats]:
        """Return the loss of all pairs at w, and its gradient."""
        losses, _, gradient, _, _ = _core.evaluate(self.matrix, self.pairs, w, None, threads)
        return float(np.sum(losses[:, 0])), gradient


class Sgd:
    """The state of a stochastic gradient run; all of it depends on the queries so far alone.

    Parameters
    ----------
    n_features : int
        Number of features.
    w : ndarray of shape (n_features,), optional
        Weights to start from.
    scale : ndarray of shape (n_features,), optional
        σ.
    """

    def __init__(
        self, n_features: int, w: Floats | None = None, scale: Floats | None = None
    ) -> None:
        n = n_features
        self._window = float(np.clip(WINDOW * n, SMALLEST_WINDOW, LARGEST_WINDOW))
        self._window_end = self._window
        first_batch = min(FIRST_BATCH * n, LARGEST_FIRST_BATCH)
        self._state = _core.SgdState(n, full=1 < n <= FULL_FEATURES, first_batch=first_batch)
        self._state.next_event = first_batch
        if scale is not None:
            self._state.penalty = scale**2
        if w is not None:
            self._state.w = self._state.average = w

    @property
    def w(self) -> Floats:
        """The weights."""
        return self._state.w

    @property
    def average(self) -> Floats:
        """The average of the weights over the steps, with weights that grow as t³."""
        return self._state.average

    @property
    def steps(self) -> int:
        """Number of steps."""
        return self._state.steps

    @property
    def value(self) -> float:
        """Sum of the values of all batches, each at the weights before its step."""
        return self._state.value

    @property
    def weight(self) -> float:
        """Weight of all pairs in these batches."""
        return self._state.weight

    @property
    def seen(self) -> float:
        """Weight of the pairs that stand for the total where none is given."""
        return self._state.seen

    @seen.setter
    def seen(self, weight: float) -> None:
        self._state.seen = weight

    def run(self, problem: StepProblem, order: Integers, schedule: Schedule, threads: int) -> None:
        """Take steps over the queries in this order.

        Sets: w, average, steps, value, weight, seen.
        """
        state, options = self._state, schedule.native()
        data = problem.matrix, problem.pairs, problem.curved, problem.weight
        for part in _in_runs(problem, order):
            while True:
                done = state.run(*data, part, options, threads)
                part = part[done:]
                if not state.event_is_due:
                    break
                self._turn(schedule)  # and then the step that waited for it
        self._check_finite()

    def flushed(self, schedule: Schedule) -> "Sgd":
        """Return what the state would be if a step over the open batch were taken now."""
        result = copy(self)
        result._state = self._state.copy()
        if self._state.batch_weight > 0:
            if self.steps == 0:
                result._invert(schedule)
            result._state.step(schedule.native())
            result._check_finite()
        return result

    def promised_gain(self, gradient: Floats) -> float:
        """Estimate how far the mean over pairs with this gradient is above its optimum.

        ½ gᵀPg is what a Newton step would gain; infinite as long as there is no P.
        """
        if self.steps == 0:
            return np.inf
        inverse = self._state.inverse
        step = inverse @ gradient if self._state.full else inverse * gradient
        slack = FULL_SLACK if self._state.full else DIAGONAL_SLACK
        return slack * 0.5 * float(gradient @ step)

    def _turn(self, schedule: Schedule) -> None:
        """Renew P from the Hessians of the current window, or open another window.

        Windows open when the documents have doubled since the last one, as the Hessian changes with
        the weights, but less and less.
        """
        state = self._state
        if not state.collecting:
            state.fade(MEMORY)
            state.collecting = True
            self._window_end = state.next_event = state.documents + self._window
            return
        self._invert(schedule)
        if state.documents >= self._window_end:
            state.collecting = False
            state.next_event = 2.0 * state.documents
        else:
            state.next_event = min(GROWTH * state.documents, self._window_end)

    def _invert(self, schedule: Schedule) -> None:
        """Set P to the inverse of the mean Hessian so far, drawn towards its diagonal."""
        state = self._state
        total = schedule.total or state.seen + state.batch_weight
        mean = state.curvature / state.curvature_weight
        penalty = state.penalty
        # Only where all features have one unit do their curvatures compare.
        scaled = _floored((np.diag(mean) if state.full else mean) / penalty)
        diagonal = (scaled + schedule.ridge / total) * penalty
        if not state.full:
            state.inverse = 1.0 / diagonal
            return
        n = diagonal.size
        documents = state.documents - (self._window_end - self._window)
        scale = 1.0 / np.sqrt(diagonal)
        mean *= scale[:, None] * scale * (documents / (n + documents))
        mean[np.diag_indices(n)] = 1.0 + 1e-10
        inverse = np.linalg.inv(mean) * scale[:, None] * scale
        state.inverse = 0.5 * (inverse + inverse.T)

    def _check_finite(self) -> None:
        bad = np.flatnonzero(~np.isfinite(self.w))
        if bad.size:
            raise ValueError(
                f"X[:, {bad[0]}] has values so large that sums overflow; scale the feature."
            )


def _in_runs(problem: StepProblem, order: Integers) -> Iterator[Integers]:
    """Cut an order of queries into runs of about RUN_DOCUMENTS documents."""
    run = np.cumsum(problem.sizes[order]) // RUN_DOCUMENTS
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
