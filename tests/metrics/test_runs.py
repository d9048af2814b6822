"""Runs evaluated with qrels, against trec_eval and explicit labels of unjudged documents."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from helpers.tables import each

from marginrank import RankingData, load_run
from marginrank.metrics import compare, compare_runs, evaluate_run, ndcg

NAMES = {
    "ndcg@10": "ndcg_cut_10",
    "ndcg": "ndcg",
    "map": "map",
    "average_precision@5": "map_cut_5",
    "mrr": "recip_rank",
    "recall@20": "recall_20",
    "precision@5": "P_5",
}


def make_run(seed, n_queries=30, n_documents=80, judged=15):
    """Return a run with ties, and qrels of which it retrieves a part."""
    rng = np.random.default_rng(seed)
    qrels = {
        f"q{q}": {f"d{d}": int(rng.integers(-1, 4)) for d in rng.choice(n_documents, judged, False)}
        for q in range(n_queries)
    }
    run = {
        f"q{q}": {
            f"d{d}": float(rng.integers(0, 12))
            for d in rng.choice(n_documents, rng.integers(1, 40), False)
        }
        for q in range(n_queries + 3)
    }
    return run, qrels


@each("seed", range(5))
def test_values_are_those_of_trec_eval(seed):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    run, qrels = make_run(seed)
    result = evaluate_run(run, qrels, list(NAMES))
    theirs = pytrec_eval.RelevanceEvaluator(qrels, set(NAMES.values())).evaluate(run)
    assert list(result.queries) == list(qrels)
    for ours, name in NAMES.items():
        expected = [theirs[query][name] for query in result.queries]
        np.testing.assert_allclose(result.per_query[ours], expected, rtol=0, atol=1e-12)
        assert result.means[ours] == pytest.approx(np.mean(expected), abs=1e-12)


def test_values_are_those_of_ir_measures_also_for_queries_without_documents():
    ir_measures = pytest.importorskip("ir_measures")
    run, qrels = make_run(7)
    del run["q3"]
    measures = {
        "ndcg@10": ir_measures.nDCG @ 10,
        "map": ir_measures.AP,
        "recall@20": ir_measures.R @ 20,
    }
    with pytest.warns(UserWarning, match="1 of 30 judged queries.*'q3'"):
        result = evaluate_run(run, qrels, list(measures))
    theirs = ir_measures.calc_aggregate(list(measures.values()), qrels, run)
    for name, measure in measures.items():
        assert result.means[name] == pytest.approx(theirs[measure], abs=1e-12)
    assert result.per_query["map"][3] == 0.0


def test_condensed_lists_have_judged_documents_only():
    run, qrels = make_run(1)
    condensed = {q: {d: s for d, s in run[q].items() if d in qrels[q]} for q in qrels}
    expected = evaluate_run(condensed, qrels, ["ndcg@10", "map", "judged@10"])
    result = evaluate_run(run, qrels, ["ndcg@10", "map", "judged@10"], unjudged="skip")
    for name, values in expected.per_query.items():
        np.testing.assert_array_equal(result.per_query[name], values)
    assert not result.bounds


def test_the_share_of_judged_documents():
    run = {"a": {"d1": 4.0, "d2": 3.0, "d3": 2.0, "d4": 1.0}, "b": {"d1": 1.0}}
    qrels = {"a": {"d1": 0, "d4": 1, "d9": 1}, "b": {"d2": 1}}
    result = evaluate_run(run, qrels, ["judged@3", "judged"])
    np.testing.assert_allclose(result.per_query["judged@3"], [1 / 3, 0.0])
    np.testing.assert_allclose(result.per_query["judged"], [2 / 4, 0.0])


BOUNDED = ["ndcg@3", "ndcg", "map", "mrr", "recall@2", "precision@3", "err@3"]


@each("seed", range(20))
def test_no_labels_of_unjudged_documents_give_values_outside_the_bounds(seed):
    rng = np.random.default_rng(seed)
    documents = [f"d{k}" for k in range(7)]
    qrels = {"q": {d: int(rng.integers(0, 3)) for d in rng.choice(documents, 4, False)}}
    qrels["q"]["best"] = 2  # the largest label
    run = {"q": {d: float(rng.integers(0, 5)) for d in rng.choice(documents, 5, False)}}
    result = evaluate_run(run, qrels, BOUNDED)
    unjudged = [d for d in run["q"] if d not in qrels["q"]]
    tight = dict.fromkeys(BOUNDED, False)
    for labels in product(range(3), repeat=len(unjudged)):
        full = {"q": qrels["q"] | dict(zip(unjudged, labels, strict=True))}
        for name, value in evaluate_run(run, full, BOUNDED).means.items():
            low, high = result.bounds[name]
            assert low - 1e-12 <= value <= high + 1e-12
            tight[name] |= abs(value - high) < 1e-9
    assert tight["precision@3"]
    assert tight["mrr"]


def test_runs_are_compared_query_by_query():
    run, qrels = make_run(2)
    other = {q: {d: -s for d, s in scores.items()} for q, scores in run.items()}
    result = compare_runs(run, other, qrels, "map", n_resamples=200)
    a, b = (evaluate_run(r, qrels, ["map"]).per_query["map"] for r in (run, other))
    assert result.difference == pytest.approx(np.mean(a - b))
    assert result.n_queries == 30


def test_frames_and_ranx_are_taken_as_they_are():
    ranx = pytest.importorskip("ranx")
    run, qrels = make_run(3)
    qrels = {q: {d: max(y, 0) for d, y in own.items()} for q, own in qrels.items()}
    expected = evaluate_run(run, qrels).means
    rows = [(q, d, s) for q, own in run.items() for d, s in own.items()]
    labels = [(q, d, y) for q, own in qrels.items() for d, y in own.items()]
    frame = pd.DataFrame(rows, columns=["qid", "docno", "score"])
    judged = pd.DataFrame(labels, columns=["query_id", "doc_id", "relevance"])
    assert evaluate_run(frame, judged).means == expected
    theirs = evaluate_run(ranx.Run(run), ranx.Qrels(qrels)).means  # queries in another order
    assert theirs == pytest.approx(expected, rel=1e-12)
    assert load_run(ranx.Run(run)) == load_run(frame) == load_run(run)
    joined = RankingData.from_runs({"a": ranx.Run(run)}, ranx.Qrels(qrels))
    assert joined.n_documents == RankingData.from_runs({"a": run}, qrels).n_documents > 0
    vespa = frame.set_axis(["query_id", "doc_id", "relevance_score"], axis=1)  # pyvespa's names
    labels = judged.rename(columns={"relevance": "relevance_label"})
    assert evaluate_run(vespa, labels).means == expected
    with pytest.raises(ValueError, match=r"run has no column 'docno'"):
        evaluate_run(frame.rename(columns={"docno": "text"}), judged)
    with pytest.raises(ValueError, match=r"row 1 of run repeats document 'd1'"):
        evaluate_run(pd.DataFrame({"qid": [1, 1], "docid": ["d1", "d1"], "score": [1, 2]}), judged)


@pytest.mark.parametrize(
    ("run", "qrels", "options", "message"),
    [
        ({"q": {"d": np.nan}}, {"q": {"d": 1}}, {}, r"run\['q'\]\['d'\] is nan"),
        ({"q": {"d": 1.0}}, {"p": {"d": 1}}, {}, r"no query of run 1.*'q'.*'p'"),
        ({"q": {"d": 1.0}}, {}, {}, "qrels has no judgments"),
        ({"q": {"d": 1.0}}, {"q": {"d": 1}}, {"unjudged": "drop"}, "unjudged='drop'"),
        ({"q": {"d": 1.0}}, {"q": {"d": 1}}, {"metrics": ["ndgc@10"]}, "'ndgc'.*'ndcg'"),
        ({"q": {"d": 1.0}}, {"q": {"d": 1}}, {"metrics": ["judged@x"]}, "cut-off"),
    ],
)
def test_bad_input_is_named(run, qrels, options, message):
    with pytest.raises(ValueError, match=message):
        evaluate_run(run, qrels, **options)


def test_features_of_runs():
    bm25 = {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"a": 1.0}, "q9": {"a": 1.0}}
    dense = {"q1": {"c": 0.9, "d": 0.8}}
    qrels = {"q1": {"c": 2, "z": 1}, "q2": {"a": 0}}
    data = RankingData.from_runs({"bm25": bm25, "dense": dense}, qrels, depth=2)
    assert data.query_ids.tolist() == ["q1", "q2"]
    assert data.comments == ["d", "c", "b", "a", "a"]
    assert data.y.tolist() == [0, 2, 0, 0, 0]
    assert data.feature_names == [
        f"{name}{ending}" for name in ("bm25", "dense") for ending in ("", "_rank", "_missing")
    ]
    np.testing.assert_array_equal(
        data.X,
        [
            [2.0, 3, 1, 0.8, 2, 0],
            [2.0, 3, 1, 0.9, 1, 0],
            [2.0, 2, 0, 0.8, 3, 1],
            [3.0, 1, 0, 0.8, 3, 1],
            [1.0, 1, 0, 0.0, 3, 1],
        ],
    )
    assert data.to_run(np.arange(5.0))["q1"] == {"d": 0.0, "c": 1.0, "b": 2.0, "a": 3.0}
    skipped = RankingData.from_runs({"bm25": bm25}, qrels, unjudged="skip")
    assert skipped.comments == ["c", "a"]
    everything = RankingData.from_runs({"bm25": bm25, "dense": dense})
    assert everything.query_ids.tolist() == ["q1", "q2", "q9"]


def test_metrics_of_runs_agree_with_metrics_of_arrays_if_all_is_judged_and_retrieved():
    rng = np.random.default_rng(4)
    qid = np.repeat([f"q{k}" for k in range(8)], 6)
    y, scores = rng.integers(0, 4, 48), rng.normal(size=48)
    run, qrels = {}, {}
    for k in range(48):
        run.setdefault(qid[k], {})[f"d{k}"] = scores[k]
        qrels.setdefault(qid[k], {})[f"d{k}"] = y[k]
    result = evaluate_run(run, qrels, ["ndcg@3"], gain="exponential")
    expected = ndcg(y, scores, qid=qid, k=3, per_query=True)
    np.testing.assert_allclose(result.per_query["ndcg@3"], expected, rtol=1e-15)
    assert result.bounds["ndcg@3"] == pytest.approx((result.means["ndcg@3"],) * 2)
    flipped = {q: {d: -s for d, s in own.items()} for q, own in run.items()}
    ours = compare_runs(run, flipped, qrels, "ndcg@3", gain="exponential")
    arrays = compare(y, scores, -scores, qid=qid, metric="ndcg@3")
    assert ours.difference == pytest.approx(arrays.difference, rel=1e-12)


def test_repeated_comments_cannot_be_a_run():
    data = RankingData([[1.0], [2.0]], [0, 1], ["q", "q"], comments=["same", "same"])
    with pytest.raises(ValueError, match="'same'"):
        data.to_run([1.0, 2.0])
    with pytest.raises(ValueError, match="comments="):
        RankingData([[1.0]], [0], ["q"]).to_run([1.0])
