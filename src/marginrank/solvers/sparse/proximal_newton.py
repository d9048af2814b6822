"""Proximal Newton: the default solver of sparse problems.

Each iteration minimises a quadratic model of the loss plus the regulariser and moves there; see
`quadratic_model.py`. An iteration reads X once, as value, gradient and scores at the new weights
come from one sweep. Three things keep the number of sweeps small:

* The Hessian is that of a sample of the documents where there are many. It is kept as long as
  the gap falls fast, and every step corrects it by what the step has shown of the true one.
* The problem is first solved on growing nested samples, as by Newton's method for smooth losses.
* With many features the problem is solved on working sets of a few of them, whose columns are
  copied; the full X is read once a working set, to certify or to find the features to add. If
  working sets grow too large, `face_newton.py` takes over.
"""

from typing import NamedTuple

import numpy as np

from marginrank._utils.ordering import places_of_largest
from marginrank._utils.types import Floats, Integers
from marginrank.models.fit_report import StopReason
from marginrank.objective.composite import Composite, L1Point, L1Problem
from marginrank.objective.objective import Objective, Point
from marginrank.objective.protocols import Scores
from marginrank.objective.regularizers import L1Regularizer
from marginrank.solvers.progress import Progress, start, start_inside
from marginrank.solvers.result import Callback, SolverResult
from marginrank.solvers.smooth.line_search import line_search
from marginrank.solvers.smooth.newton import growing_samples
from marginrank.solvers.smooth.preconditioner import HESSIAN_FEATURES, refuse_overflow
from marginrank.solvers.sparse.face_newton import face_step, gradient_step
from marginrank.solvers.sparse.parabolas import has_parabolas, near, tighten
from marginrank.solvers.sparse.quadratic_model import QuadraticModel

SMALL_SAMPLE = 4096  # documents
SAMPLE_PER_FEATURE = 192  # documents for each feature that make a good model
SAMPLE_GROWTH = 4  # when the model of a sample was not good enough
SAMPLE_TOL = 1e-3  # a sample's optimum is off by more than this anyway
EASE_TOL = 1e-2  # for easier problems on the way to the one to solve
MODEL_TOL = 1e-4  # how well the model is minimised, against the violation at its start
LEAST_MODEL_TOL = 1e-12
SUFFICIENT = 0.25  # of the slope; the minimiser of an exact model gains half of it
FLAT = 1e-12  # against the largest curvature: possibly none at all
LEAST_CURVATURE = 1e-3  # of that at zero
LOOSENESS = 100.0  # first guess at the closer gap, against the estimated distance to the optimum
FAST = 10.0  # by which the gap falls in an iteration with a good model
PATIENCE = 2  # slow models in a row that a step far from the optimum may explain
SLOW = 0.2  # a gap that falls by less asks for a larger working set
SMALL_WORKING_SET = 128  # features
LARGEST_WORKING_SET = 2048  # with more, a Hessian takes too much memory and time


class ProximalOutcome(NamedTuple):
    """Where an iteration ended."""

    point: L1Point
    stop: StopReason


def proximal_newton(
    objective: Objective,
    regularizer: L1Regularizer,
    *,
    w0: Floats | None = None,
    scores0: Scores | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    seed: int = 0,
    callback: Callback | None = None,
) -> SolverResult:
    """Minimise a smooth loss plus a regulariser; stops on the certificate.

    Parameters
    ----------
    objective : Objective
        The loss, without a ridge.
    regularizer : L1Regularizer
        What is added to it.
    w0 : ndarray, optional
        Where to start; zero by default.
    scores0 : Scores, optional
        X w0, if known.
    tol : float
        Relative distance to the optimum, (F − F*) / F*.
    max_iter : int
        Limit on the iterations on the full data, and on each sample or working set.
    seed : int
        For the samples.
    callback : callable, optional
        Called with each :class:`~marginrank.models.fit_report.Iteration`.
    """
    solver = ProximalNewton(objective, max_iter=max_iter, seed=seed, callback=callback)
    point = None
    if w0 is not None:
        point = start_inside(objective, regularizer, w0, scores0)
    return solver.solve(regularizer, start_at=point, tol=tol)


class ProximalNewton:
    """One problem after another on the same objective, as along a path of regularisers.

    Parameters
    ----------
    objective, max_iter, seed, callback
        As in :func:`proximal_newton`.

    Attributes
    ----------
    point : L1Point or None
        The best point so far.
    """

    def __init__(
        self,
        objective: Objective,
        *,
        max_iter: int = 1000,
        seed: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.point: L1Point | None = None
        self._objective = objective
        self._callback = callback
        self._iteration: ModelIteration | WorkingSets = (
            ModelIteration(max_iter, seed)
            if objective.n_features <= HESSIAN_FEATURES
            else WorkingSets(max_iter, seed)
        )
        self._seed = seed

    def solve(
        self, regularizer: L1Regularizer, *, start_at: Point | None = None, tol: float = 1e-6
    ) -> SolverResult:
        """Minimise L + Ω, from a point of the loss or, without one, from samples of the data."""
        progress = Progress(self._objective, self._callback)
        composite = Composite(self._objective, regularizer)
        try:
            if start_at is None:
                start_at = self._from_samples(regularizer, tol, progress)
            self.point = composite.wrap(start_at)
            self.point, stop = self._iteration.run(self.point, tol, progress)
        except KeyboardInterrupt:
            self.point, stop = self._interrupted(composite), StopReason.INTERRUPTED
        self.point = _inside(self.point)
        if stop is StopReason.CERTIFIED and not self.point.is_solved(tol):
            stop = StopReason.PRECISION
        if isinstance(self._iteration, ModelIteration) and start_at is not None:
            self._iteration.learn(start_at, self.point.base)
        progress.update(self.point)
        return progress.result(self.point, self.point.gap, stop)

    def _from_samples(self, regularizer: L1Regularizer, tol: float, progress: Progress) -> Point:
        if self._objective.n_active_documents < self._objective.n_features:
            return self._from_penalties(regularizer, tol)
        w = np.zeros(self._objective.n_features)
        if isinstance(self._iteration, ModelIteration):
            for sample in growing_samples(self._objective, self._seed):
                point = Composite(sample, regularizer).wrap(start(sample, w))
                w = self._iteration.run(point, max(tol, SAMPLE_TOL), progress).point.w
        return start(self._objective, w)

    def _from_penalties(self, regularizer: L1Regularizer, tol: float) -> Point:
        """Follow the solutions of falling penalties to near the optimum, or to the ball's boundary.

        With fewer documents than features there may be weights of next to no loss. On the way from
        many pairs with a loss to few, a small penalty or a wide ball leaves a step so much freedom
        that it runs into other pairs, again and again. As a penalty falls, few pairs change.
        """
        composite = Composite(self._objective, regularizer)
        point = start(self._objective, np.zeros(self._objective.n_features))
        for penalty in regularizer.easier(point.gradient):
            eased = Composite(self._objective, penalty).wrap(point)
            step = self._iteration.run(eased, EASE_TOL, None).point.base
            if not regularizer.contains(step.w):
                break
            point = step
            if composite.wrap(point).is_solved(tol):
                break
        return point

    def _interrupted(self, composite: L1Problem) -> L1Point:
        """Return the best point so far, on the full data."""
        point = self._iteration.point
        if point is None:
            return composite.at(np.zeros(self._objective.n_features))
        if point.objective is not self._objective:
            return composite.at(point.w)
        return composite.wrap(point.base)


def _inside(point: L1Point) -> L1Point:
    """Make up for rounding that has put the weights outside the domain of the regulariser."""
    w = point.composite.regularizer.inside(point.w)
    if np.array_equal(w, point.w):
        return point
    moved = point.near(w)
    if moved.gap > point.gap:
        tighten(moved)
    return moved


class ModelIteration:
    """Proximal Newton with an explicit Hessian, handed on from one objective to the next.

    Parameters
    ----------
    max_iter : int
        Limit on the iterations of a run.
    seed : int
        For the samples.
    tightens : bool
        Whether the closer of the two certificates may end a run.

    Attributes
    ----------
    point : L1Point or None
        The best point so far.
    """

    def __init__(self, max_iter: int, seed: int, *, tightens: bool = True) -> None:
        self.point: L1Point | None = None
        self._max_iter = max_iter
        self._seed = seed
        self._tightens = tightens
        self._looseness = LOOSENESS
        self._model: QuadraticModel | None = None
        self._model_cost = 0.0
        self._disappointments = 0  # models in a row that were new and yet too slow

    def run(self, point: L1Point, tol: float, progress: Progress | None) -> ProximalOutcome:
        """Minimise from a point on."""
        self.point = point
        model_tol = MODEL_TOL
        for k in range(self._max_iter):
            if point.is_solved(tol):
                break
            fresh = self._model is None
            model = self._model = self._model or self._build(point)
            regularizer, gradient = point.composite.regularizer, point.base.gradient
            passes = model.passes
            enough = model_tol * regularizer.violation(point.w, gradient)
            u = model.minimize(point.w, gradient, regularizer, enough)
            expected = self._expected_gap(point, model.decrease(point.w, gradient, u, regularizer))
            if expected <= tol * point.value and self._is_certified_closely(point, expected, tol):
                break
            step = _advance(point, u, to_tighten=expected <= FAST**2 * tol * point.value)
            if step is None and fresh and model.complete:
                if model_tol <= LEAST_MODEL_TOL:
                    return self._outcome(point, tol, StopReason.PRECISION)
                model_tol *= MODEL_TOL  # one feature of a large scale may have hidden the others
            # The first step with an old model answers a new regulariser, and judges no model.
            judged = fresh or k > 0
            if step is None or (judged and self._is_slow(step, point, expected, tol)):
                self._model = None
                self._disappointments = self._disappointments + 1 if fresh else 0
                if step is None:
                    self._disappointments = max(self._disappointments, PATIENCE)
                    continue
            else:
                model.correct(step.w - point.w, step.base.gradient - gradient)
            self.point = point = step
            if progress:
                progress.record(point, point.gap, model.passes - passes)
        return self._outcome(point, tol, StopReason.MAX_ITER)

    def learn(self, start: Point, end: Point) -> None:
        """Correct the model by all of a run: along a path, the next one goes on much like it."""
        if self._model:
            self._model.correct(end.w - start.w, end.gradient - start.gradient)

    def _outcome(self, point: L1Point, tol: float, otherwise: StopReason) -> ProximalOutcome:
        """Return the point where a run ends, for another reason if it cannot be certified."""
        if self._tightens and not point.is_solved(tol):
            tighten(point)
        return ProximalOutcome(point, StopReason.CERTIFIED if point.is_solved(tol) else otherwise)

    def _expected_gap(self, point: L1Point, estimate: float) -> float:
        """Guess the closer gap of a point that is estimated to be that far from the optimum."""
        useful = self._tightens and has_parabolas(point.composite)
        return self._looseness * max(estimate, 0.0) if useful else np.inf

    def _is_certified_closely(self, point: L1Point, expected: float, tol: float) -> bool:
        tighten(point)
        if expected > 0:
            seen = self._looseness * point.gap / expected
            self._looseness = float(np.clip(seen, 1.0, LOOSENESS**2))
        return point.is_solved(tol)

    def _is_slow(self, step: L1Point, before: L1Point, expected: float, tol: float) -> bool:
        """Whether a new model would save more sweeps than it costs.

        The scaled gap tells the pace. The closer gap, which falls twice as fast, may end the run.
        """
        if step.is_solved(tol):
            return False
        enough = tol * max(step.value, np.finfo(float).tiny)
        rate = np.log(before.scaled_gap / step.scaled_gap)
        rest = np.log(step.scaled_gap / enough)
        if expected < np.inf:
            rest = min(rest, 0.5 * np.log(max(expected, enough) / enough) - rate)
        with_new_model = self._model_cost + rest / np.log(FAST)
        return bool(rest > with_new_model * rate)

    def _build(self, point: L1Point) -> QuadraticModel:
        """Return the model at a point: of all documents, or of a sample where there are many."""
        objective = point.objective
        growth = SAMPLE_GROWTH ** max(self._disappointments - PATIENCE + 1, 0)
        size = growth * max(SMALL_SAMPLE, SAMPLE_PER_FEATURE * objective.n_features)
        self._model_cost = objective.n_features / 8
        share = size / objective.n_active_documents
        if share >= 0.5 or share > objective.largest_sample:
            return _complete_model(point)
        self._model_cost *= share
        sample = objective.sample(share, self._seed + 1)
        hessian = sample.at(point.w).hessian()
        refuse_overflow(hessian, objective)
        if np.any((np.diag(hessian) <= 0) & (point.base.gradient != 0)):  # a rare feature
            return _complete_model(point)
        return QuadraticModel(hessian, complete=False)


def _complete_model(point: L1Point) -> QuadraticModel:
    """Return the model of all documents.

    A feature none of whose pairs is curved here has no curvature. It gets a part of what it has at
    zero, where every pair is curved: else a weight of it would have nowhere to go.
    """
    hessian = point.base.hessian()
    refuse_overflow(hessian, point.objective)
    diagonal = np.diag(hessian)
    if np.any(diagonal <= FLAT * np.max(diagonal)):
        floor = LEAST_CURVATURE * point.objective.at_zero().hess_diag()
        hessian[np.diag_indices_from(hessian)] = np.maximum(diagonal, floor)
    return QuadraticModel(hessian, complete=True)


def _advance(point: L1Point, u: Floats, *, to_tighten: bool = False) -> L1Point | None:
    """Move to u, or to the best point on the way there if u does not gain enough.

    A sweep, or two if the bound is likely to be tightened there.
    """
    regularizer = point.composite.regularizer
    direction = u - point.w
    slope = float(point.base.gradient @ direction)
    slope += regularizer.value(u) - regularizer.value(point.w)
    rounding = 1e-12 * abs(point.value)
    if not slope <= rounding or not direction.any():
        return None
    trial = near(point, u, to_tighten=to_tighten)
    if abs(slope) <= rounding:  # the certificate still tells which point is better
        return trial if trial.gap < point.gap else None
    if trial.value <= point.value + SUFFICIENT * slope:
        return trial
    scores = point.objective.space.add(trial.scores, -1.0, point.scores)
    return line_search(point, direction, scores, longest=1.0)


class WorkingSets:
    """Solves on a few features, adds those that the others call for, and so on.

    Attributes
    ----------
    point : L1Point or None
        The best point so far.
    """

    def __init__(self, max_iter: int, seed: int) -> None:
        self.point: L1Point | None = None
        self._max_iter = max_iter
        self._seed = seed

    def run(self, point: L1Point, tol: float, progress: Progress | None) -> ProximalOutcome:
        """Minimise from a point on."""
        self.point = point
        size = SMALL_WORKING_SET
        for _ in range(self._max_iter):
            if point.is_solved(tol):
                return ProximalOutcome(point, StopReason.CERTIFIED)
            features = _choose(point, size)
            if features.size > LARGEST_WORKING_SET:
                return self._run_on_faces(point, tol, progress)
            part = _restrict(point, features)
            # A closer certificate of a part says little about the whole.
            iteration = ModelIteration(self._max_iter, self._seed, tightens=False)
            solved = iteration.run(part, max(0.3 * tol, 0.1 * point.gap / point.value), None)
            w = np.zeros_like(point.w)
            w[features] = solved.point.w
            accumulated_update = np.zeros_like(point.w)
            accumulated_update[features] = solved.point.accumulated_update
            step = point.composite.at(w, solved.point.scores, accumulated_update)
            if solved.stop is StopReason.PRECISION and step.gap >= point.gap:
                return ProximalOutcome(point, StopReason.PRECISION)
            size *= 2 if step.gap > SLOW * point.gap else 1
            size = max(size, 2 * int(np.count_nonzero(w)))
            self.point = point = step
            if progress:
                progress.record(point, point.gap, features.size)
        return ProximalOutcome(point, StopReason.MAX_ITER)

    def _run_on_faces(
        self, point: L1Point, tol: float, progress: Progress | None
    ) -> ProximalOutcome:
        """Minimise without a Hessian, where more weights are not zero than it could be made for."""
        for _ in range(self._max_iter):
            if point.is_solved(tol):
                return ProximalOutcome(point, StopReason.CERTIFIED)
            step = _advance(point, face_step(point))
            if step is None or step.gap > SLOW * point.gap:
                step = _advance(step or point, gradient_step(step or point)) or step
            if step is None:
                return ProximalOutcome(point, StopReason.PRECISION)
            self.point = point = step
            if progress:
                progress.record(point, point.gap, int(np.count_nonzero(point.w)))
        return ProximalOutcome(point, StopReason.MAX_ITER)


def _choose(point: L1Point, size: int) -> Integers:
    """Return the features in use, and up to `size` in all of those with the strongest pull."""
    pull = point.composite.regularizer.pull(point.base.gradient)
    pull[point.w != 0] = np.inf
    size = min(max(size, int(np.count_nonzero(point.w))), pull.size)
    strongest = places_of_largest(pull, size)
    return strongest[pull[strongest] > 0]


def _restrict(point: L1Point, features: Integers) -> L1Point:
    """Look at the same point through some features alone, which hold all its non-zero weights."""
    loss = point.base.through(features)
    return Composite(loss.objective, point.composite.regularizer).wrap(loss)
