"""The same variants as in scikit-learn, ranx and ir_measures (trec_eval, gdeval)."""

import shutil

import ir_measures
import numpy as np
import pytest
from sklearn.metrics import average_precision_score, dcg_score, ndcg_score, roc_auc_score

from marginrank import metrics

K = 10


@pytest.fixture(scope="module")
def data():
    """Queries of 1 to 40 documents without ties; some have no relevant document."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 41, size=60)
    qid = np.repeat(np.arange(1, 61), sizes)
    y = rng.integers(5, size=qid.size) * (rng.random(60) < 0.8)[qid - 1]
    return y, rng.permutation(qid.size) / 7.0, qid


def by_query(function, data):
    y, scores, qid = data
    return np.array([function(y[qid == q], scores[qid == q]) for q in np.unique(qid)])


@pytest.mark.parametrize(("ours", "theirs"), [("ndcg", ndcg_score), ("dcg", dcg_score)])
@pytest.mark.parametrize("k", [None, 1, 5, 100])
@pytest.mark.parametrize("digits", [9, 0])
def test_ndcg_of_sklearn(data, ours, theirs, k, digits):
    """Linear gain and averaged ties; scikit-learn has no value for a single document."""
    y, scores, qid = data
    data = y, (scores / 10).round(digits), qid
    expected = by_query(lambda y, s: theirs([y], [s], k=k) if y.size > 1 else np.nan, data)
    several = ~np.isnan(expected)
    assert several.sum() > 50
    metric = getattr(metrics, ours)
    values = metric(*data[:2], qid=qid, k=k, gain="linear", ties="average", per_query=True)
    np.testing.assert_allclose(values[several], expected[several], rtol=1e-12)


def test_average_precision_of_sklearn(data):
    y, scores, qid = data
    values = metrics.average_precision(y, scores, qid=qid, no_relevant="skip", per_query=True)
    expected = by_query(lambda y, s: average_precision_score(y > 0, s) if y.any() else np.nan, data)
    np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize("digits", [9, 0])
def test_auc_of_sklearn(data, digits):
    y, scores, qid = data
    data = y, (scores / 10).round(digits), qid
    expected = by_query(
        lambda y, s: roc_auc_score(y > 0, s) if 0 < np.mean(y > 0) < 1 else np.nan, data
    )
    values = metrics.auc(*data[:2], qid=qid, per_query=True)
    np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.fixture(scope="module")
def judgements_and_run(data):
    judgements, run = {}, {}
    for i, (label, score, query) in enumerate(zip(*(a.tolist() for a in data), strict=True)):
        judgements.setdefault(str(query), {})[f"d{i}"] = label
        run.setdefault(str(query), {})[f"d{i}"] = score
    return judgements, run


SHARED = {
    "ndcg": ("ndcg", {"gain": "linear"}),
    f"ndcg@{K}": ("ndcg", {"k": K, "gain": "linear"}),
    f"ndcg_burges@{K}": ("ndcg", {"k": K}),
    "map": ("average_precision", {}),
    f"map@{K}": ("average_precision", {"k": K}),
    "mrr": ("reciprocal_rank", {}),
    f"precision@{K}": ("precision", {"k": K}),
    f"recall@{K}": ("recall", {"k": K}),
}


@pytest.mark.filterwarnings("ignore")
def test_ranx(data, judgements_and_run, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # ranx compiles for a minute what runs in a second
    ranx = pytest.importorskip("ranx", exc_type=ImportError)
    judgements, run = judgements_and_run
    theirs = ranx.evaluate(ranx.Qrels(judgements), ranx.Run(run), list(SHARED), return_mean=False)
    ids = np.argsort(list(judgements))  # ranx sorts queries as text
    for name, (metric, options) in SHARED.items():
        ours = getattr(metrics, metric)(*data[:2], qid=data[2], per_query=True, **options)
        np.testing.assert_allclose(ours[ids], theirs[name], rtol=1e-12, err_msg=name)


def ir_measures_by_query(measure, judgements_and_run):
    found = {m.query_id: m.value for m in ir_measures.iter_calc([measure], *judgements_and_run)}
    return np.array([found[query] for query in judgements_and_run[0]])


@pytest.mark.parametrize(
    ("theirs", "metric", "options"),
    [
        ("nDCG", "ndcg", {"gain": "linear"}),
        ("nDCG@10", "ndcg", {"k": 10, "gain": "linear"}),
        ("nDCG(gains={0:0,1:1,2:3,3:7,4:15})@10", "ndcg", {"k": 10}),
        ("AP", "average_precision", {}),
        ("AP@10", "average_precision", {"k": 10}),
        ("AP(rel=2)", "average_precision", {"threshold": 1}),
        ("RR", "reciprocal_rank", {}),
        ("RR(rel=3)", "reciprocal_rank", {"threshold": 2}),
        ("P@10", "precision", {"k": 10}),
        ("P(rel=2)@5", "precision", {"k": 5, "threshold": 1}),
        ("R@10", "recall", {"k": 10}),
    ],
)
def test_ir_measures(data, judgements_and_run, theirs, metric, options):
    measure = ir_measures.parse_measure(theirs)
    expected = ir_measures_by_query(measure, judgements_and_run)
    ours = getattr(metrics, metric)(*data[:2], qid=data[2], per_query=True, **options)
    np.testing.assert_allclose(ours, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("theirs", "metric", "options"),
    [
        ("ERR@20", "err", {"k": 20, "max_label": 4}),
        ("nDCG(dcg='exp-log2')@10", "ndcg", {"k": 10}),
    ],
)
def test_gdeval(data, judgements_and_run, theirs, metric, options):
    if shutil.which("perl") is None:
        pytest.skip("gdeval is a Perl script")
    measure = ir_measures.parse_measure(theirs)
    expected = ir_measures_by_query(measure, judgements_and_run)
    ours = getattr(metrics, metric)(*data[:2], qid=data[2], per_query=True, **options)
    np.testing.assert_allclose(ours, expected, atol=5.1e-6)  # printed with five digits
