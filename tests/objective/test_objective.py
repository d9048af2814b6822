"""Value and derivatives of the objective against brute force over explicit pairs."""

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.brute_force import BruteForce, ExplicitPairs, explicit_pairs
from helpers.objectives import (
    assert_parts_are_disjoint_estimates,
    assert_samples_estimate,
    make_objective,
)
from helpers.pair_kinds import within
from hypothesis import given, settings
from hypothesis import strategies as st

from marginrank import RankingData, make_ranking
from marginrank.models.parameters import NORMALIZATIONS
from marginrank.objective.losses import LOSSES, Loss, Piece
from marginrank.objective.pair_margins import MOST_MARGIN_LABELS
from marginrank.objective.pair_weights import gain_difference, weight_matrix
from marginrank.solvers import SOLVERS, solver_names

HINGE = LOSSES["hinge"]
MIXED = Loss("mixed", (Piece(0.5, 1.5, 1), Piece(2.0, 0.25, 2), Piece(0.25, -0.5, 1)))
ALL_LOSSES = [*LOSSES.values(), MIXED]

LAYOUTS = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "read-only": lambda X: _read_only(X),
    "strided rows": lambda X: np.hstack([X, X])[:, : X.shape[1]],
    "columns": np.asfortranarray,
    "csr int32": sp.csr_array,
    "csr int64": lambda X: _with_indices(sp.csr_array(X), np.int64),
    "csr float32": lambda X: sp.csr_array(X.astype(np.float32)),
}


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def _with_indices(X, dtype):
    X.indices, X.indptr = X.indices.astype(dtype), X.indptr.astype(dtype)
    return X


@dataclass
class Problem:
    """A ranking problem, a place to look at it from, and its explicit pairs."""

    X: Any
    y: np.ndarray
    qid: np.ndarray
    w: np.ndarray
    v: np.ndarray
    loss: Loss = LOSSES["squared_hinge"]
    C: float = 0.7
    width: int | None = None  # largest difference of the levels of a pair
    normalization: str = "none"
    threads: int = 2
    weights: dict = field(default_factory=dict)  # sample_weight and query_weight, both by row
    factors: Any = None
    pair_weight: Any = None
    margin: np.ndarray | None = None  # by row
    margin_table: np.ndarray | None = None  # by label

    def objective(self):
        return make_objective(
            RankingData(self.X, self.y, self.qid, **self.weights),
            self.loss,
            C=self.C,
            pair_selection="all" if self.width is None else f"within:{self.width}",
            normalization=self.normalization,
            pair_weights=self.factors,
            margins=self.margin,
            margin_table=self.margin_table,
            threads=self.threads,
        )

    def pairs(self):
        pairs = explicit_pairs(
            self.y,
            self.qid,
            **self.weights,
            pair_weight=self.pair_weight,
            margin=self.margin if self.margin_table is None else self._margin_of_labels,
            close=None if self.width is None else within(self.y, self.qid, self.width),
        )
        pairs.weight = self._normalized(pairs)
        return pairs

    def _margin_of_labels(self, a, b):
        labels = np.unique(self.y)
        return self.margin_table[np.searchsorted(labels, a), np.searchsorted(labels, b)]

    def _normalized(self, pairs):
        omega = self.weights.get("query_weight", np.ones(len(self.y)))
        if self.normalization == "none":
            return pairs.weight
        if self.normalization == "pairs":
            return pairs.weight / max(pairs.weight.sum(), 1e-300)
        plain = self.weights | {"query_weight": np.ones(len(self.y))}
        delta = replace(self, weights=plain, normalization="none").pairs().weight
        qid = self.qid[pairs.preferred]
        total = {q: delta[qid == q].sum() for q in set(qid)}
        total_weight = sum(omega[self.qid == q][0] for q in total if total[q] > 0)
        return np.array(
            [
                weight / (total[q] * total_weight) if weight else 0.0
                for weight, q in zip(pairs.weight, qid, strict=True)
            ]
        )


def random_labels(rng, n, kind):
    if kind == "real":
        return rng.normal(size=n)
    if kind == "distinct":
        return rng.permutation(n).astype(float)
    return rng.integers(kind, size=n).astype(float)


@st.composite
def problems(draw, losses=ALL_LOSSES, normalizations=("none",)):
    """Problems of every kind that has a path of its own through the kernels."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.one_of(st.integers(15, 60), st.integers(1, 60)))
    n_features = draw(st.integers(1, 20))
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < draw(st.floats(0.1, 1)))
    w, v = rng.normal(size=(2, n_features)) * draw(st.sampled_from([1.0, 0.1, 0.3, 4.0, 0.0]))
    margin = rng.normal(size=n) if draw(st.booleans()) else None
    y = random_labels(rng, n, draw(st.sampled_from([3, 2, 7, 8, 9, 70, "distinct", "real", 1])))
    n_labels, table = np.unique(y).size, None
    if n_labels <= MOST_MARGIN_LABELS and draw(st.booleans()):
        margin, table = None, np.abs(rng.normal(size=(n_labels, n_labels)))
    if draw(st.booleans()):  # quarters: many ties and kinks, and every score is exact
        X, w = np.round(X), np.round(4 * w) / 4
        margin, table = (
            None if values is None else np.round(4 * values) / 4 for values in (margin, table)
        )
    qid = rng.integers(draw(st.sampled_from([1, 2, 3, 5, n])), size=n)
    if draw(st.booleans()):
        qid = np.sort(qid)
    weights = {}
    if draw(st.booleans()):
        weights["sample_weight"] = rng.choice([0.0, 0.5, 1.0, 2.7, 3.0], size=n)
    if draw(st.booleans()):
        weights["query_weight"] = rng.choice([0.0, 0.3, 1.0, 2.0, 5.0], size=60)[qid]
    factors, pair_weight = random_pair_weights(
        draw(st.sampled_from([None, "gain", "matrix"])), y, rng
    )
    return Problem(
        LAYOUTS[draw(st.sampled_from(list(LAYOUTS)))](X),
        y,
        qid,
        w,
        v,
        loss=draw(st.sampled_from(losses)),
        C=draw(st.sampled_from([0.01, 1.0, 30.0])),
        width=draw(st.sampled_from([None, None, 1, 2, 9])),
        normalization=draw(st.sampled_from(normalizations)),
        threads=draw(st.sampled_from([1, 2, 5])),
        weights=weights,
        factors=factors,
        pair_weight=pair_weight,
        margin=margin,
        margin_table=table,
    )


def random_pair_weights(kind, y, rng):
    if kind == "gain":
        return gain_difference(y, np.arctan), lambda a, b: np.arctan(a) - np.arctan(b)
    if kind == "matrix":
        labels = np.unique(y)
        matrix = rng.uniform(0, 2, size=(labels.size, labels.size))
        return weight_matrix(y, matrix), lambda a, b: matrix[
            np.searchsorted(labels, a), np.searchsorted(labels, b)
        ]
    return None, None


class Reference:
    """Brute force, and how far from it rounding may lead.

    The sums may be off by 1e-10 of their terms. What kernels add and subtract again, as they see
    more than the active pairs, may leave 1e-13 of what all pairs together could give.
    """

    def __init__(self, problem, pairs=None):
        self.w, self.C = problem.w, problem.C
        self.X = problem.X.toarray() if sp.issparse(problem.X) else np.asarray(problem.X)
        self.X = self.X.astype(np.float64)
        self.pairs = problem.pairs() if pairs is None else pairs
        self.exact = BruteForce(self.X, self.pairs, problem.loss, problem.C)
        pieces = [replace(p, coefficient=abs(p.coefficient)) for p in problem.loss.pieces]
        self.terms = Loss("terms", tuple(pieces))
        keys = self.X @ problem.w - (0.0 if problem.margin is None else problem.margin)
        self.t = self.exact.differences @ problem.w - self.pairs.shift
        self.least_t = -np.ptp(keys) - 3.0 - np.abs(self.pairs.shift)

    def _allowed(self, function, active, everything):
        weight = self.C * self.pairs.weight
        return 1e-10 * np.max(active.T @ (weight * np.abs(function(self.t))), initial=0.0) + (
            1e-13 * np.max(everything.T @ (weight * np.abs(function(self.least_t))), initial=0.0)
        )

    def value(self):
        ones = np.ones((len(self.t), 1))
        allowed = self._allowed(self.terms.value, ones, ones) + 1e-10 * self.w @ self.w
        return self.exact.value(self.w), allowed

    def gradient(self):
        allowed = self._allowed(self.terms.derivative, np.abs(self.exact.differences), self._rows())
        return self.exact.gradient(self.w), allowed + 1e-10 * np.max(np.abs(self.w))

    def hessian(self):
        rows = self._rows() ** 2
        return self.exact.hessian(self.w), 1e-10 + self._allowed(
            self.terms.curvature, self.exact.differences**2, rows
        )

    def _rows(self):
        return np.abs(self.X[self.pairs.preferred]) + np.abs(self.X[self.pairs.other])


def assert_close(actual, expected_and_allowed, scale=1.0):
    expected, allowed = expected_and_allowed
    assert np.shape(actual) == np.shape(expected)
    assert np.max(np.abs(actual - expected), initial=0.0) <= allowed * scale


def assert_equals_brute_force(problem, reference=None):
    reference = reference or Reference(problem)
    objective = problem.objective()
    point = objective.at(problem.w)
    rows = objective.pairs.documents.rows
    order = slice(None) if rows is None else rows
    np.testing.assert_allclose(point.scores, (reference.X @ problem.w)[order], atol=1e-12)
    assert objective.pairs.n_pairs == len(reference.pairs.preferred)
    assert_close(point.value, reference.value())
    assert_close(point.gradient, reference.gradient())
    assert_close(objective.at(problem.w, point.scores).gradient, reference.gradient())
    expected, allowed = reference.hessian()
    assert_close(point.hess_diag(), (np.diag(expected), allowed))
    assert_close(point.hessian(), (expected, allowed))
    product, image = point.hess_vec(problem.v)
    assert_close(product, (expected @ problem.v, allowed), np.sum(np.abs(problem.v)))
    np.testing.assert_allclose(image, (reference.X @ problem.v)[order], atol=1e-12)


@settings(max_examples=200)
@given(problems())
def test_everything_equals_brute_force(problem):
    assert_equals_brute_force(problem)


@settings(max_examples=100)
@given(problems(normalizations=NORMALIZATIONS[1:]))
def test_normalizations_are_weighted_means(problem):
    reference = Reference(problem)
    if reference.pairs.weight.sum() == 0:
        return
    point = problem.objective().at(problem.w)
    assert_close(point.value, reference.value())
    assert_close(point.gradient, reference.gradient())


@settings(max_examples=50)
@given(problems(losses=list(LOSSES.values())), st.floats(-2, 2))
def test_along_a_line(problem, step):
    point = problem.objective().at(problem.w)
    direction = problem.v
    hess_times_direction, scores = point.hess_vec(direction)
    moved = point.move(step, direction, scores)
    assert_close(moved.value, Reference(replace(problem, w=problem.w + step * direction)).value())
    np.testing.assert_array_equal(moved.w, problem.w + step * direction)
    reference = Reference(problem)
    gradient, allowed = reference.gradient()
    size = np.sum(np.abs(direction))
    assert_close(point.slope(direction, scores), (gradient @ direction, allowed), size)
    hessian, allowed = reference.hessian()
    expected = direction @ hessian @ direction
    assert_close(point.curvature(direction, scores), (expected, allowed), size**2)
    assert point.curvature(direction, scores) == pytest.approx(direction @ hess_times_direction)


def test_a_read_only_memory_map_is_read_in_place(tmp_path):
    rng = np.random.default_rng(0)
    written = np.memmap(tmp_path / "X", np.float32, "w+", shape=(40, 11))
    written[:] = rng.normal(size=(40, 11))
    written.flush()
    X = np.memmap(tmp_path / "X", np.float32, "r", shape=(40, 11))
    problem = Problem(X, rng.normal(size=40), rng.integers(3, size=40), *rng.normal(size=(2, 11)))
    assert_equals_brute_force(problem)


def comparison_pairs(problem):
    """All pairs by one comparison of all documents; no weights."""
    preferred, other = np.nonzero(
        (problem.y[:, None] > problem.y) & (problem.qid[:, None] == problem.qid)
    )
    d = np.zeros(len(problem.y)) if problem.margin is None else problem.margin
    return ExplicitPairs(preferred, other, np.ones(len(preferred)), d[preferred] - d[other])


def large(rng, n, n_features, labels, layout="float64", **kwargs):
    X = rng.normal(size=(n, n_features))
    w, v = rng.normal(size=(2, n_features))
    qid = kwargs.pop("qid", np.zeros(n, dtype=int))
    problem = Problem(LAYOUTS[layout](X), random_labels(rng, n, labels), qid, w, v, **kwargs)
    return problem, Reference(problem, comparison_pairs(problem))


@pytest.mark.parametrize(("n", "layout"), [(3000, "float32"), (1200, "csr int32")])
def test_a_query_that_is_split_over_blocks(n, layout):
    """More than 512 documents of one query, levels in a tree of several layers."""
    assert_equals_brute_force(*large(np.random.default_rng(1), n, 2, "real", layout))


@pytest.mark.parametrize("levels", [2, 7, 8, 64, 65, 513])
def test_queries_of_hundreds_of_documents(levels):
    """More than a chunk of 64 documents for direct counting, every depth of the tree."""
    rng = np.random.default_rng(levels)
    qid = rng.integers(2, size=1000)
    assert_equals_brute_force(*large(rng, 1000, 3, levels, qid=qid, loss=LOSSES["huber"]))


def test_a_query_that_does_not_fit_in_cache():
    """More than 8 MB, but not more documents than a block."""
    problem, reference = large(np.random.default_rng(2), 30, 36_000, 3)
    point = problem.objective().at(problem.w)
    assert_close(point.value, reference.value())
    assert_close(point.gradient, reference.gradient())
    slope = reference.pairs.weight * problem.loss.curvature(reference.t)
    differences = reference.exact.differences
    product, _ = point.hess_vec(problem.v)
    expected = problem.v + problem.C * differences.T @ (slope * (differences @ problem.v))
    np.testing.assert_allclose(product, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("layout", ["float64", "csr int32", "csr int64"])
def test_columns_beyond_those_with_partial_sums(layout, threads):
    """More than 65,536 features: each thread owns a range of columns."""
    rng = np.random.default_rng(3)
    n_features = 70_001
    X = sp.random_array(
        (60, n_features), density=2e-3, random_state=rng, data_sampler=rng.normal
    ).tolil()
    X[:, 69_990] = rng.normal(size=(60, 1))
    X[:3, 0] = 1.5
    y, qid = rng.integers(4, size=60).astype(float), rng.integers(5, size=60)
    w, v = rng.normal(size=(2, n_features))
    problem = Problem(LAYOUTS[layout](X.toarray()), y, qid, w, v, threads=threads)
    reference = Reference(problem)
    point = problem.objective().at(w)
    assert_close(point.value, reference.value())
    assert_close(point.gradient, reference.gradient())
    weight = problem.C * problem.loss.curvature(reference.t)
    differences = reference.exact.differences
    expected = v + differences.T @ (weight * (differences @ v))
    np.testing.assert_allclose(point.hess_vec(v)[0], expected, atol=1e-10 * np.abs(expected).max())
    diagonal = 1.0 + np.einsum("pj,pj,p->j", differences, differences, weight)
    np.testing.assert_allclose(point.hess_diag(), diagonal, rtol=1e-10)


@pytest.mark.parametrize("width", [None, 1, 3])
@pytest.mark.parametrize("labels", [3, "real"])
def test_diagonal_of_a_sparse_matrix_with_a_dense_column(labels, width):
    """Long columns use the counters, short ones look at each pair of entries."""
    rng = np.random.default_rng(4)
    X = sp.random_array((300, 30), density=0.02, random_state=rng).tolil()
    X[:, 3] = rng.normal(size=(300, 1))
    X[10, 4] = 0.0
    y = random_labels(rng, 300, labels)
    sample_weight = rng.uniform(size=300)
    problem = Problem(
        X.tocsr(),
        y,
        np.zeros(300, dtype=int),
        *rng.normal(size=(2, 30)),
        loss=LOSSES["huber"],
        width=width,
        weights={"sample_weight": sample_weight},
        factors=gain_difference(y),
        pair_weight=lambda a, b: a - b,
    )
    levels = np.unique(y, return_inverse=True)[1]
    step = levels[:, None] - levels
    preferred, other = np.nonzero((step > 0) & (step <= (width or len(y))))
    weight = sample_weight[preferred] * sample_weight[other] * (y[preferred] - y[other])
    pairs = ExplicitPairs(preferred, other, weight, np.zeros(len(weight)))
    assert_equals_brute_force(problem, Reference(problem, pairs))


@pytest.mark.parametrize("layout", ["float64", "csr int32"])
def test_a_common_offset_of_a_feature_keeps_the_digits(layout):
    """Pairs see differences only, so that 1e4 on every document changes nothing but rounding."""
    rng = np.random.default_rng(5)
    X = np.round(rng.normal(size=(50, 4)), 3)
    y, w, v = rng.integers(3, size=50).astype(float), *rng.normal(size=(2, 4))
    qid = rng.integers(4, size=50)
    plain = Problem(LAYOUTS[layout](X), y, qid, w, v).objective().at(w)
    shifted = Problem(LAYOUTS[layout](X + 1e4), y, qid, w, v).objective().at(w)
    np.testing.assert_allclose(shifted.value, plain.value, rtol=1e-9)
    for name in ("hessian", "hess_diag"):
        expected = getattr(plain, name)()
        actual = getattr(shifted, name)()
        np.testing.assert_allclose(actual, expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("width", [None, 1, 2])
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_weight_two_equals_a_repeated_row(normalization, width):
    rng = np.random.default_rng(6)
    X, y, qid = rng.normal(size=(40, 5)), rng.integers(4, size=40).astype(float), np.arange(40) % 6
    times = rng.integers(1, 4, size=40)
    w, v = rng.normal(size=(2, 5))
    common = {"normalization": normalization, "width": width}
    weighted = Problem(X, y, qid, w, v, weights={"sample_weight": times.astype(float)}, **common)
    repeated = Problem(*(np.repeat(a, times, axis=0) for a in (X, y, qid)), w, v, **common)
    a, b = weighted.objective().at(w), repeated.objective().at(w)
    assert a.value == pytest.approx(b.value, rel=1e-12)
    np.testing.assert_allclose(a.gradient, b.gradient, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(a.hess_vec(v)[0], b.hess_vec(v)[0], rtol=1e-11, atol=1e-12)


def test_features_so_large_that_sums_overflow_are_named():
    rng = np.random.default_rng(7)
    X = np.column_stack([rng.normal(size=20), 1e200 * rng.normal(size=20)])
    problem = Problem(X, rng.normal(size=20), np.zeros(20), *np.ones((2, 2)))
    for name in solver_names(regularized=False):
        solver = SOLVERS[name]
        loss = next(loss for loss in LOSSES.values() if solver.takes(loss, None))
        with pytest.raises(ValueError, match=r"X\[:, \d\].* overflow"):
            solver.minimize(replace(problem, loss=loss).objective(), w0=np.full(2, 1e150))


def test_scores_that_are_not_finite_give_nan_and_no_crash():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(20, 3))
    objective = Problem(X, rng.normal(size=20), np.zeros(20), *np.ones((2, 3))).objective()
    for bad in (np.nan, np.inf, -np.inf):
        point = objective.at(np.ones(3), np.where(np.arange(20) == 4, bad, 1.0))
        assert np.isnan(point.value)
        assert np.isnan(point.gradient).all()
        assert np.isfinite(point.hessian()).all()
        assert np.isfinite(point.hess_diag()).all()


def test_points_of_one_objective_do_not_disturb_each_other():
    rng = np.random.default_rng(8)
    problem = Problem(
        rng.normal(size=(30, 4)), rng.normal(size=30), np.zeros(30), *rng.normal(size=(2, 4))
    )
    objective = problem.objective()
    point = objective.at(problem.w)
    before = point.hess_vec(problem.v)[0]
    for w in rng.normal(size=(5, 4)):
        objective.at(w).hess_vec(problem.v)
    np.testing.assert_array_equal(point.hess_vec(problem.v)[0], before)


def test_sweeps_are_counted():
    X, y, qid = make_ranking(5, 10, 16, random_state=0)
    objective = make_objective(RankingData(X, y, qid), LOSSES["squared_hinge"])
    point = objective.at(np.ones(16))
    _ = point.gradient
    assert objective.sweeps == 1
    moved = point.move(0.5, np.ones(16), point.scores)
    assert objective.sweeps == 1
    _ = moved.gradient
    point.hess_vec(np.ones(16))
    assert objective.sweeps == 3


def sampled_rows(objective, fraction, seed=0):
    return set(objective.sample(fraction, seed).pairs.documents.rows.tolist())


def ranking_objective(n_queries, docs_per_query, **kwargs):
    X, y, qid = make_ranking(n_queries, docs_per_query, 4, random_state=1)
    return make_objective(RankingData(X, y, qid), LOSSES["squared_hinge"], **kwargs)


SHAPES = {"many queries": (2000, (1, 20)), "one query": (1, 20_000), "some queries": (100, 200)}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("fraction", [0.05, 0.3])
def test_a_sample_has_about_its_share_of_the_documents(shape, fraction):
    objective = ranking_objective(*shape)
    sample = objective.sample(fraction, seed=3)
    assert 0.7 * fraction < sample.pairs.n_documents / objective.pairs.n_documents < 1.3 * fraction
    assert sample.fraction == sample.pairs.n_documents / objective.pairs.n_documents


@pytest.mark.parametrize("n_parts", [2, 4])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_parts_of_a_sample_have_no_document_in_common(shape, n_parts):
    assert_parts_are_disjoint_estimates(ranking_objective(*shape), n_parts)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_samples_of_one_seed_are_nested(shape):
    objective = ranking_objective(*shape)
    samples = [sampled_rows(objective, fraction) for fraction in (0.02, 0.1, 0.3, 0.8)]
    for smaller, larger in pairwise(samples):
        assert smaller <= larger
    assert sampled_rows(objective, 0.3, seed=1) != samples[2]


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("pair_selection", ["all", "adjacent"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_sample_estimates_the_objective(shape, pair_selection, normalization):
    objective = ranking_objective(
        *shape, pair_selection=pair_selection, normalization=normalization
    )
    assert_samples_estimate(objective)


def test_a_sample_may_be_empty():
    sample = ranking_objective(3, 5).sample(1e-9, seed=0)
    assert sample.pairs.n_documents == 0
    assert sample.at(np.ones(4)).value == 2.0
    np.testing.assert_array_equal(sample.at(np.ones(4)).hessian(), np.eye(4))


def test_a_sample_of_a_sample_keeps_weights_and_margins():
    rng = np.random.default_rng(9)
    X, y, qid = make_ranking(300, 30, 3, random_state=2)
    order = rng.permutation(len(y))
    X, y, qid = X[order], y[order], qid[order]
    data = RankingData(X, y, qid, sample_weight=rng.uniform(0.5, 1.5, size=len(y)))
    objective = make_objective(
        data,
        LOSSES["huber"],
        pair_weights=gain_difference(y),
        margins=0.1 * y,
        threads=2,
    )
    w = np.array([0.2, 0.1, -0.3])
    estimates = [objective.sample(0.6, seed).sample(0.6, seed + 1).at(w).value for seed in range(5)]
    assert np.mean(estimates) == pytest.approx(objective.at(w).value, rel=0.1)


@pytest.mark.parametrize("n_levels", [2, 5, 7])
def test_values_keep_their_digits_where_scores_are_far_apart(n_levels):
    """Few levels, scores over a wide range, few active pairs: sums of all scores would cancel."""
    rng = np.random.default_rng(9)
    y = rng.integers(0, n_levels, 500).astype(float)
    scores = 3e4 * y + rng.normal(size=500)
    objective = make_objective(RankingData(scores[:, None], y), LOSSES["squared_hinge"])
    assert objective.at(np.ones(1)).loss_value == 0.0
    worst, best = np.argmax(scores), np.argmin(scores)
    scores[best] = scores[worst] + 10.0  # now the lowest label has the highest score
    slack = np.maximum(0.0, 1 - (scores[y > y[best]] - scores[best]))
    value = make_objective(RankingData(scores[:, None], y), LOSSES["squared_hinge"]).at(np.ones(1))
    assert value.loss_value == pytest.approx(np.sum(slack**2), rel=1e-8)


@pytest.mark.parametrize("ridge", [0.0, 0.25])
def test_the_ridge_weighs_the_regulariser(ridge):
    X, y, qid = make_ranking(6, 10, 5, random_state=0)
    data = RankingData(X, y, qid)
    w, v = np.random.default_rng(0).normal(size=(2, 5))
    usual = make_objective(data, LOSSES["squared_hinge"]).at(w)
    point = make_objective(data, LOSSES["squared_hinge"], ridge=ridge).at(w)
    less = 1.0 - ridge
    assert point.value == pytest.approx(usual.value - 0.5 * less * w @ w)
    np.testing.assert_allclose(point.gradient, usual.gradient - less * w)
    np.testing.assert_allclose(point.hess_vec(v)[0], usual.hess_vec(v)[0] - less * v)
    np.testing.assert_allclose(point.hessian(), usual.hessian() - less * np.eye(5))
    np.testing.assert_allclose(point.hess_diag(), usual.hess_diag() - less)
    assert point.slope(v, X @ v) == pytest.approx(point.gradient @ v)
    assert point.curvature(v, X @ v) == pytest.approx(v @ point.hessian() @ v)
    exact = np.inf if ridge == 0 else 0.5 * point.gradient @ point.gradient / ridge
    assert exact <= point.gap <= 1.000001 * exact


def test_another_loss_on_the_same_pairs():
    X, y, qid = make_ranking(6, 10, 5, random_state=0)
    data = RankingData(X, y, qid, query_weight=np.arange(1.0, 7.0))
    w = np.ones(5)
    usual = make_objective(data, LOSSES["squared_hinge"], C=0.5, normalization="query")
    other = usual.with_loss(HINGE)
    expected = make_objective(data, HINGE, C=0.5, normalization="query").at(w)
    assert other.at(w).value == expected.value
    np.testing.assert_array_equal(other.at(w).gradient, expected.gradient)
    assert usual.loss is LOSSES["squared_hinge"]


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_some_features_alone(layout):
    X, y, qid = make_ranking(10, (3, 15), 9, random_state=0)
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    order = np.random.default_rng(0).permutation(len(y))  # rows of a query are not together
    X, y, qid = X[order], y[order], qid[order]
    chosen = np.array([1, 4, 8])
    whole = make_objective(RankingData(layout(X), y, qid), LOSSES["huber"])
    part = whole.restrict(chosen)
    alone = make_objective(RankingData(layout(X[:, chosen]), y, qid), LOSSES["huber"])
    w = np.array([0.3, -1.0, 0.5])
    np.testing.assert_array_equal(part.at(w).gradient, alone.at(w).gradient)
    np.testing.assert_array_equal(part.at(w).hessian(), alone.at(w).hessian())
    assert part.n_features == 3
    for j in chosen:
        np.testing.assert_array_equal(whole.design.column(j), whole.scores(np.eye(9)[j]))
    before = whole.sweeps
    part.scores(w)
    share = 3 / 9 if layout is np.asarray else np.count_nonzero(X[:, chosen]) / np.count_nonzero(X)
    assert whole.sweeps - before == pytest.approx(share)


def test_features_outside_the_matrix_are_refused():
    X, y, qid = make_ranking(3, 5, 4, random_state=0)
    objective = make_objective(RankingData(X, y, qid), LOSSES["huber"])
    with pytest.raises(ValueError, match="must lie inside the matrix"):
        objective.design.column(4)
    for columns in ([0, 4], [2, 1], [-1]):
        with pytest.raises(ValueError, match="increase strictly"):
            objective.restrict(np.array(columns))


def test_where_the_sort_begins_does_not_change_the_bits():
    X, y, qid = make_ranking(30, (2, 90), 4, random_state=1)
    objective = make_objective(RankingData(np.round(X, 1), y, qid), LOSSES["huber"])
    w, other, v = np.random.default_rng(0).normal(size=(3, 4))
    alone, like = objective.at(w), objective.at(w, like=objective.at(other))
    assert like.value == alone.value
    np.testing.assert_array_equal(like.score_gradient, alone.score_gradient)
    np.testing.assert_array_equal(like.gradient, alone.gradient)
    np.testing.assert_array_equal(like.hess_vec(v)[0], alone.hess_vec(v)[0])
