"""The objective of pairs that are listed, against brute force over the same pairs."""

import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.brute_force import ExplicitPairs
from helpers.objectives import (
    assert_parts_are_disjoint_estimates,
    assert_samples_estimate,
    make_objective,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from test_objective import (
    ALL_LOSSES,
    HINGE,
    LAYOUTS,
    Reference,
    assert_close,
    assert_equals_brute_force,
)

import marginrank
from marginrank import RankingData, make_ranking
from marginrank.data.pair_lists import PairList
from marginrank.fit.inputs import choose_pairs
from marginrank.models.parameters import NORMALIZATIONS
from marginrank.objective import listed_pairs
from marginrank.objective.listed_pairs import ListedPairs
from marginrank.objective.losses import LOSSES, Loss
from marginrank.objective.objective import Objective
from marginrank.operators.native import as_native

SQUARED_HINGE = LOSSES["squared_hinge"]


@dataclass
class Problem:
    """Listed pairs with all weights, and a place to look at them from."""

    X: Any
    listed: np.ndarray
    w: np.ndarray
    v: np.ndarray
    qid: np.ndarray | None = None
    weight: np.ndarray | None = None
    loss: Loss = SQUARED_HINGE
    C: float = 0.7
    normalization: str = "none"
    threads: int = 2
    weights: dict = field(default_factory=dict)  # sample_weight and query_weight, both by row
    margin: np.ndarray | None = None

    @property
    def n(self):
        return self.X.shape[0]

    def objective(self):
        return make_objective(
            RankingData(self.X, np.zeros(self.n), self.qid, **self.weights),
            self.loss,
            C=self.C,
            normalization=self.normalization,
            pairs=PairList(self.listed, self.weight),
            margins=self.margin,
            threads=self.threads,
        )

    def pairs(self):
        preferred, other = self.listed.T
        a = self.weights.get("sample_weight", np.ones(self.n))
        omega = self.weights.get("query_weight", np.ones(self.n))[preferred]
        delta = a[preferred] * a[other] * (1.0 if self.weight is None else self.weight)
        d = np.zeros(self.n) if self.margin is None else self.margin
        query = np.zeros(self.n, dtype=int) if self.qid is None else self.qid
        weight = normalized(self.normalization, delta, omega, query[preferred])
        return ExplicitPairs(preferred, other, weight, d[preferred] - d[other])


def normalized(normalization, delta, omega, query):
    weight = delta * omega
    if normalization == "none" or not weight.any():
        return weight
    if normalization == "pairs":
        return weight / weight.sum()
    total = {q: delta[query == q].sum() for q in query[weight > 0]}
    queries = sum(omega[query == q][0] for q in total)
    return np.array([w and w / (total[q] * queries) for w, q in zip(weight, query, strict=True)])


def random_pairs(rng, qid, count):
    """Draw pairs of two rows of one query; some are repeated, some rows are in none."""
    i, j = rng.integers(len(qid), size=(2, 40 * count))
    fine = np.flatnonzero((qid[i] == qid[j]) & (i != j))[:count]
    pairs = np.column_stack([i[fine], j[fine]])
    common = np.argmax(np.bincount(qid))
    return pairs if len(pairs) else np.flatnonzero(qid == common)[None, :2]


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, n_features = draw(st.integers(2, 40)), draw(st.integers(1, 20))
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < draw(st.floats(0.1, 1)))
    w, v = rng.normal(size=(2, n_features)) * draw(st.sampled_from([1.0, 0.1, 4.0, 0.0]))
    margin = rng.normal(size=n) if draw(st.booleans()) else None
    if draw(st.booleans()):  # quarters: many ties and kinks, and every score is exact
        X, w = np.round(X), np.round(4 * w) / 4
        margin = None if margin is None else np.round(4 * margin) / 4
    qid = rng.integers(draw(st.sampled_from([1, 2, 5])), size=n)
    qid[:2] = qid[0]  # at least one pair
    qid = np.sort(qid) if draw(st.booleans()) else qid
    listed = random_pairs(rng, qid, draw(st.sampled_from([1, 3, 30, 200])))
    weights = {}
    if draw(st.booleans()):
        weights["sample_weight"] = rng.choice([0.0, 0.5, 1.0, 2.7], size=n)
    if draw(st.booleans()):
        weights["query_weight"] = rng.choice([0.0, 0.3, 1.0, 5.0], size=5)[qid]
    one_query = not weights and draw(st.booleans())
    return Problem(
        LAYOUTS[draw(st.sampled_from(list(LAYOUTS)))](X),
        listed,
        w,
        v,
        qid=None if one_query else qid,
        weight=rng.choice([0.0, 0.25, 1.0, 3.0], size=len(listed)) if draw(st.booleans()) else None,
        loss=draw(st.sampled_from(ALL_LOSSES)),
        C=draw(st.sampled_from([0.01, 1.0, 30.0])),
        normalization=draw(st.sampled_from(NORMALIZATIONS)),
        threads=draw(st.sampled_from([1, 2, 5])),
        weights=weights,
        margin=margin,
    )


@settings(max_examples=150)
@given(problems())
def test_everything_equals_brute_force(problem):
    assert_equals_brute_force(problem)


@settings(max_examples=30)
@given(problems(), st.floats(-2, 2))
def test_along_a_line(problem, step):
    point = problem.objective().at(problem.w)
    _, scores = point.hess_vec(problem.v)
    moved = point.move(step, problem.v, scores)
    problem.w = problem.w + step * problem.v
    assert_close(moved.value, Reference(problem).value())
    assert_close(moved.gradient, Reference(problem).gradient())


@pytest.mark.parametrize("layout", ["float32", "csr int32"])
@pytest.mark.parametrize("n_queries", [1, 3, 300])
def test_many_blocks(n_queries, layout):
    """Long queries, which threads share, and whole queries of many blocks."""
    rng = np.random.default_rng(n_queries)
    qid = rng.integers(n_queries, size=3000)
    listed = random_pairs(rng, qid, 6000)
    w, v = rng.normal(size=(2, 3))
    X = LAYOUTS[layout](rng.normal(size=(3000, 3)))
    problem = Problem(X, listed, w, v, qid, loss=LOSSES["huber"], threads=3)
    assert_equals_brute_force(problem)


@pytest.mark.parametrize("layout", ["float64", "csr int32"])
def test_columns_beyond_those_with_partial_sums(layout):
    rng = np.random.default_rng(3)
    n_features = 70_001
    X = sp.random_array(
        (60, n_features), density=2e-3, random_state=rng, data_sampler=rng.normal
    ).tolil()
    X[:, 69_990] = rng.normal(size=(60, 1))
    qid = rng.integers(5, size=60)
    w, v = rng.normal(size=(2, n_features))
    problem = Problem(LAYOUTS[layout](X.toarray()), random_pairs(rng, qid, 100), w, v, qid)
    reference = Reference(problem)
    point = problem.objective().at(w)
    assert_close(point.value, reference.value())
    assert_close(point.gradient, reference.gradient())
    curvature = problem.C * problem.loss.curvature(reference.t)
    differences = reference.exact.differences
    expected = v + differences.T @ (curvature * (differences @ v))
    np.testing.assert_allclose(point.hess_vec(v)[0], expected, atol=1e-10 * np.abs(expected).max())
    diagonal = 1.0 + np.einsum("pj,pj,p->j", differences, differences, curvature)
    np.testing.assert_allclose(point.hess_diag(), diagonal, rtol=1e-10)


def all_pairs(y, qid):
    return np.argwhere((y[:, None] > y) & (qid[:, None] == qid))


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("loss", ALL_LOSSES, ids=lambda loss: loss.name)
def test_the_list_of_all_pairs_equals_the_labels(loss, normalization):
    rng = np.random.default_rng(0)
    X, y, qid = make_ranking(20, (3, 20), 5, shuffle=True, random_state=0)
    weights = {"sample_weight": rng.uniform(size=len(y)), "query_weight": rng.uniform(size=20)}
    data = RankingData(X, y, qid, **weights)
    kind = {"normalization": normalization, "margins": 0.1 * y, "threads": 2}
    listed = make_objective(data, loss, pairs=PairList(all_pairs(y, qid)), **kind)
    labelled = make_objective(data, loss, **kind)
    assert listed.pairs.n_pairs == labelled.pairs.n_pairs
    w, v = rng.normal(size=(2, 5))
    a, b = listed.at(w), labelled.at(w)
    assert a.value == pytest.approx(b.value, rel=1e-12)
    np.testing.assert_allclose(a.gradient, b.gradient, rtol=1e-9)
    np.testing.assert_allclose(a.hess_vec(v)[0], b.hess_vec(v)[0], rtol=1e-9)


def random_problem(rng, n=30, m=40, **kwargs):
    listed = random_pairs(rng, np.zeros(n, dtype=int), m)
    return Problem(rng.normal(size=(n, 3)), listed, *rng.normal(size=(2, 3)), **kwargs)


def test_a_pair_listed_twice_counts_twice():
    problem = random_problem(np.random.default_rng(1))
    times = np.random.default_rng(1).integers(1, 4, size=len(problem.listed))
    problem.weight = times.astype(float)
    weighted = problem.objective().at(problem.w)
    problem.listed, problem.weight = np.repeat(problem.listed, times, axis=0), None
    repeated = problem.objective().at(problem.w)
    assert weighted.value == pytest.approx(repeated.value, rel=1e-12)
    np.testing.assert_allclose(weighted.gradient, repeated.gradient, rtol=1e-11)


def test_only_documents_of_pairs_that_count_are_visited():
    rng = np.random.default_rng(2)
    qid = np.array([0, 1, 0, 1, 2, 2, 0, 2])
    listed = np.array([[0, 2], [2, 6], [1, 3], [4, 5]])
    problem = Problem(
        rng.normal(size=(8, 3)),
        listed,
        *rng.normal(size=(2, 3)),
        qid=qid,
        weight=np.array([1.0, 0.0, 2.0, 1.0]),
        weights={"query_weight": np.array([1.0, 3.0, 0.0])[qid]},
    )
    objective = problem.objective()
    assert objective.pairs.documents.rows.tolist() == [0, 2, 1, 3]
    assert objective.pairs.n_documents == objective.n_active_documents == 4
    assert objective.pairs.n_queries == 2
    assert objective.pairs.n_pairs == 4
    assert objective.pairs.has_weight
    assert_equals_brute_force(problem)
    problem.weight[:] = 0.0
    assert not problem.objective().pairs.has_weight
    assert problem.objective().at(np.ones(3)).value == 1.5


def test_a_list_that_fits_is_not_copied():
    problem = random_problem(np.random.default_rng(3), n=5, m=100)
    objective = problem.objective()
    assert np.shares_memory(objective.pairs.pairs, problem.listed)
    other = objective.with_loss(HINGE)
    assert other.pairs is objective.pairs
    problem.loss = HINGE
    assert other.at(problem.w).value == problem.objective().at(problem.w).value


@pytest.mark.parametrize("n_queries", [1, 3])
@pytest.mark.parametrize("n_pairs", [900, 2500, 6000])
def test_bundles_hold_the_same_pairs(n_queries, n_pairs, monkeypatch):
    monkeypatch.setattr(listed_pairs, "LONG_QUERY", 100)
    rng = np.random.default_rng(n_pairs + n_queries)
    X, qid = rng.normal(size=(4000, 4)), np.sort(rng.integers(0, n_queries, 4000))
    listed = random_pairs(rng, qid, n_pairs)
    weight, margins = rng.random(len(listed)), rng.normal(size=4000)
    data = RankingData(X, np.zeros(4000), qid)
    pairs = ListedPairs.from_data(data, PairList(listed, weight), margins=margins, threads=1)
    whole = Objective(design=as_native(X).design(pairs, 1), loss=LOSSES["huber"])
    bundled = whole.on(pairs=pairs.bundled())
    assert bundled.pairs.n_queries > pairs.n_queries
    query = bundled.pairs.documents.query_of_document[bundled.pairs.pairs]
    np.testing.assert_array_equal(query[:, 0], query[:, 1])
    rows = bundled.pairs.documents.rows[bundled.pairs.pairs]
    np.testing.assert_array_equal(rows, pairs.documents.rows[pairs.pairs])
    a, b, v = whole.at(np.ones(4)), bundled.at(np.ones(4)), rng.normal(size=4)
    assert a.value == pytest.approx(b.value, rel=1e-12)
    np.testing.assert_allclose(a.gradient, b.gradient, rtol=1e-9)
    np.testing.assert_allclose(a.hess_vec(v)[0], b.hess_vec(v)[0], rtol=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_give_nan_and_no_crash(bad):
    objective = random_problem(np.random.default_rng(4), n=10, m=90).objective()
    point = objective.at(np.ones(3), np.where(np.arange(10) == 4, bad, 1.0))
    assert np.isnan(point.value)
    assert np.isnan(point.gradient).all()
    np.testing.assert_array_equal(point.hessian(), np.eye(3))
    np.testing.assert_array_equal(point.hess_diag(), np.ones(3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pair_selection": "adjacent"}, "pair_selection='adjacent'.*pairs"),
        ({"pair_cost": "gain"}, "pair_cost.*pairs"),
        ({"margin": "label"}, "margin.*pairs"),
        ({"propensity": np.ones(30)}, "propensity.*pairs"),
    ],
)
def test_what_has_no_meaning_for_listed_pairs_is_refused(options, message):
    problem = random_problem(np.random.default_rng(5))
    data = RankingData(problem.X, np.zeros(30))
    listed = PairList(problem.listed)
    with pytest.raises(ValueError, match=message):
        choose_pairs(data, SQUARED_HINGE, pairs=listed, **options)


@pytest.mark.parametrize(
    ("listed", "source", "message"),
    [
        ([[0, 3], [2, 4], [0, 1]], None, r"pairs\[1\] joins row 2 of query a and row 4 of query b"),
        ([[0, 4]], "p.txt", r"p\.txt:1 joins row 0 of query a"),
    ],
)
def test_a_pair_across_queries_is_named(listed, source, message):
    data = RankingData(np.eye(5), np.zeros(5), list("abaab"))
    with pytest.raises(ValueError, match=message):
        make_objective(data, SQUARED_HINGE, pairs=PairList(np.array(listed), None, source))


# Samples


def sampled_objective(n_queries, docs_per_query, n_pairs, **kwargs):
    rng = np.random.default_rng(n_queries)
    X, _, qid = make_ranking(n_queries, docs_per_query, 4, random_state=1)
    listed = random_pairs(rng, qid, n_pairs) if n_queries < 10 else chained(rng, qid, n_pairs)
    data = RankingData(X, np.zeros(len(qid)), qid)
    weight = rng.uniform(0.5, 2.0, size=len(listed))
    return make_objective(data, SQUARED_HINGE, pairs=PairList(listed, weight), **kwargs)


def chained(rng, qid, n_pairs):
    """Pairs of a row and one of the next few, of many small queries."""
    i = rng.integers(len(qid) - 3, size=3 * n_pairs)
    j = i + rng.integers(1, 4, size=i.size)
    fine = np.flatnonzero(qid[i] == qid[j])[:n_pairs]
    return np.column_stack([i[fine], j[fine]])


SHAPES = {
    "many queries": (2000, (2, 20), 20_000),
    "one query": (1, 10_000, 10_000),
    "one query, many pairs": (1, 3_000, 60_000),
}


@pytest.mark.parametrize("fraction", [0.05, 0.3])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_sample_has_about_its_share_of_the_documents(shape, fraction):
    objective = sampled_objective(*shape)
    sample = objective.sample(fraction, seed=3)
    assert 0.7 * fraction < sample.pairs.n_documents / objective.pairs.n_documents < 1.3 * fraction
    assert sample.fraction == sample.pairs.n_documents / objective.pairs.n_documents
    assert sample.n_active_documents == sample.pairs.n_documents
    assert 0 < sample.pairs.n_pairs < objective.pairs.n_pairs


def pairs_of(objective):
    pairs = objective.pairs.pairs
    return {tuple(pair) for pair in objective.pairs.documents.rows[pairs].tolist()}


@pytest.mark.parametrize("n_parts", [2, 4])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_parts_of_a_sample_have_no_document_in_common(shape, n_parts):
    assert_parts_are_disjoint_estimates(sampled_objective(*shape), n_parts)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_samples_of_one_seed_are_nested(shape):
    objective = sampled_objective(*shape)
    samples = [pairs_of(objective.sample(fraction, 0)) for fraction in (0.02, 0.1, 0.3, 0.8)]
    for smaller, larger in pairwise(samples):
        assert smaller < larger
    assert pairs_of(objective.sample(0.3, seed=1)) != samples[2]


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_sample_estimates_the_objective(shape, normalization):
    objective = sampled_objective(*shape, normalization=normalization)
    assert_samples_estimate(objective)


def test_a_sample_of_a_sample_keeps_weights_and_margins():
    rng = np.random.default_rng(9)
    problem = random_problem(rng, n=4000, m=8000, margin=0.1 * rng.normal(size=4000))
    problem.weights["sample_weight"] = rng.uniform(0.5, 1.5, size=4000)
    objective = problem.objective()
    estimates = [
        objective.sample(0.6, seed).sample(0.6, seed + 1).at(problem.w).value for seed in range(5)
    ]
    assert np.mean(estimates) == pytest.approx(objective.at(problem.w).value, rel=0.1)


def test_a_sample_may_be_empty_or_everything():
    objective = random_problem(np.random.default_rng(6)).objective()
    empty = objective.sample(1e-9, seed=0)
    assert empty.pairs.n_documents == 0
    assert empty.at(np.ones(3)).value == 1.5
    np.testing.assert_array_equal(empty.at(np.ones(3)).hessian(), np.eye(3))
    assert objective.sample(1.0, seed=0).at(np.ones(3)).value == objective.at(np.ones(3)).value


def test_nothing_else_makes_native_pairs():
    makes = re.compile(r"_core\.(Pairs|Incidence)[.(]")
    sources = Path(marginrank.__file__).parent.rglob("*.py")
    makers = {path.name for path in sources if makes.search(path.read_text(encoding="utf-8"))}
    assert makers == {"level_pairs.py", "listed_pairs.py"}
