"""FenchelRank: the Frank-Wolfe method in the l1 ball (Lai et al., 2013, Algorithm 1).

Each iteration takes the vertex v = ±r e_j of the ball of radius r that minimizes ⟨∇L(w), v⟩, where
e_j is a unit vector, and minimizes the loss exactly on the segment from w to v. The paper's matrix
K of all pairs is never formed: gradients are sums over sorted scores, and the scores of a vertex
are a column of X. An iteration takes one pass over X for the gradient, O(n_documents) for the
column and a few sums over sorted scores for the step.

Section 5.6 of the paper has an alternative to the exact step: the minimum of a quadratic upper
bound on the segment. For pairs with weights c, score differences t of the direction d and losses
with ℓ'' ≤ M, the bound is L(w + μd) ≤ L(w) + μ⟨∇L(w), d⟩ + ½μ² M Σ c t², which is lowest at

    μ = min(1, −⟨∇L(w), d⟩ / (M Σ c t²)).

The formula for μ in the paper lacks the factor 1 / (M c), p / 2r² in its notation, and has max and
min exchanged, so μ would always be 1; the proof of convergence there uses the bound above.

Plain steps converge like 1/t: at most 16 r² / ε iterations until L(w) − L* ≤ ε, if features lie in
[0, 1] and the loss is the mean of squared hinges. Away and pairwise steps (Lacoste-Julien
and Jaggi, 2015) also move mass off a vertex in use, so convergence is linear. No list of vertices
is needed because w has only one representation by the vertices ±r e_j and the center 0.
"""

from typing import NamedTuple

import numpy as np

from marginrank._utils.types import Floats
from marginrank.models.fit_report import StopReason
from marginrank.objective.composite import Composite, CompositePoint
from marginrank.objective.objective import Objective
from marginrank.objective.protocols import Scores, is_certified
from marginrank.objective.regularizers import L1Ball
from marginrank.solvers.progress import Progress, check_smooth, start_inside
from marginrank.solvers.result import Callback, SolverResult
from marginrank.solvers.smooth.line_search import line_search

SLOPE_TOL = 1e-3  # slope that ends the line search, relative to the slope at its start
CENTER = -1  # feature index that stands for the center 0 of the ball


class Vertex(NamedTuple):
    """A vertex of the l1 ball (`size` at index `feature`, otherwise 0), or its center."""

    feature: int
    size: float

    def added_to(self, line: "Line", objective: Objective, by: float) -> "Line":
        if self.feature == CENTER:
            return line
        direction = line.direction.copy()
        direction[self.feature] += by * self.size
        column = objective.design.column(self.feature)
        return Line(direction, objective.space.add(line.scores, by * self.size, column))


class Line(NamedTuple):
    """A search direction d, and its scores Xd."""

    direction: Floats
    scores: Scores


class FrankWolfeStep(NamedTuple):
    """A search direction of the Frank-Wolfe method, with its largest step size `longest`.

    `drops` is the index of the weight that the largest step makes zero, or CENTER.
    """

    line: Line
    longest: float
    drops: int = CENTER


def fenchel(
    objective: Objective,
    regularizer: L1Ball,
    *,
    variant: str = "plain",
    w0: Floats | None = None,
    scores0: Scores | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    seed: int = 0,
    callback: Callback | None = None,
) -> SolverResult:
    """Minimize a smooth loss over an l1 ball by the Frank-Wolfe method (FenchelRank).

    Stops when a proven bound shows that `tol` is reached. `variant` is "plain" (as in Lai et al.,
    2013), "short" (with the step of their section 5.6), "away" or "pairwise". `seed` is not used
    because nothing here is random. The other parameters are as in
    :func:`~marginrank.solvers.sparse.proximal_newton.proximal_newton`.
    """
    check_smooth(objective)
    progress = Progress(objective, callback)
    first = start_inside(objective, regularizer, w0, scores0)
    point = Composite(objective, regularizer).wrap(first)
    stop = StopReason.MAX_ITER
    try:
        for _ in range(max_iter):
            if is_certified(point, tol):
                stop = StopReason.CERTIFIED
                break
            step = _choose_step(point, regularizer, variant)
            moved = _move_short(point, step.line) if variant == "short" else _move(point, step)
            if moved is None:
                stop = StopReason.PRECISION
                break
            point = moved
            progress.record(point, point.gap, 0)
    except KeyboardInterrupt:
        stop = StopReason.INTERRUPTED
    point = point.composite.at(regularizer.inside(point.w))  # without the rounding of many steps
    if is_certified(point, tol):
        stop = StopReason.CERTIFIED
    elif stop is StopReason.CERTIFIED:
        stop = StopReason.PRECISION
    return progress.result(point, point.gap, stop)


def _choose_step(point: CompositePoint[L1Ball], ball: L1Ball, variant: str) -> FrankWolfeStep:
    objective, gradient = point.objective, point.base.gradient
    towards = _best_vertex(gradient, ball)
    if variant in ("plain", "short"):
        return _towards(point, towards)
    away, share = _worst_vertex(point.w, gradient, ball)
    if variant == "pairwise":
        line = Line(np.zeros_like(point.w), objective.space.zero())
        line = away.added_to(towards.added_to(line, objective, 1.0), objective, -1.0)
        return FrankWolfeStep(line, share, away.feature)
    inner = float(gradient @ point.w)
    gain_towards = inner - _slope(gradient, towards)
    if share >= 1.0 or gain_towards >= _slope(gradient, away) - inner:
        return _towards(point, towards)
    line = away.added_to(Line(point.w, point.scores), objective, -1.0)
    return FrankWolfeStep(line, share / (1.0 - share), away.feature)


def _towards(point: CompositePoint[L1Ball], vertex: Vertex) -> FrankWolfeStep:
    objective = point.objective
    back = Line(-point.w, objective.space.add(objective.space.zero(), -1.0, point.scores))
    return FrankWolfeStep(vertex.added_to(back, objective, 1.0), 1.0)


def _slope(gradient: Floats, vertex: Vertex) -> float:
    return 0.0 if vertex.feature == CENTER else vertex.size * float(gradient[vertex.feature])


def _best_vertex(gradient: Floats, ball: L1Ball) -> Vertex:
    # argmin ⟨gradient, v⟩ over the vertices.
    pull = ball.pull(gradient)
    j = int(np.argmax(pull))
    if pull[j] == 0.0:
        return Vertex(CENTER, 0.0)
    return Vertex(j, -ball.radius * float(np.sign(gradient[j])))


def _worst_vertex(w: Floats, gradient: Floats, ball: L1Ball) -> tuple[Vertex, float]:
    # argmax ⟨gradient, v⟩ over the vertices that w is a mean of, and its share in that mean.
    center = max(1.0 - float(np.sum(np.abs(w))) / ball.radius, 0.0)
    slopes = np.where(w == 0, -np.inf, np.sign(w) * gradient)
    j = int(np.argmax(slopes))
    if slopes[j] <= 0.0 and center > 1e-12:
        return Vertex(CENTER, 0.0), center
    return Vertex(j, ball.radius * float(np.sign(w[j]))), abs(float(w[j])) / ball.radius


def _move_short(point: CompositePoint[L1Ball], line: Line) -> CompositePoint[L1Ball] | None:
    slope, curvature = point.slope(*line), _largest_curvature_along(point.objective, line)
    if not slope < 0 < curvature:
        return None
    return point.move(min(1.0, -slope / curvature), *line)


def _largest_curvature_along(objective: Objective, line: Line) -> float:
    # M Σ c t²: at w = 0 every pair has the same curvature.
    loss = objective.loss
    at_zero = objective.at_zero().curvature(*line)
    return at_zero * loss.largest_curvature / float(loss.curvature(0.0))


def _move(point: CompositePoint[L1Ball], step: FrankWolfeStep) -> CompositePoint[L1Ball] | None:
    # The best step is often a small part of the segment: start where a quadratic has its minimum.
    slope, curvature = point.slope(*step.line), point.curvature(*step.line)
    first = -slope / curvature if slope < 0 < curvature else 1.0
    moved = line_search(point, *step.line, SLOPE_TOL, step.longest, first)
    if moved is None or step.drops == CENTER:
        return moved
    before = abs(point.w[step.drops])
    if abs(moved.w[step.drops]) <= 1e-14 * before:  # exactly zero but for rounding
        moved.w[step.drops] = 0.0
    return moved
