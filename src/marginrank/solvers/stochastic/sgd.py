"""Stochastic gradient descent over batches of queries, preconditioned by an estimated Hessian.

With u the total weight of all pairs, F(w) / (C u) = λ/2 ‖w‖² + E ℓ(s_i − s_j) with λ = 1 / (C u),
where E is the mean over pairs and s are scores. A step over a batch B of queries is

    w ← w − min(γ_t / ū, f_B / g_Bᵀ P g_B) · P g_B,

where f_B and g_B are loss and gradient of the batch, ū is the mean weight of a batch, γ_t the rate
of step t, and P the inverse of the mean Hessian: γ = 1 would be a Newton step on the batch. The
second bound, Polyak's, keeps a batch of outliers from moving the weights far away.

Features are not divided by their scale σ. Instead ½ Σ σ_j² w_j² replaces ½‖w‖², which is
equivalent.

Steps work on native pairs and arrays in memory, not on an objective, because each step needs a few
queries only.
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
from marginrank.solvers.progress import overflow_error

FULL_FEATURES = 512  # with more, P is diagonal
FIRST_BATCH = 16  # documents per feature before the first step: with fewer, P is mostly noise
LARGEST_FIRST_BATCH = 4096  # most documents before the first step
WINDOW = 48  # documents per feature whose Hessians are summed
SMALLEST_WINDOW, LARGEST_WINDOW = 1024, 16384  # limits on the documents of a window
GROWTH = 1.5  # in a window, P is computed each time that the documents have grown by this factor
MEMORY = 0.25  # weight of the older Hessians in a new window: rare outliers are not forgotten
LONG_QUERY = 512  # documents; longer queries are cut, or a pass would have too few steps
RUN_DOCUMENTS = 1 << 16  # documents between checks for KeyboardInterrupt
DRAWN_PAIRS = 1 << 18  # pairs drawn at a time, which bounds memory
# The gain that P predicts times this is an upper bound on the distance to the optimum in most
# cases; a diagonal predicts less well.
FULL_SLACK, DIAGONAL_SLACK = 2.0, 10.0


@dataclass(frozen=True)
class Rate:
    """The step sizes γ_t = rate · (offset + t)^−power of stochastic gradient steps t = 1, 2, …."""

    rate: float
    offset: float
    power: float


@dataclass(frozen=True)
class Schedule:
    """The step sizes and the regularization of a stochastic gradient method.

    The regularization is λ/2 ‖w‖² with λ = ridge / total, for a loss that is a mean over pairs. If
    total is 0, the total weight of the pairs seen so far replaces it.
    """

    ridge: float
    total: float
    rate: Rate

    def native(self) -> _core.SgdOptions:
        return _core.SgdOptions(ridge=self.ridge, total=self.total, **vars(self.rate))


def automatic_rate(n_features: int) -> Rate:
    """Return the default step sizes of stochastic gradient descent for a number of features."""
    # In the metric of the Hessian the best rate falls as 1/t; 2/(t + 1) forgets the start sooner.
    # With a diagonal, directions of small curvature remain, in which 1/t would stop too early.
    return Rate(2.0, 1.0, 1.0) if n_features <= FULL_FEATURES else Rate(1.0, 1.0, 0.5)


def curved(loss: Loss) -> Loss:
    """Return a loss with each kink θ replaced by a parabola from θ − 1 to θ + 1, to have a Hessian.

    It replaces the hinge when P is computed, because a hinge has no Hessian.
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
    """The features, pairs and loss of the queries that stochastic gradient steps use."""

    def __init__(self, matrix: _core.Matrix, pair_set: PairSet, loss: Loss) -> None:
        self.matrix = matrix
        self.pair_set = pair_set
        self.loss = loss
        self.weight = pair_set.weights  # total weight of the pairs of each query
        self.sizes = pair_set.documents.sizes  # number of documents of each query
        self.pairs = pair_set.native(loss)
        self.curved = self.pairs if loss.smooth else pair_set.native(curved(loss))

    @property
    def active(self) -> Integers:
        """Indices of the queries that have pairs of positive weight."""
        return np.flatnonzero(self.weight > 0)

    def cut_long_queries(self, seed: int, first: int) -> "StepProblem":
        """Cut each query of over LONG_QUERY documents into random parts; return the new problem.

        The parts of query q depend only on `seed` and `first` + q.
        """
        if not np.any(self.sizes[self.active] > LONG_QUERY):
            return self
        parts = self.pair_set.cut(self.active, largest=LONG_QUERY, seed=seed, first=first)
        return StepProblem(self.matrix, parts, self.loss)

    @cached_property
    def _drawer(self) -> PairDrawer:
        return self.pair_set.drawer(self.active)

    def draw(self, rng: np.random.Generator) -> Iterator["StepProblem"]:
        """Draw random pairs; yield problems in which each pair is a query of two documents.

        In total they have half as many pairs as there are documents of queries with pairs.
        """
        drawer = self._drawer
        n_pairs = max(1, int(self.sizes[self.active].sum()) // 2)
        for first in range(0, n_pairs, DRAWN_PAIRS):
            drawn = drawer.draw(min(DRAWN_PAIRS, n_pairs - first), rng)
            pairs = LevelPairs.one_by_one(self.pair_set, drawn, drawer.total / n_pairs)
            yield StepProblem(self.matrix, pairs, self.loss)

    def value_and_gradient(self, w: Floats, threads: int) -> tuple[float, Floats]:
        losses, _, gradient, _, _ = _core.evaluate(self.matrix, self.pairs, w, None, threads)
        return float(np.sum(losses[:, 0])), gradient


class Sgd:
    """Stochastic gradient descent: the weights, an approximate inverse Hessian and other state.

    `w` are the initial weights, and `scale` the standard deviations of the features.
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
        return self._state.w

    @property
    def average(self) -> Floats:
        """The average of the weights over all steps t so far, weighted by t³."""
        return self._state.average

    @property
    def steps(self) -> int:
        return self._state.steps

    @property
    def value(self) -> float:
        """Sum of the losses of all batches of queries, each at the weights before its step."""
        return self._state.value

    @property
    def weight(self) -> float:
        """Total weight of the pairs in all batches of queries so far."""
        return self._state.weight

    @property
    def seen(self) -> float:
        """Total weight of the pairs seen so far, which replaces `Schedule.total` if that is 0."""
        return self._state.seen

    @seen.setter
    def seen(self, weight: float) -> None:
        self._state.seen = weight

    def run(self, problem: StepProblem, order: Integers, schedule: Schedule, threads: int) -> None:
        """Take stochastic gradient steps over the queries with the indices `order`, in this order.

        Updates the weights and all other attributes.
        """
        state, options = self._state, schedule.native()
        data = problem.matrix, problem.pairs, problem.curved, problem.weight
        for part in _in_runs(problem, order):
            while True:
                done = state.run(*data, part, options, threads)
                part = part[done:]
                if not state.event_is_due:
                    break
                self._on_event(schedule)  # the step that waited for it comes next
        self._check_finite()

    def flushed(self, schedule: Schedule) -> "Sgd":
        """Return a copy of this object after a step over the last, incomplete batch of queries."""
        result = copy(self)
        result._state = self._state.copy()
        if self._state.batch_weight > 0:
            if self.steps == 0:
                result._invert(schedule)
            result._state.step(schedule.native())
            result._check_finite()
        return result

    def promised_gain(self, gradient: Floats) -> float:
        """Return an estimate of F − min F by the predicted decrease of a Newton step.

        It is ½ gᵀPg times a safety factor, with `gradient` g of F and the approximate inverse
        Hessian P. Before the first step, the result is inf.
        """
        if self.steps == 0:
            return np.inf
        inverse = self._state.inverse
        step = inverse @ gradient if self._state.full else inverse * gradient
        slack = FULL_SLACK if self._state.full else DIAGONAL_SLACK
        return slack * 0.5 * float(gradient @ step)

    def _on_event(self, schedule: Schedule) -> None:
        # Renew P from the Hessians of the current window, or open another window. Windows open when
        # the number of documents has doubled: the Hessian changes with the weights, but ever less.
        state = self._state
        if not state.collecting:
            state.scale_curvature(MEMORY)
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
        # P is the inverse of the mean Hessian so far, shrunk towards its diagonal.
        state = self._state
        total = schedule.total or state.seen + state.batch_weight
        mean = state.curvature / state.curvature_weight
        penalty = state.penalty
        # Curvatures can be compared only if all features have the same unit.
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
            raise overflow_error(int(bad[0]))


def _in_runs(problem: StepProblem, order: Integers) -> Iterator[Integers]:
    run = np.cumsum(problem.sizes[order]) // RUN_DOCUMENTS
    yield from np.split(order, np.flatnonzero(np.diff(run)) + 1)


def _floored(diagonal: Floats) -> Floats:
    # A feature that was constant in all documents so far gets the median curvature.
    overflow = np.flatnonzero(~np.isfinite(diagonal))
    if overflow.size:
        raise overflow_error(int(overflow[0]))
    positive = diagonal > 0
    return np.where(positive, diagonal, np.median(diagonal[positive]) if positive.any() else 0.0)
