"""What every backend promises to objectives, and through them to solvers.

Every backend of BACKENDS is tested, and a toy one. Its scores are looked at through sweeps:
nobody else knows what they are. Both also hold features that a scale divides.
"""

import zlib

import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client, LocalCluster
from helpers.brute_force import BruteForce, explicit_pairs
from helpers.objectives import make_objective
from helpers.pair_kinds import within
from helpers.toy_backend import ToyMatrix

from marginrank import RankingData, make_ranking, operators
from marginrank.additive.curve_matrix import CurveMatrix
from marginrank.data.pair_lists import PairList
from marginrank.objective.losses import LOSSES
from marginrank.objective.pair_weights import gain_difference
from marginrank.objective.regularizers import ElasticNet, L1Ball
from marginrank.operators import BACKENDS, matrix_of
from marginrank.operators.native import NativeMatrix
from marginrank.solvers import SOLVERS, find_solver, solver_names

IN_TESTS = {
    "toy": "helpers.toy_backend:ToyMatrix.of",
    "scaled native": "helpers.scaled_backend:native",
    "scaled toy": "helpers.scaled_backend:toy",
    "parts": "helpers.parts_backend:MemoryParts",
    "scaled parts": "helpers.scaled_backend:parts",
    "dask": "helpers.dask_backend:DaskParts",
    "scaled torch": "helpers.scaled_backend:on_torch",
    "dask with torch": "helpers.dask_backend:TorchParts",
    "torch with triton": "helpers.triton_backend:on_cpu",
    "curves": "helpers.curve_backend:lines",
}
BACKENDS_TO_TEST = [*BACKENDS, *IN_TESTS]
LAYOUTS = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_array,
}
KINDS = ["labels", "adjacent", "weighted", "margins", "listed", "listed margins"]
rng = np.random.default_rng(0)
X, Y, QID = make_ranking(9, (1, 12), 5, random_state=0)
X = X.astype(np.float32).astype(np.float64)  # the same in all layouts
ORDER = rng.permutation(len(Y))
X, Y, QID = X[ORDER], Y[ORDER], QID[ORDER]
SAMPLE_WEIGHT, MARGINS = rng.uniform(0.5, 2.0, len(Y)), rng.normal(size=len(Y))
IDS = list(dict.fromkeys(QID.tolist()))
W, V = rng.normal(size=(2, 5))
C = 0.3


def cover(test, first, second):
    """Return the first factor, each with one value of the second that other tests do not take.

    A cell of the product is in some test of a file, and every value of both is in every test;
    kernels of pairs and layouts of X do not know of each other. The native backend has all cells.
    """
    shift = zlib.crc32(test.encode())
    cells = [(a, second[(shift + k) % len(second)]) for k, a in enumerate(first)]
    return [*dict.fromkeys([*cells, *(("native", b) for b in second if "native" in first)])]


def pytest_generate_tests(metafunc):
    test, names = metafunc.function.__name__, metafunc.fixturenames
    if test == "test_every_kind_of_pairs":
        cells = [(backend, kind) for backend in BACKENDS_TO_TEST for kind in KINDS]
    else:
        cells = cover(test, BACKENDS_TO_TEST, KINDS)
    # Workers with PyTorch have fits of their own in tests/dask/test_dask_devices.py.
    of_fits = [backend for backend in BACKENDS_TO_TEST if backend != "dask with torch"]
    if "problem" in names:
        marked = [pytest.param(*cell, marks=marks_of(cell[0])) for cell in cells]
        metafunc.parametrize(("backend", "problem"), marked, indirect=True)
    elif "backend" in names:
        backends = of_fits if test.endswith("works_on_it") else BACKENDS_TO_TEST
        marked = [pytest.param(backend, marks=marks_of(backend)) for backend in backends]
        metafunc.parametrize("backend", marked, indirect=True)


def marks_of(backend):
    """Return the mark of a backend that takes minutes: Triton's interpreter."""
    return [pytest.mark.triton] if backend == "torch with triton" else []


@pytest.fixture
def backend(request, monkeypatch):
    for name, where in IN_TESTS.items():
        monkeypatch.setitem(operators.BACKENDS, name, where)
    if request.param.startswith("dask"):
        request.getfixturevalue("cluster")
    return request.param


@pytest.fixture(scope="module")
def cluster():
    """Two workers in threads, to which tasks are sent as to processes, in half the time.

    The tests of Dask itself have worker processes.
    """
    options = {"processes": False, "protocol": "tcp", "dashboard_address": ":0"}
    with LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster, Client(cluster):
        yield


@pytest.fixture
def problem(request, backend):
    """An objective of the backend, and the same written down."""
    return make_problem(request.param, backend)


def make_problem(kind, backend, loss="huber", layout=np.asarray, threads=1, ridge=1.0):
    loss = LOSSES[loss]
    weights = SAMPLE_WEIGHT if kind == "weighted" else None
    data = RankingData(layout(X), Y, QID, sample_weight=weights)
    options = {"C": C, "threads": threads, "ridge": ridge, "backend": backend}
    pairs = explicit_pairs(
        Y,
        QID,
        sample_weight=weights,
        pair_weight=(lambda a, b: a - b) if kind == "weighted" else None,
        margin=MARGINS if kind == "margins" else None,
        close=within(Y, QID, 1) if kind == "adjacent" else None,
    )
    if kind == "adjacent":
        options["pair_selection"] = "adjacent"
    elif kind == "weighted":
        options["pair_weights"] = gain_difference(Y, lambda y: y)
    elif kind == "margins":
        options["margins"] = MARGINS
    elif kind in ("listed", "listed margins"):
        pairs.preferred, pairs.other = pairs.preferred[::2], pairs.other[::2]
        pairs.weight, pairs.shift = pairs.weight[::2], pairs.shift[::2]
        margin = None
        if kind == "listed margins":
            margin = np.random.default_rng(0).uniform(0.0, 2.0, size=pairs.shift.size)
            pairs.shift = margin
        options["pairs"] = PairList(np.column_stack([pairs.preferred, pairs.other]), margin=margin)
    return make_objective(data, loss, **options), BruteForce(X, pairs, loss, C)


def by_query(brute, of_pairs):
    """Sum what pairs have, times C, by query in order of appearance."""
    query = QID[brute.pairs.preferred]
    return np.array([C * np.sum(of_pairs[query == q]) for q in IDS])


def assert_close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("loss", "layout"), [*zip(LOSSES, [*LAYOUTS, "float32"], strict=True)], ids=str
)
def test_value_and_gradient(backend, loss, layout):
    objective, brute = make_problem("weighted", backend, loss, LAYOUTS[layout])
    point = objective.at(W)
    assert_close(point.value, brute.value(W))
    assert_close(point.gradient, brute.gradient(W))
    assert_close(point.loss_value, point.value - 0.5 * W @ W)
    assert point.losses.n_queries == np.count_nonzero(point.by_group(len(Y)).losses)
    assert point.sum_rounding < 1e-10 * point.value


def test_every_kind_of_pairs(problem):
    objective, brute = problem
    point = objective.at(W)
    assert objective.pairs.n_pairs == len(brute.pairs.weight)
    assert_close(point.value, brute.value(W))
    assert_close(point.gradient, brute.gradient(W))
    assert_close(point.hessian(), brute.hessian(W))
    largest = np.abs(brute.hessian(W)).max()
    np.testing.assert_allclose(point.rough_hessian(), brute.hessian(W), atol=1e-5 * largest)
    assert_close(point.hess_diag(), np.diag(brute.hessian(W)))
    assert_close(point.hess_vec(V)[0], brute.hessian(W) @ V)


def test_known_scores_need_no_sweep(problem):
    objective, brute = problem
    scores = objective.scores(W)
    before = objective.sweeps
    point = objective.at(W, scores)
    assert_close(point.value, brute.value(W))
    assert objective.sweeps == before
    assert_close(point.gradient, brute.gradient(W))
    assert objective.sweeps == before + 1
    like = objective.at(W, scores, like=objective.at(V))
    assert_close(like.gradient, brute.gradient(W))


def test_along_a_line(problem):
    objective, brute = problem
    point, scores = objective.at(W), objective.scores(V)
    before = objective.sweeps
    moved = point.move(0.7, V, scores)
    there = W + 0.7 * V
    assert_close(moved.value, brute.value(there))
    assert_close(moved.slope(V, scores), brute.gradient(there) @ V)
    assert_close(moved.curvature(V, scores), V @ brute.hessian(there) @ V)
    assert_close(moved.loss_slope(scores), brute.gradient(there) @ V - there @ V)
    assert objective.sweeps == before
    np.testing.assert_array_equal(moved.accumulated_update, np.abs(W) + np.abs(0.7 * V))
    assert_close(moved.gradient, brute.gradient(there))
    others = objective.scores(W)  # along which it did not come
    assert_close(moved.loss_slope(others), brute.gradient(there) @ W - there @ W)
    assert moved.losses.n_documents == objective.at(there).losses.n_documents


def test_scores_are_added_and_measured(problem):
    objective, _ = problem
    a, b = objective.scores(W), objective.scores(V)
    total = objective.space.add(a, -2.5, b)
    design = objective.design
    expected = design.transpose_dot(objective.scores(W - 2.5 * V))
    assert_close(design.transpose_dot(total), expected)
    assert_close(design.transpose_dot(objective.space.zero()), 0.0)
    rows = objective.pairs.documents.rows
    seen = X if rows is None else X[rows]
    assert_close(objective.space.dot(a, b), (seen @ W) @ (seen @ V))
    assert_close(objective.space.std(a), np.std(seen @ W))
    assert_close(design.transpose_dot(design.column(3)), seen.T @ seen[:, 3])
    assert objective.space.is_finite(a)
    assert not objective.space.is_finite(objective.space.add(a, np.nan, b))
    assert objective.at_zero().value == pytest.approx(objective.at(np.zeros(5)).value)


def test_points_leave_their_scores_alone(problem):
    objective, brute = problem
    point, scores = objective.at(W), objective.scores(V)
    gradient = point.gradient.copy()
    point.move(3.0, V, scores)
    point.hess_vec(V)
    objective.at_zero()
    assert_close(objective.at(W, point.scores).value, brute.value(W))
    assert_close(objective.combine(point.score_gradient) + W, gradient)


def test_groups_of_queries_sum_to_the_loss(problem):
    objective, brute = problem
    grouped = objective.at(W).by_group(3)
    assert_close(np.sum(grouped.losses), brute.value(W) - 0.5 * W @ W)
    assert_close(grouped.gradients.sum(axis=0), brute.gradient(W) - W)
    alone = objective.at(W, objective.scores(W)).by_group(1000)
    losses = by_query(brute, brute.pairs.weight * brute.loss.value(brute._t(W)))
    assert_close(alone.losses[alone.losses > 0], losses[losses > 0])
    assert alone.gradients.shape == (objective.pairs.n_queries, 5)


def test_errors_of_queries_are_bounded(problem):
    objective, brute = problem
    evaluation = objective.design.evaluate(objective.pair_loss, W, None)
    sizes = by_query(brute, np.abs(brute.pairs.weight * brute.loss.derivative(brute._t(W))))
    sides = np.concatenate([brute.pairs.preferred, brute.pairs.other])
    largest = [np.abs(X[sides[QID[sides] == q]]).max(axis=0, initial=0.0) for q in IDS]
    exact = np.sum((sizes[:, None] * np.stack(largest)) ** 2, axis=0)
    found = objective.design.query_squares(evaluation.by_query)
    assert np.all(found >= exact * (1 - 1e-12))
    assert_close(objective.feature_magnitudes, np.abs(X).max(axis=0))


def test_some_features_alone(problem):
    objective, brute = problem
    features = np.array([1, 4])
    w = np.zeros(5)
    w[features] = W[features]
    through = objective.at(w).through(features)
    assert through.objective.n_features == 2
    assert_close(through.value, brute.value(w))
    assert_close(through.gradient, brute.gradient(w)[features])
    assert_close(through.hessian(), brute.hessian(w)[np.ix_(features, features)])
    assert [through.objective.feature(j) for j in range(2)] == [1, 4]
    again = through.objective.restrict(np.array([1]))
    assert again.feature(0) == 4
    assert_close(again.feature_magnitudes, np.abs(X[:, 4]).max())


def rows_of(sample):
    """Return X of a sample: that of all documents, or rows of its own."""
    if isinstance(sample.matrix, CurveMatrix):
        return sample.matrix.values(np.arange(sample.n_features))
    inner = getattr(sample.matrix, "inner", sample.matrix)
    has_own = isinstance(inner, NativeMatrix) and sample.pairs.documents.rows is None
    return inner.X / getattr(sample.matrix, "scale", 1.0) if has_own else X


@pytest.mark.parametrize("fraction", [0.05, 1.0])
def test_a_sample_is_an_objective_of_its_pairs(backend, problem, fraction):
    objective, brute = problem
    sample = objective.sample(fraction, 3)
    toy = ToyMatrix(rows_of(sample)).design(sample.pairs, 1)
    loss = toy.pair_loss(sample.loss)
    point, expected = sample.at(W), toy.evaluate(loss, W, None)
    assert_close(point.loss_value, expected.losses.value)
    assert_close(point.gradient, W + expected.gradient)
    assert_close(point.hessian(), np.eye(5) + toy.hessian(loss, expected.state))
    assert sample.fraction <= 1.0
    if fraction == 1.0:
        assert_close(point.value, brute.value(W))


def test_products_of_documents(problem):
    objective, brute = problem
    point = objective.at(W)
    curved, gram = point.curved_gram(), objective.design.gram
    assert objective.with_loss(LOSSES["squared_hinge"]).design.gram is gram
    # (ρI + XᵀAX) Xᵀc = Xᵀ(ρI + AK)c for every c.
    c = np.random.default_rng(1).normal(size=gram.documents.size)
    left = brute.hessian(W) @ objective.combine_active(c)
    right = objective.combine_active(c) + objective.combine_active(curved @ c)
    assert_close(left, right)
    rows = objective.pairs.documents.rows
    seen = X if rows is None else X[rows]
    assert_close(
        objective.space.entries(objective.scores(W), gram.documents), (seen @ W)[gram.documents]
    )


def test_another_loss_or_ridge_on_the_same_pairs(problem):
    objective, brute = problem
    other = LOSSES["squared_hinge"]
    expected = BruteForce(X, brute.pairs, other, C)
    assert_close(objective.with_loss(other).at(W).value, expected.value(W))
    assert_close(objective.with_loss(other).at_point(objective.at(W)).value, expected.value(W))
    ridged = objective.with_ridge(2.5).at(W)
    assert_close(ridged.value, brute.value(W) + 0.75 * W @ W)
    assert_close(ridged.gradient, brute.gradient(W) + 1.5 * W)


def test_the_number_of_threads_does_not_change_the_bits(backend):
    points = [make_problem("weighted", backend, threads=t)[0].at(W) for t in (1, 2, 5)]
    for point in points[1:]:
        assert point.value == points[0].value
        np.testing.assert_array_equal(point.gradient, points[0].gradient)
        np.testing.assert_array_equal(point.hess_vec(V)[0], points[0].hess_vec(V)[0])


@pytest.mark.parametrize("name", solver_names(regularized=False))
def test_every_solver_works_on_it(backend, name):
    kind = "margins" if BACKENDS_TO_TEST.index(backend) % 2 else "listed"
    loss = next(loss for loss in LOSSES.values() if SOLVERS[name].takes(loss, None))
    found, expected = (
        find_solver(name, loss)(make_problem(kind, which, loss.name)[0], tol=1e-6)
        for which in (backend, "native")
    )
    assert found.stop.converged
    assert found.objective == pytest.approx(expected.objective, rel=2e-6)


REGULARIZERS = [L1Ball(0.3), ElasticNet(0.5)]
TAKEN, REJECTED = (
    [
        (regularizer, name)
        for regularizer in REGULARIZERS
        for name in solver_names(regularized=True)
        if SOLVERS[name].takes(LOSSES["squared_hinge"], regularizer) is takes
    ]
    for takes in (True, False)
)


@pytest.mark.parametrize(("regularizer", "name"), REJECTED)
def test_solvers_of_other_regularizers_are_rejected(regularizer, name):
    with pytest.raises(ValueError, match=name):
        find_solver(name, LOSSES["squared_hinge"], regularizer)


@pytest.mark.parametrize(("regularizer", "name"), TAKEN)
def test_every_solver_with_a_regulariser_works_on_it(backend, regularizer, name):
    loss = LOSSES["squared_hinge"]
    tol = 1e-2 if backend == "dask" else 1e-4  # an iteration there takes 10 ms
    found, expected = (
        find_solver(name, loss, regularizer)(
            make_problem("labels", which, loss.name, ridge=0.0)[0], tol=tol, max_iter=5000
        )
        for which in (backend, "native")
    )
    assert found.stop.converged
    assert found.objective == pytest.approx(expected.objective, rel=2 * tol)


def test_a_wide_fit_works_on_it(backend):
    """More features than documents: the Newton system has an unknown for each document."""
    wide = np.random.default_rng(2).normal(size=(len(Y), 2 * len(Y)))
    results = [
        find_solver("newton", LOSSES["huber"])(
            make_objective(RankingData(wide, Y, QID), LOSSES["huber"], C=1.0, backend=which)
        )
        for which in (backend, "native")
    ]
    assert results[0].stop.converged
    assert results[0].objective == pytest.approx(results[1].objective, rel=2e-6)


def test_a_backend_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="backend='gpu' must be one of 'native'"):
        matrix_of(RankingData(X, Y, QID), "gpu")
