"""cost: and sid: of SVM-light's text, from the file to the weights of pairs."""

import io

import numpy as np
import pytest
from helpers.brute_force import explicit_pairs
from helpers.oracle import Oracle
from sklearn.exceptions import ConvergenceWarning

from marginrank import (
    RankingData,
    RankSVM,
    RankSVMCV,
    SGDRankSVM,
    SparseRankSVM,
    dump_letor,
    iter_letor,
    load_letor,
)
from marginrank.io.store_builder import DocumentBlock, build_store
from marginrank.io.table_files import write_frame
from marginrank.objective.losses import LOSSES
from marginrank.selection.folds import rows_of


def read(text, **options):
    return load_letor(io.BytesIO(text.encode()), **options)


def clicks(seed=0, n_queries=12):
    """Return documents of which a few were clicked, each click with a cost."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), 6)
    y = (np.arange(qid.size) % 6 == rng.integers(6)).astype(float)
    cost = np.where(y > 0, rng.uniform(1, 20, qid.size), 1.0)
    return RankingData(rng.normal(size=(qid.size, 3)), y, qid, cost=cost)


def test_costs_and_slack_ids_are_read_in_any_order_before_the_features():
    data = read(
        "1 qid:1 cost:2.5 1:3\n0 cost:1e1 qid:1 2:4#c\n1 sid:7 cost:0 qid:2\n0 qid:2 sid:1\n"
    )
    np.testing.assert_array_equal(data.cost, [2.5, 10, 0, 1])
    np.testing.assert_array_equal(data.qid, [0, 0, 1, 1])
    np.testing.assert_array_equal(data.X.toarray(), [[3, 0], [0, 4], [0, 0], [0, 0]])


def test_no_costs_are_none():
    assert read("1 qid:1 sid:3 1:3\n0 qid:1 1:4\n").cost is None


def test_a_cost_at_the_end_of_a_long_text():
    text = "".join(f"{k % 2} qid:{k // 9} 1:{k}\n" for k in range(60_000))  # parsed in parts
    data = read(text + "1 qid:x cost:3\n")
    assert data.cost[-1] == 3
    assert (data.cost[:-1] == 1).all()


@pytest.mark.parametrize(
    ("text", "column", "what"),
    [
        ("1 cost:x 1:2", 8, "the cost 'x' is not a finite number of zero or more"),
        ("1 cost: 1:2", 8, "the cost '' is not"),
        ("1 cost:-1 1:2", 8, "the cost '-1' is not"),
        ("1 cost:nan 1:2", 8, "the cost 'nan' is not"),
        ("1 cost:inf 1:2", 8, "the cost 'inf' is not"),
        ("1 cost:1e999 1:2", 8, "the cost '1e999' is not"),
        ("1 cost:1x 1:2", 8, "the cost '1x' is not"),
        ("1 cost:1 cost:2", 10, "cost: must come once, right after the label"),
        ("1 1:2 cost:2", 7, "cost: must come once, right after the label"),
        ("1 sid:0 1:2", 7, "the slack id '0' is not an integer of one or more"),
        ("1 sid:1.5 1:2", 7, "the slack id '1.5' is not"),
        ("1 sid:-1 1:2", 7, "the slack id '-1' is not"),
        ("1 sid: 1:2", 7, "the slack id '' is not"),
        ("1 sid:1 sid:1", 9, "sid: must come once"),
        ("1 costs:1 1:2", 3, "expected index:value, found 'costs:1'"),
    ],
)
def test_malformed_ones_are_refused_with_their_place(text, column, what):
    with pytest.raises(ValueError, match=f"<file>:2:{column}: {what}"):
        read(f"0 1:1\n{text}\n")


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_a_cost_weighs_the_pairs_that_prefer_its_document(loss):
    data = clicks()
    pairs = explicit_pairs(data.y, data.qid)
    pairs.weight *= data.cost[pairs.preferred]
    judge = Oracle(data.X, pairs, LOSSES[loss], 0.1)
    lower, _ = judge.solution
    w = RankSVM(C=0.1, loss=loss, tol=1e-8).fit(data).coef_
    assert judge.value(w) - lower <= 1e-7 * lower


def test_a_cost_is_an_inverse_propensity():
    data = clicks(1)
    plain = RankingData(data.X, data.y, data.qid)
    expected = RankSVM(C=0.1, tol=1e-10).fit(plain, propensity=1 / data.cost)
    np.testing.assert_allclose(RankSVM(C=0.1, tol=1e-10).fit(data).coef_, expected.coef_, rtol=1e-6)


@pytest.mark.parametrize("learner", [SparseRankSVM(), SGDRankSVM(), RankSVMCV(Cs=[0.1, 1.0], cv=3)])
def test_every_learner_looks_at_costs(learner):
    data = clicks(2)
    plain = RankingData(data.X, data.y, data.qid)
    with_costs = learner.fit(data).coef_.copy()
    assert np.abs(with_costs - learner.fit(plain).coef_).max() > 1e-3


def test_text_in_chunks_is_learned_with_costs(tmp_path):
    data = clicks(3)
    dump_letor(data, tmp_path / "clicks.txt")
    dump_letor(RankingData(data.X, data.y, data.qid), tmp_path / "plain.txt")
    learner = SGDRankSVM(C=0.1, max_iter=20, tol=0.0)
    found = {}
    for name in ("clicks", "plain"):
        with pytest.warns(ConvergenceWarning):
            learner.fit(tmp_path / f"{name}.txt", read_options={"chunk_documents": 12})
        found[name] = learner.coef_
    assert np.abs(found["clicks"] - found["plain"]).max() > 1e-2


def test_propensities_beside_costs_are_refused():
    data = clicks()
    with pytest.raises(ValueError, match=r"propensity.*cost"):
        RankSVM().fit(data, propensity=np.ones(data.n_documents))


def test_costs_of_listed_pairs_are_refused():
    with pytest.raises(ValueError, match=r"cost.*pairs"):
        RankSVM().fit(clicks(), pairs=[[0, 1]])


def test_text_and_stores_keep_costs(tmp_path):
    data = clicks()
    dump_letor(data, tmp_path / "clicks.txt")
    np.testing.assert_array_equal(load_letor(tmp_path / "clicks.txt").cost, data.cost)
    data.save(tmp_path / "clicks.store")
    np.testing.assert_array_equal(RankingData.open(tmp_path / "clicks.store").cost, data.cost)


def test_a_table_refuses_them(tmp_path):
    with pytest.raises(ValueError, match="a table cannot hold costs"):
        write_frame(clicks(), tmp_path / "clicks.parquet")


def test_rows_and_features_of_data_keep_costs():
    data = clicks()
    np.testing.assert_array_equal(rows_of(data, np.array([5, 2])).cost, data.cost[[5, 2]])
    np.testing.assert_array_equal(data.with_features(data.X[:, :1]).cost, data.cost)


@pytest.mark.parametrize("text", ["{cost}{plain}", "{plain}{cost}"])
def test_chunks_without_a_cost_join_those_with(text):
    plain = "".join(f"{k % 2} qid:{k // 4} 1:{k}\n" for k in range(8))
    cost = "".join(f"{k % 2} qid:{10 + k // 4} cost:{k} 1:{k}\n" for k in range(8))
    source = io.BytesIO(text.format(plain=plain, cost=cost).encode())
    found = {}
    for chunk in iter_letor(source, chunk_documents=4):
        costs = np.ones(chunk.n_documents) if chunk.cost is None else chunk.cost
        found |= {int(i): costs[chunk.qid == k] for k, i in enumerate(chunk.query_ids)}
    for query, expected in {0: 1, 1: 1}.items():
        assert (found[query] == expected).all()
    np.testing.assert_array_equal(found[10], range(4))
    np.testing.assert_array_equal(found[11], range(4, 8))


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_a_store_of_blocks_of_which_one_has_costs(tmp_path, order):
    blocks = [
        DocumentBlock(np.ones((2, 1)), np.array([0.0, 1.0]), np.array([1, 1])),
        DocumentBlock(
            np.ones((2, 1)), np.array([0.0, 1.0]), np.array([2, 2]), cost=np.array([3.0, 4.0])
        ),
    ]
    build_store([blocks[k] for k in order], tmp_path / "store")
    data = RankingData.open(tmp_path / "store")
    costs = {int(i): data.cost[data.qid == k].tolist() for k, i in enumerate(data.query_ids)}
    assert costs == {1: [1, 1], 2: [3, 4]}
