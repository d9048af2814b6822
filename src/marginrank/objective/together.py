"""Several objectives on the same documents, that differ in weights or in the loss: X is read once.

What is done for all of them is one sweep. Each gets what it would have got alone.
"""

from collections.abc import Sequence

from marginrank._utils.types import Floats
from marginrank.objective.backends.interface import Scores, SharedSweeps
from marginrank.objective.objective import Objective, Point


def points_at(
    objectives: Sequence[Objective], ws: Sequence[Floats], likes: Sequence[Point | None]
) -> list[Point]:
    """Look at a w each, gradients included; a sweep."""
    states = [None if like is None else like.state for like in likes]
    evaluations = _share(objectives).evaluate(ws, states)
    return [
        Point(o, w, evaluation, abs(w))
        for o, w, evaluation in zip(objectives, ws, evaluations, strict=True)
    ]


def scores_of(objectives: Sequence[Objective], ws: Sequence[Floats]) -> list[Scores]:
    """Return Xw for a w each; a sweep."""
    return _share(objectives).scores(ws)


def make_gradients(points: Sequence[Point]) -> None:
    """Make the gradients of points that have none yet; a sweep."""
    waiting = [point for point in points if not point.has_gradient]
    if not waiting:
        return
    sums = _share([p.objective for p in waiting]).combine([p.score_gradient for p in waiting])
    for point, of_loss in zip(waiting, sums, strict=True):
        point.gradient = point.objective.ridge * point.w + of_loss


def hess_vecs(points: Sequence[Point], vs: Sequence[Floats]) -> list[tuple[Floats, Scores]]:
    """Return ∇²F(w) v and Xv for a point and a v each; a sweep."""
    products = _share([p.objective for p in points]).hess_vec([p.state for p in points], vs)
    return [
        (point.objective.ridge * v + product, scores)
        for point, v, (product, scores) in zip(points, vs, products, strict=True)
    ]


def _share(objectives: Sequence[Objective]) -> SharedSweeps:
    """Return what serves all objectives; a sweep."""
    objectives[0].count_sweep()
    return objectives[0].matrix.share([o.kernels for o in objectives])
