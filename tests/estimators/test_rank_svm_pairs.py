"""RankSVM on explicit preference pairs."""

import gzip

import numpy as np
import pytest
import scipy.sparse as sp

from marginrank import RankSVM, load_pairs, make_ranking
from marginrank.objective.losses import LOSSES

X, Y, QID = make_ranking(30, (5, 25), 6, shuffle=True, random_state=0)
PAIRS = np.argwhere((QID[:, None] == QID) & (Y[:, None] > Y))
SOLVERS = ["newton", "tron"]


@pytest.mark.parametrize("normalization", ["none", "pairs", "query"])
@pytest.mark.parametrize(
    "loss", [name for name, loss in LOSSES.items() if loss.smooth and not loss.error]
)
@pytest.mark.parametrize("solver", SOLVERS)
def test_all_pairs_equal_the_labels(solver, loss, normalization):
    C = 0.1 if normalization == "none" else 100.0
    parameters = {"C": C, "solver": solver, "loss": loss, "normalization": normalization}
    labels = RankSVM(tol=1e-11, **parameters).fit(X, Y, qid=QID)
    listed = RankSVM(tol=1e-11, **parameters).fit(X, pairs=PAIRS, qid=QID)
    assert listed.n_pairs_ == labels.n_pairs_ == len(PAIRS)
    assert listed.objective_ == pytest.approx(labels.objective_, rel=1e-8)
    np.testing.assert_allclose(listed.coef_, labels.coef_, atol=1e-8)


def test_queries_are_not_needed():
    with_queries = RankSVM(tol=1e-11).fit(X, pairs=PAIRS, qid=QID)
    without = RankSVM(tol=1e-11).fit(X, pairs=PAIRS)
    assert without.objective_ == pytest.approx(with_queries.objective_, rel=1e-10)
    np.testing.assert_allclose(without.coef_, with_queries.coef_, atol=1e-8)


def test_the_order_of_the_pairs_does_not_matter():
    order = np.random.default_rng(0).permutation(len(PAIRS))
    model = RankSVM(tol=1e-11).fit(X, pairs=PAIRS)
    np.testing.assert_allclose(
        RankSVM(tol=1e-11).fit(X, pairs=PAIRS[order]).coef_, model.coef_, atol=1e-8
    )


def test_a_pair_matrix_is_another_way_to_give_pairs():
    rows = np.repeat(np.arange(len(PAIRS)), 2)
    A = sp.csr_array((np.tile([1.0, -1.0], len(PAIRS)), (rows, PAIRS.ravel())))
    coef = RankSVM().fit(X, pairs=PAIRS).coef_
    np.testing.assert_array_equal(RankSVM().fit(X, pairs=A).coef_, coef)


def test_labels_are_not_looked_at():
    coef = RankSVM().fit(X, pairs=PAIRS).coef_
    unknown = np.full(len(Y), np.nan)
    np.testing.assert_array_equal(RankSVM().fit(X, unknown, pairs=PAIRS).coef_, coef)


def test_a_single_pair():
    """ℓ = (1 − 4w)² for rows 3 and −1: w + 2·(−4)(1 − 4w) = 0."""
    model = RankSVM(tol=1e-12).fit([[-1.0], [7.0], [3.0]], pairs=[(2, 0)])
    assert model.coef_ == pytest.approx([8 / 33], rel=1e-6)
    assert model.n_pairs_ == 1


@pytest.mark.parametrize("normalization", ["none", "pairs", "query"])
def test_weights_equal_repeated_pairs(normalization):
    times = np.random.default_rng(1).integers(0, 4, size=len(PAIRS))
    model = RankSVM(normalization=normalization, tol=1e-11)
    weighted = model.fit(X, pairs=PAIRS, pair_weight=times, qid=QID).coef_
    assert model.n_pairs_ == len(PAIRS)
    repeated = model.fit(X, pairs=np.repeat(PAIRS, times, axis=0), qid=QID).coef_
    np.testing.assert_allclose(weighted, repeated, atol=1e-8)


def test_document_and_query_weights_multiply():
    rng = np.random.default_rng(2)
    a, omega = rng.uniform(size=len(Y)), rng.uniform(size=30)
    _, first = np.unique(QID, return_index=True)
    order = np.argsort(np.argsort(first))  # of the queries by first appearance
    by_appearance = np.empty(30)
    by_appearance[order] = omega
    model = RankSVM(tol=1e-11)
    weights = {"sample_weight": a, "query_weight": by_appearance}
    coef = model.fit(X, pairs=PAIRS, qid=QID, **weights).coef_
    i, j = PAIRS.T
    product = a[i] * a[j] * omega[QID[i]]
    np.testing.assert_allclose(
        model.fit(X, pairs=PAIRS, pair_weight=product).coef_, coef, atol=1e-8
    )


BIG = {
    "one query": (1, 20_000, {"dtype": np.float32}),
    "many queries": (1000, 20, {"dtype": np.float32}),
    "csr, many features": (1, 20_000, {"n_features": 70_000, "density": 1e-4}),
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", BIG.values(), ids=BIG)
def test_any_number_of_threads_gives_bitwise_the_same(kind, solver):
    n_queries, size, other = kind
    features, y, qid = make_ranking(n_queries, size, **({"n_features": 20} | other), random_state=3)
    rng = np.random.default_rng(0)
    i, j = rng.integers(len(y), size=(2, 40_000 if n_queries == 1 else 2_000_000))
    fine = (y[i] > y[j]) & (qid[i] == qid[j])
    pairs, weight = np.column_stack([i, j])[fine], rng.uniform(size=fine.sum())
    assert len(pairs) > 500
    coefs = [
        RankSVM(n_jobs=n_jobs, C=1e-2, solver=solver, tol=1e-4)
        .fit(features, pairs=pairs, pair_weight=weight, qid=qid)
        .coef_
        for n_jobs in (1, 2, 8)
    ]
    assert coefs[0].any()
    for coef in coefs[1:]:
        assert coef.tobytes() == coefs[0].tobytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pairs": [[0, len(Y)]]}, rf"pairs\[0\] has row {len(Y)}"),
        ({"pairs": [[0, 1], [3, 3]]}, r"pairs\[1\] pairs row 3 with itself"),
        ({"pairs": []}, "pairs is empty"),
        ({"pairs": PAIRS, "pair_weight": [1.0]}, "pair_weight has 1 entries"),
        ({"pairs": PAIRS, "pair_weight": -np.ones(len(PAIRS))}, r"pair_weight\[0\] is -1"),
        ({"pairs": PAIRS, "pair_weight": np.zeros(len(PAIRS))}, "pair_weight is zero for every"),
        ({"pairs": PAIRS, "query_weight": np.zeros(30), "qid": QID}, "is zero for every pair"),
        ({"pairs": PAIRS, "qid": np.arange(len(Y))}, r"pairs\[0\] joins row \d+ of query \d+ and"),
        ({"y": Y, "pair_weight": [1.0]}, r"pair_weight.*\bpairs"),
        ({}, "requires y to be passed, but the target y is None"),
    ],
)
def test_malformed_input_is_named(arguments, message):
    model = RankSVM()
    with pytest.raises(ValueError, match=message):
        model.fit(X, **arguments)
    assert not hasattr(model, "coef_")


def test_adjacent_pairs_of_a_list_are_refused():
    with pytest.raises(ValueError, match=r"pair_selection='adjacent'.*\bpairs"):
        RankSVM(pair_selection="adjacent").fit(X, pairs=PAIRS)


def test_pairs_are_not_modified():
    pairs, weight = PAIRS.copy(), np.ones(len(PAIRS))
    pairs.flags.writeable = weight.flags.writeable = False
    RankSVM().fit(X, pairs=pairs, pair_weight=weight, qid=QID)
    np.testing.assert_array_equal(pairs, PAIRS)


@pytest.fixture(scope="module")
def querywise(real_folder):
    """Return features, labels, queries and pairs of the training data of querywise."""
    with gzip.open(real_folder / "querywise" / "train.gz", "rt") as file:
        table = [line.rstrip("\n").split("\t") for line in file]
    features = np.array([row[5:] for row in table], dtype=float)
    labels, qid = (np.array([row[k] for row in table], dtype=float) for k in (2, 1))
    return features, labels, qid, load_pairs(real_folder / "querywise" / "train.pairs")


@pytest.mark.parametrize("solver", SOLVERS)
def test_pairs_of_querywise(querywise, solver):
    features, labels, qid, listed = querywise
    i, j = listed.pairs.T
    assert (labels[i] > labels[j]).all()  # rows count from 0, the preferred one comes first
    model = RankSVM(C=0.01, tol=1e-9, solver=solver).fit(features, pairs=listed, qid=qid)
    assert model.n_pairs_ == 975
    assert model.gap_ <= 1e-8 * model.objective_
    t = (features[i] - features[j]) @ model.coef_
    loss = np.sum(np.maximum(0.0, 1.0 - t) ** 2)
    expected = 0.5 * model.coef_ @ model.coef_ + 0.01 * loss
    assert model.objective_ == pytest.approx(expected, rel=1e-12)
    by_labels = RankSVM(C=0.01, tol=1e-9, solver=solver).fit(features, labels, qid=qid)
    scores = by_labels.predict(features)
    assert np.mean(t > 0) > np.mean(scores[i] > scores[j])  # what pairs say, labels do not
