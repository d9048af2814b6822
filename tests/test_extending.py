"""From outside: a new loss is an entry, a new solver a file and a line, an operator likewise."""

from pathlib import Path

import numpy as np
import pytest
from helpers import toy_backend
from helpers.brute_force import BruteForce, explicit_pairs
from helpers.objectives import make_objective

from marginrank import RankingData, RankSVM, SparseRankSVM, make_ranking
from marginrank.objective.losses import LOSSES, Loss, Piece
from marginrank.objective.regularizers import Ray, Regularizer
from marginrank.operators import BACKENDS
from marginrank.solvers import SOLVERS, Solver, find_solver, solvers_for
from marginrank.solvers.smooth.newton import newton
from marginrank.solvers.sparse.truncated_gradient import truncated_gradient

X, Y, QID = make_ranking(20, 10, 4, random_state=0)


def test_a_new_loss_is_one_entry(monkeypatch):
    loss = Loss("smooth_hinge", (Piece(0.5, 1.0, 2), Piece(-0.5, 0.0, 2)))
    monkeypatch.setitem(LOSSES, loss.name, loss)
    model = RankSVM(loss="smooth_hinge", C=0.1, tol=1e-9).fit(X, Y, qid=QID)
    reference = BruteForce(X, explicit_pairs(Y, QID), loss, 0.1)
    assert model.objective_ == pytest.approx(reference.value(model.coef_), rel=1e-12)
    assert np.linalg.norm(reference.gradient(model.coef_)) < 1e-3 * reference.value(np.zeros(4))
    assert SparseRankSVM(loss="smooth_hinge", radius=0.1).fit(X, Y, qid=QID).gap_ >= 0


def test_a_new_solver_is_one_line(monkeypatch):
    def gradient_descent(objective, *, w0, tol, max_iter, seed, callback):
        w = np.zeros(objective.n_features)
        for _ in range(2000):
            w = w - 1e-3 * objective.at(w).gradient
        return newton(objective, w0=w, tol=tol, max_iter=1)

    solver = Solver(gradient_descent, lambda loss, regularizer: loss.smooth and regularizer is None)
    monkeypatch.setitem(SOLVERS, "gradient_descent", solver)
    model = RankSVM(solver="gradient_descent", C=0.01).fit(X, Y, qid=QID)
    expected = RankSVM(C=0.01, tol=1e-9).fit(X, Y, qid=QID)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-6)
    assert "gradient_descent" in solvers_for(LOSSES["huber"])
    with pytest.raises(ValueError, match=r"'gradient_descent'.*loss='hinge'"):
        RankSVM(solver="gradient_descent", loss="hinge").fit(X, Y, qid=QID)


def test_a_new_operator_is_one_folder_and_one_line(monkeypatch):
    monkeypatch.setitem(BACKENDS, "toy", "helpers.toy_backend:ToyMatrix.of")
    assert len(Path(toy_backend.__file__).read_text().splitlines()) <= 90
    data = RankingData(X, Y, QID)
    values = [
        newton(make_objective(data, LOSSES["huber"], C=0.1, backend=backend)).objective
        for backend in ("toy", "native")
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-6)


class Box(Regularizer):
    """|w_j| ≤ bound for every weight."""

    is_constraint = True
    phrase = "in a box"

    def __init__(self, bound):
        self.bound = bound

    def value(self, w):
        return 0.0

    def slope(self, w, direction):
        return 0.0

    def curvature(self, direction):
        return 0.0

    def prox(self, v, step):
        return np.clip(v, -self.bound, self.bound)

    def ray(self, gradient):
        slope = self.bound * float(np.sum(np.abs(gradient)))
        return Ray(np.inf, lambda tau: (tau * slope, slope, 0.0))

    def inside(self, w):
        return np.clip(w, -self.bound, self.bound)


def test_a_new_regulariser_is_one_class(monkeypatch):
    box, loss = Box(0.05), LOSSES["squared_hinge"]
    with pytest.raises(ValueError, match="loss='squared_hinge' has no solver in a box"):
        find_solver("auto", loss, box)
    takes_box = lambda loss, regularizer: loss.smooth and isinstance(regularizer, Box)  # noqa: E731
    solver = Solver(truncated_gradient, takes_box, regularized=True)
    monkeypatch.setitem(SOLVERS, "projected_gradient", solver)
    objective = make_objective(RankingData(X, Y, QID), loss, normalization="pairs", ridge=0.0)
    result = find_solver("auto", loss, box)(objective, tol=1e-6, max_iter=5000)
    assert result.stop.converged
    assert np.abs(result.w).max() == 0.05
    corners = np.random.default_rng(0).uniform(-0.05, 0.05, (50, 4))
    assert all(objective.at(w).value >= result.objective * (1 - 1e-6) for w in corners)
