"""Proximal Newton, the default solver of problems with an l1 norm.

Each iteration minimizes a quadratic model of the loss plus the regularizer (`quadratic_model.py`)
and moves there. It reads the feature matrix X once: value, gradient and scores at the new weights
come from one pass. Three things keep the number of passes small:

* With many documents, the Hessian is computed on a sample. It is kept as long as the gap falls
  fast, and every step corrects it by the observed change of the gradient (BFGS).
* The problem is first solved on growing nested samples, as in `newton`.
* With many features the problem is solved on working sets of a few of them, whose columns are
  copied. The full X is read once per working set, to certify or to find the features to add.
  Features that have no weight at the optimum by a proof are not read again (`screening.py`). If
  working sets grow too large, `face_newton.py` takes over.
"""

from typing import NamedTuple

import numpy as np

from marginrank._utils.ordering import places_of_largest
from marginrank._utils.types import Floats, Integers
from marginrank.models.fit_report import StopReason
from marginrank.objective.composite import Composite, L1Point, L1Problem
from marginrank.objective.losses import LOSSES
from marginrank.objective.objective import Objective, Point
from marginrank.objective.protocols import Scores
from marginrank.objective.regularizers import L1Regularizer
from marginrank.solvers.progress import Progress, check_smooth, start, start_inside
from marginrank.solvers.result import Callback, SolverResult
from marginrank.solvers.smooth.line_search import line_search
from marginrank.solvers.smooth.newton import growing_samples
from marginrank.solvers.smooth.preconditioner import HESSIAN_FEATURES, check_overflow
from marginrank.solvers.sparse.face_newton import face_step, gradient_step
from marginrank.solvers.sparse.parabolas import GROUPS_PER_FEATURE, has_parabolas, tighten
from marginrank.solvers.sparse.quadratic_model import QuadraticModel
from marginrank.solvers.sparse.screening import Screen, squared_differences

SMALL_SAMPLE = 4096  # least number of documents in a sample for a model
SAMPLE_PER_FEATURE = 192  # sampled documents per feature that make a good model
SAMPLE_GROWTH = 4  # factor on this number if the model of a sample was not good enough
SAMPLE_TOL = 1e-3  # the optimum of a sample differs more than this from the optimum of the data
EASE_TOL = 1e-2  # tol for the problems of a continuation
MODEL_TOL = 1e-4  # accuracy of the model's minimum, relative to the violation at its start
LEAST_MODEL_TOL = 1e-12  # below, only rounding is left to gain
SUFFICIENT = 0.25  # share of the slope that a step must gain; an exact model's minimizer gains 0.5
FLAT = 1e-12  # share of the largest curvature below which a feature may have no curvature
LEAST_CURVATURE = 1e-3  # share of the curvature at 0: a minimum, or added for a smoothed hinge
NEAR = 1e-2  # smallest factor on the added curvature, near the optimum
TINY = 1e-300
LOOSENESS = 100.0  # first guess of (gap by `tighten`) / (estimated distance to the optimum)
FAST = 10.0  # factor by which the gap falls per iteration with a good model
PATIENCE = 2  # slow models in a row before the sample grows: steps may just be long at first
SLOW = 0.2  # the working set grows if the gap stays above this share of its last value
SMALL_WORKING_SET = 128  # number of features of the first working set
LARGEST_WORKING_SET = 2048  # with more, a Hessian takes too much memory and time


class ProximalOutcome(NamedTuple):
    """The final weights of a proximal Newton iteration, and why it stopped."""

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
    """Minimize a smooth loss plus an l1 regularizer by proximal Newton; the default sparse solver.

    Stops when a proven bound shows that `tol` is reached. `objective` is the loss, without a ridge.
    `max_iter` limits the iterations on the full data, and on each sample or working set. The other
    parameters are as in :func:`~marginrank.solvers.smooth.newton.newton`.
    """
    solver = ProximalNewton(objective, max_iter=max_iter, seed=seed, callback=callback)
    point = None
    if w0 is not None:
        point = start_inside(objective, regularizer, w0, scores0)
    return solver.solve(regularizer, start_at=point, tol=tol)


class ProximalNewton:
    """Minimizes one loss with a sequence of regularizers, as along a regularization path."""

    def __init__(
        self,
        objective: Objective,
        *,
        max_iter: int = 1000,
        seed: int = 0,
        callback: Callback | None = None,
    ) -> None:
        check_smooth(objective)
        self.point: L1Point | None = None  # the best one so far
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
        """Minimize the loss plus a regularizer, starting at `start_at`.

        If `start_at` is None, start at the solution on a sample or for larger penalties.
        """
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
        """Return a starting point near the minimum, found by solving with decreasing penalties.

        With fewer documents than features, there may be weights with almost no loss. With a small
        penalty or a large ball, a single step would then overshoot: the loss of other pairs becomes
        positive, step after step. As the penalty decreases gradually, few pairs change at a time.
        For an l1 ball, the last solution inside the ball is returned.
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
        point = self._iteration.point
        if point is None:
            return composite.at(np.zeros(self._objective.n_features))
        if point.objective is not self._objective:
            return composite.at(point.w)
        return composite.wrap(point.base)


def _inside(point: L1Point) -> L1Point:
    # Rounding may have put the weights outside the domain of the regularizer.
    w = point.composite.regularizer.inside(point.w)
    if np.array_equal(w, point.w):
        return point
    moved = point.near(w)
    if moved.gap > point.gap:
        tighten(moved)
    return moved


class ModelIteration:
    """Proximal Newton with an explicit Hessian, which is reused for the next regularizer.

    With `tightens`, the iteration may also stop on the tighter error bound of `parabolas.py`.
    """

    def __init__(self, max_iter: int, seed: int, *, tightens: bool = True) -> None:
        self.point: L1Point | None = None  # the best one so far
        self._max_iter = max_iter
        self._seed = seed
        self._tightens = tightens
        self._looseness = LOOSENESS
        self._model: QuadraticModel | None = None
        self._model_cost = 0.0
        self._disappointments = 0  # models in a row that were new and yet too slow

    def run(self, point: L1Point, tol: float, progress: Progress | None) -> ProximalOutcome:
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
            # The first step with an old model is due to a new regularizer, so its gain says nothing
            # about the quality of the model.
            counts = fresh or k > 0
            if step is None or (counts and self._is_slow(step, point, expected, tol)):
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
        """Correct the Hessian by the change of the gradient from `start` to `end` (BFGS)."""
        if self._model:
            self._model.correct(end.w - start.w, end.gradient - start.gradient)

    def _outcome(self, point: L1Point, tol: float, otherwise: StopReason) -> ProximalOutcome:
        # `otherwise` is the stop reason if the point cannot be certified.
        if self._tightens and not point.is_solved(tol):
            tighten(point)
        return ProximalOutcome(point, StopReason.CERTIFIED if point.is_solved(tol) else otherwise)

    def _expected_gap(self, point: L1Point, estimate: float) -> float:
        # Guess the gap that `tighten` would give from the estimated distance to the optimum.
        useful = self._tightens and has_parabolas(point.composite)
        return self._looseness * max(estimate, 0.0) if useful else np.inf

    def _is_certified_closely(self, point: L1Point, expected: float, tol: float) -> bool:
        tighten(point)
        if expected > 0:
            seen = self._looseness * point.gap / expected
            self._looseness = float(np.clip(seen, 1.0, LOOSENESS**2))
        return point.is_solved(tol)

    def _is_slow(self, step: L1Point, before: L1Point, expected: float, tol: float) -> bool:
        # Whether a new model would save more sweeps than it costs. The fall of `scaled_gap` shows
        # the pace; the gap by `tighten` falls twice as fast, and may end the run.
        if step.is_solved(tol):
            return False
        enough = tol * max(step.value, np.finfo(float).tiny)
        rate = np.log(before.scaled_gap / step.scaled_gap)
        rest = np.log(step.scaled_gap / enough)
        if expected < np.inf:
            rest = min(rest, 0.5 * (np.log(max(expected, enough)) - np.log(enough)) - rate)
        with_new_model = self._model_cost + rest / np.log(FAST)
        return bool(rest > with_new_model * rate)

    def _build(self, point: L1Point) -> QuadraticModel:
        # The model of all documents, or of a sample if there are many.
        objective = point.objective
        growth = SAMPLE_GROWTH ** max(self._disappointments - PATIENCE + 1, 0)
        size = growth * max(SMALL_SAMPLE, SAMPLE_PER_FEATURE * objective.n_features)
        self._model_cost = objective.n_features / 8
        share = size / objective.n_active_documents
        if share >= 0.5 or share > objective.matrix.largest_sample:
            return _complete_model(point)
        self._model_cost *= share
        sample = objective.sample(share, self._seed + 1)
        hessian = sample.at(point.w).hessian()
        check_overflow(hessian, objective)
        # A feature too rare for the sample has no curvature there.
        if np.any((np.diag(hessian) <= 0) & (point.base.gradient != 0)):
            return _complete_model(point)
        return QuadraticModel(hessian, complete=False)


def _complete_model(point: L1Point) -> QuadraticModel:
    # A feature without curvature here gets a part of its curvature at zero, where every pair is
    # curved: otherwise its weight could move without limit.
    objective = point.objective
    hessian = point.base.hessian()
    check_overflow(hessian, objective)
    entries = np.diag_indices_from(hessian)
    if objective.loss.curvature(0.0) == 0.0:
        # A smoothed hinge is curved near its kink only, so few pairs may leave H singular.
        hessian[entries] += _added_curvature(point)
    elif np.any(hessian[entries] <= FLAT * np.max(hessian[entries])):
        floor = LEAST_CURVATURE * objective.at_zero().hess_diag()
        hessian[entries] = np.maximum(hessian[entries], floor)
    return QuadraticModel(hessian, complete=True)


def _added_curvature(point: L1Point) -> Floats:
    # A share of the curvature of the squared hinge at w = 0. The share is smaller near the optimum,
    # where added curvature would slow down the last steps.
    zero = point.objective.with_loss(LOSSES["squared_hinge"]).at_zero()
    violation = point.composite.regularizer.violation(point.w, point.base.gradient)
    far = np.sqrt(violation / max(float(np.max(np.abs(zero.gradient))), violation, TINY))
    added: Floats = LEAST_CURVATURE * max(far, NEAR) * zero.hess_diag()
    return added


def _advance(point: L1Point, u: Floats, *, to_tighten: bool = False) -> L1Point | None:
    # Move to u, or to the best point on the way if u does not gain enough. Takes one sweep, or two
    # if the bound is likely to be tightened there.
    regularizer = point.composite.regularizer
    direction = u - point.w
    slope = float(point.base.gradient @ direction)
    slope += regularizer.value(u) - regularizer.value(point.w)
    rounding = 1e-12 * abs(point.value)
    if not slope <= rounding or not direction.any():
        return None
    trial = point.near(u, only_scores=to_tighten)
    if to_tighten:  # also computes the gradient
        trial.by_group(GROUPS_PER_FEATURE * u.size)
    if abs(slope) <= rounding:  # values differ by rounding only, but certificates still compare
        return trial if trial.gap < point.gap else None
    if trial.value <= point.value + SUFFICIENT * slope:
        return trial
    scores = point.objective.space.add(trial.scores, -1.0, point.scores)
    return line_search(point, direction, scores, longest=1.0)


class WorkingSets:
    """Proximal Newton on a growing subset of the features (the working set), for many features.

    It minimizes over the working set, adds the features that violate optimality most, and repeats.
    """

    def __init__(self, max_iter: int, seed: int) -> None:
        self.point: L1Point | None = None  # the best one so far
        self._max_iter = max_iter
        self._seed = seed
        self._squares: Floats | None = None  # squared differences for screening

    def run(self, point: L1Point, tol: float, progress: Progress | None) -> ProximalOutcome:
        self.point = point
        size = SMALL_WORKING_SET
        screen = Screen(point.composite)
        for k in range(self._max_iter):
            if point.is_solved(tol):
                return ProximalOutcome(self.point, StopReason.CERTIFIED)
            if k > 0:  # by then the gap is small enough for proofs
                point = screen.narrow(point, self._squares_of(screen.whole.objective))
            features = _choose(point, size)
            if features.size > LARGEST_WORKING_SET:
                return self._run_on_faces(point, tol, screen, progress)
            loss = point.base.through(features)
            part = Composite(loss.objective, point.composite.regularizer).wrap(loss)
            # A tighter bound on some features says little about the bound on all features.
            iteration = ModelIteration(self._max_iter, self._seed, tightens=False)
            solved = iteration.run(part, max(0.3 * tol, 0.1 * point.gap / point.value), None)
            w = np.zeros_like(point.w)
            w[features] = solved.point.w
            accumulated_update = np.zeros_like(point.w)
            accumulated_update[features] = solved.point.accumulated_update
            step = point.composite.at(w, solved.point.scores, accumulated_update)
            if solved.stop is StopReason.PRECISION and step.gap >= point.gap:
                return ProximalOutcome(self.point, StopReason.PRECISION)
            size *= 2 if step.gap > SLOW * point.gap else 1
            size = max(size, 2 * int(np.count_nonzero(w)))
            point = step
            self._record(point, screen, features.size, progress)
        return ProximalOutcome(self.point, StopReason.MAX_ITER)

    def _run_on_faces(
        self, point: L1Point, tol: float, screen: Screen, progress: Progress | None
    ) -> ProximalOutcome:
        # Without a Hessian, which would not fit for so many non-zero weights.
        self.point = screen.widen(point)
        for _ in range(self._max_iter):
            if point.is_solved(tol):
                return ProximalOutcome(self.point, StopReason.CERTIFIED)
            step = _advance(point, face_step(point))
            if step is None or step.gap > SLOW * point.gap:
                step = _advance(step or point, gradient_step(step or point)) or step
            if step is None:
                return ProximalOutcome(self.point, StopReason.PRECISION)
            point = step
            self._record(point, screen, int(np.count_nonzero(point.w)), progress)
        return ProximalOutcome(self.point, StopReason.MAX_ITER)

    def _record(
        self, point: L1Point, screen: Screen, n_features: int, progress: Progress | None
    ) -> None:
        # Updates point.
        self.point = screen.widen(point)
        if progress:
            gap = point.gap
            progress.record(self.point, gap, n_features, gap=gap, gradient=point.gradient)

    def _squares_of(self, objective: Objective) -> Floats:
        if self._squares is None:
            self._squares = squared_differences(objective)
        return self._squares


def _choose(point: L1Point, size: int) -> Integers:
    # All features with a non-zero weight, then features with the strongest pull, up to `size`.
    pull = point.composite.regularizer.pull(point.base.gradient)
    pull[point.w != 0] = np.inf
    size = min(max(size, int(np.count_nonzero(point.w))), pull.size)
    strongest = places_of_largest(pull, size)
    return strongest[pull[strongest] > 0]
