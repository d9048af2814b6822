"""Evaluation of several objectives on the same documents in shared passes over X.

The objectives differ in weights or losses. Each result equals, bit for bit, the result of
evaluating the objective alone. A *point* is an objective evaluated at one w.
"""

from collections.abc import Sequence

from marginrank._utils.types import Floats
from marginrank.objective.objective import Objective, Point
from marginrank.objective.protocols import Scores, SharedSweeps


def points_at(
    objectives: Sequence[Objective], ws: Sequence[Floats], likes: Sequence[Point | None]
) -> list[Point]:
    """Return several objectives evaluated at one w each; reads X once for all.

    ws[k] are the weights for objective k. Sorting is faster if likes[k] ranks the documents
    similarly.
    """
    states = [None if like is None else like.state for like in likes]
    evaluations = _share(objectives).evaluate([o.pair_loss for o in objectives], ws, states)
    return [
        Point(o, w, evaluation, abs(w))
        for o, w, evaluation in zip(objectives, ws, evaluations, strict=True)
    ]


def scores_of(objectives: Sequence[Objective], ws: Sequence[Floats]) -> list[Scores]:
    """Return the scores X w for the weights w of each objective; reads X once for all."""
    return _share(objectives).dot(ws)


def make_gradients(points: Sequence[Point]) -> None:
    """Set the gradients of several evaluated objectives; reads X at most once for all.

    Gradients that are already known are not computed again.
    """
    waiting = [point for point in points if not point.has_gradient]
    if not waiting:
        return
    shared = _share([p.objective for p in waiting])
    sums = shared.transpose_dot([p.score_gradient for p in waiting])
    for point, of_loss in zip(waiting, sums, strict=True):
        point.gradient = point.objective.ridge * point.w + of_loss


def hess_vecs(points: Sequence[Point], vs: Sequence[Floats]) -> list[tuple[Floats, Scores]]:
    """Return a Hessian-vector product and scores for each objective; reads X once for all.

    The k-th objective gives ∇²F(w) v and Xv for the k-th vector v.
    """
    objectives = [point.objective for point in points]
    losses, states = [o.pair_loss for o in objectives], [point.state for point in points]
    products = _share(objectives).hess_vec(losses, states, vs)
    return [
        (point.objective.ridge * v + product, scores)
        for point, v, (product, scores) in zip(points, vs, products, strict=True)
    ]


def _share(objectives: Sequence[Objective]) -> SharedSweeps:
    # One sweep serves all objectives.
    objectives[0].count_sweep()
    return objectives[0].design.share([o.design for o in objectives])
