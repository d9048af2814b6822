"""Features divided by a scale: what tests of every backend do not show.

tests/objective/test_backends.py holds it to what a backend promises.
"""

import numpy as np
import pytest
from helpers.objectives import make_objective

from marginrank import RankingData, make_ranking
from marginrank.objective.losses import LOSSES
from marginrank.objective.objective import Objective
from marginrank.objective.together import hess_vecs, make_gradients, points_at, scores_of
from marginrank.operators import matrix_of
from marginrank.operators.transformed import ScaledMatrix

X, Y, QID = make_ranking(9, (2, 12), 5, random_state=0)
SCALES = np.random.default_rng(0).uniform(0.1, 10.0, (3, 5))
W, V = np.random.default_rng(1).normal(size=(2, 3, 5))


def objectives(backend):
    """Return objectives on the same documents, each with a scale and a weight of its own."""
    data = RankingData(X, Y, QID)
    matrix = matrix_of(data, backend)
    plain = [make_objective(data, LOSSES["huber"], C=C) for C in (0.1, 1.0, 10.0)]
    return [
        Objective(design=ScaledMatrix(matrix, scale).design(o.pairs, 1), loss=o.loss)
        for scale, o in zip(SCALES, plain, strict=True)
    ]


def assert_same(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_sweeps_are_shared_by_objectives_of_different_scales():
    shared = objectives("native")
    points = points_at(shared, W, [None] * 3)
    products = hess_vecs(points, V)
    scores = scores_of(shared, W)
    for k, alone in enumerate(objectives("native")):
        point = alone.at(W[k])
        assert_same(points[k].value, point.value)
        assert_same(points[k].gradient, point.gradient)
        assert_same(products[k][0], point.hess_vec(V[k])[0])
        assert_same(shared[k].combine(products[k][1]), alone.combine(point.hess_vec(V[k])[1]))
        assert_same(shared[k].combine(scores[k]), alone.combine(alone.scores(W[k])))


def test_shared_gradients_of_points_on_a_line():
    shared = objectives("native")
    points = [o.at(w).move(0.3, v, o.scores(v)) for o, w, v in zip(shared, W, V, strict=True)]
    make_gradients(points)
    for k, point in enumerate(points):
        assert point.has_gradient
        assert_same(point.gradient, shared[k].at(W[k] + 0.3 * V[k]).gradient)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_certificates_hold_where_the_division_rounds(loss):
    """The objective of X / σ in extended precision is within what a point says of its rounding."""
    scale = np.array([3e-3, 7.0, 1e5, 0.3, 11.0])
    data = RankingData(X * scale * 1.7, Y, QID)
    o = make_objective(data, LOSSES[loss], C=10.0)
    o = o.on(ScaledMatrix(o.matrix, scale))
    exact = data.X.astype(np.longdouble) / scale.astype(np.longdouble)
    for w in W:
        point = o.at(w)
        s = exact @ w.astype(np.longdouble)
        t = (s[:, None] - s)[(Y[:, None] > Y) & (QID[:, None] == QID)]
        value = 10 * np.sum(np.maximum(1 - t, 0) ** (1 if loss == "hinge" else 2))
        assert abs(value - np.longdouble(point.loss_value)) <= point.rounding
