"""The record of a report: its numbers are the numbers of metrics, tests and models."""

import json
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.reports import decoded, make_data
from helpers.tables import each
from sklearn.ensemble import HistGradientBoostingRegressor

import marginrank
from marginrank import FusionRanker, KernelRankSVM, RankingData, RankSVM, SparseRankSVM
from marginrank.metrics import compare, evaluate_run, get_metric
from marginrank.metrics.names import COMMON_METRICS
from marginrank.models import LinearModel
from marginrank.reporting import Report, queries
from marginrank.reporting.resampling import bootstrap_ratios, interval_of


def test_metrics_equal_those_of_the_library(linear_report, data, model):
    rows = {row["name"]: row for row in linear_report.record["metrics"]}
    scores = model.predict(data)
    for name in COMMON_METRICS:
        metric = get_metric(name)
        assert rows[name]["value"] == metric(data.y, scores, qid=data.qid)
        assert rows[name]["baseline"]["value"] == metric(data.y, data.X[:, 0], qid=data.qid)
        assert rows[name]["low"] <= rows[name]["value"] <= rows[name]["high"]
    assert set(rows) == {*COMMON_METRICS, "judged@10"}


def test_the_comparison_is_that_of_compare(linear_report, data, model):
    found = compare(data.y, model.predict(data), data.X[:, 0], qid=data.qid, metric="ndcg@10")
    record = linear_report.record["comparison"]
    assert record["difference"] == found.difference
    assert record["interval"] == list(found.interval)
    assert record["randomization_p"] == found.randomization_p
    table = linear_report.record["queries"]
    changes = np.subtract(table["value"], table["baseline"])
    assert [record["wins"], record["losses"]] == [np.sum(changes > 1e-12), np.sum(changes < -1e-12)]
    assert linear_report.verdict.startswith("model is better than baseline by ")


def test_judged_documents_are_those_of_the_qrels(data, model):
    qrels = {str(q): {} for q in data.query_ids}
    for row in range(0, data.n_documents, 3):
        qrels[str(data.query_ids[data.qid[row]])][data.comments[row]] = 1
    record = marginrank.report(model, data, qrels=qrels).record
    scores = model.predict(data)
    expected = evaluate_run(data.to_run(scores), qrels, ["judged@10"]).means["judged@10"]
    assert record["metrics"][-1]["value"] == expected
    for query, block in enumerate(record["blocks"]):
        if block["full"]:
            own = np.flatnonzero(data.qid == query)
            assert block["judged"] == (own % 3 == 0).astype(int).tolist()


def test_blocks_of_the_sample_hold_all_documents_in_order(linear_report, data, model):
    record = linear_report.record
    scores = model.predict(data)
    full = [query for query, block in enumerate(record["blocks"]) if block["full"]]
    assert full
    for query in full:
        own = data.qid == query
        assert record["blocks"][query]["label"] == data.y[own].tolist()
        np.testing.assert_array_equal(decoded(record["blocks"][query]), scores[own])
        assert sorted(record["blocks"][query]["rank"]) == list(range(1, own.sum() + 1))


@pytest.mark.parametrize("name", ["linear_report", "additive_report"])
def test_terms_of_a_block_add_up_to_the_differences_of_scores(name, request):
    record = request.getfixturevalue(name).record
    for block in record["blocks"]:
        n, width = len(block["label"]), len(block["terms"])
        values = decoded(block, "values", f"<f{block['bytes']}").reshape(n, width)
        if "added" in block:
            terms = decoded(block, "added", f"<f{block['added_bytes']}").reshape(n, width)
        else:
            terms = values * np.array([record["terms"][k]["weight"] for k in block["terms"]])
        sums, scores = terms.sum(axis=1), decoded(block)
        assert block["others"] == 0
        np.testing.assert_allclose(sums - sums[0], scores - scores[0], atol=1e-9)


def test_importance_is_the_deviation_within_queries(linear_report, data, model):
    rows = linear_report.record["importance"]
    assert [r["importance"] for r in rows] == sorted((r["importance"] for r in rows), reverse=True)
    for row in rows:
        k = row["term"]
        terms = data.X[:, k].astype(float) * model.coef_[k]
        within = np.concatenate(
            [terms[data.qid == q] - terms[data.qid == q].mean() for q in range(data.n_queries)]
        )
        assert row["importance"] == pytest.approx(np.sqrt(np.mean(within**2)), rel=1e-12)
        assert row["low"] < row["importance"] < row["high"]
        assert (row["feature"], row["weight"]) == (data.feature_names[k], model.coef_[k])


def test_slices_by_label_gap_count_pairs_one_by_one(linear_report, data, model):
    scores = model.predict(data)
    pairs = {}
    for query in range(data.n_queries):
        own = np.flatnonzero(data.qid == query)
        for i, j in combinations(own, 2):
            high, low = (i, j) if data.y[i] > data.y[j] else (j, i)
            gap = data.y[high] - data.y[low]
            if gap:
                pairs.setdefault(f"{gap:g}", []).append(scores[high] > scores[low])
    (group,) = (g for g in linear_report.record["slices"] if g["unit"] == "pairs")
    found = {row["label"]: (row["count"], row["value"]["value"]) for row in group["rows"]}
    assert found.keys() == pairs.keys()
    for gap, right in pairs.items():
        assert found[gap][0] == len(right)
        assert found[gap][1] == pytest.approx(np.mean(right), rel=1e-12)


def test_slices_of_queries_cover_each_query_once(linear_report, data):
    for group in linear_report.record["slices"]:
        if group["unit"] == "queries":
            assert sum(row["count"] for row in group["rows"]) == data.n_queries


def test_bootstrap_intervals_cover_the_mean_as_often_as_they_say():
    rng = np.random.default_rng(0)
    values = rng.normal(1.0, 1.0, size=(60, 400))
    draws = bootstrap_ratios(values, np.ones_like(values), seed=1)
    intervals = np.array([interval_of(column) for column in draws.T])
    covered = np.mean((intervals[:, 0] < 1.0) & (intervals[:, 1] > 1.0))
    assert 0.9 < covered < 0.97


def test_a_report_is_the_same_every_time_and_after_a_file(data, model, linear_report, tmp_path):
    again = marginrank.report(model, data, baseline=data.X[:, 0])
    assert again.record["metrics"] == linear_report.record["metrics"][:-1]
    path = tmp_path / "report.json"
    linear_report.save(path)
    loaded = Report.load(path)
    assert loaded.record == linear_report.record
    assert loaded.to_html() == linear_report.to_html()


@each(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ('{"format": "marginrank-model"}', "its format is not"),
        ('{"format": "marginrank-report", "version": 2}', "version 2"),
    ],
)
def test_other_files_are_not_reports(tmp_path, text, message):
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        Report.load(path)


@each(
    ("place", "value"),
    [
        ("metrics", None),
        ("metrics", [{**dict.fromkeys(("name", "low", "high", "baseline")), "value": "x"}]),
        ("model", {"name": "m", "kind": "", "parameters": [], "weights": None}),
        ("data", {"queries": 1, "labels": [[10**400, 1]]}),
        ("sliders", float("nan")),
    ],
)
def test_a_damaged_record_is_an_error(linear_report, place, value):
    with pytest.raises(ValueError, match="the record of the report is damaged"):
        Report({**linear_report.record, place: value}).to_html()


def test_models_without_terms_have_a_report():
    data = make_data(8, 6)
    kernel = KernelRankSVM().fit(data)
    for model in (kernel, data.X[:, 1], LinearModel(np.zeros(5), {})):
        record = marginrank.report(model, data).record
        assert record["sliders"] == 0
        assert record["importance"] == []
        assert "What if" not in Report(record).to_html()


def test_linear_kernels_are_explained_as_linear_models_are():
    data = make_data(8, 6)
    kernel = KernelRankSVM(kernel="linear", scale="standard").fit(data)
    linear = LinearModel(kernel.to_kernel_model().weights(), {}, data.feature_names)
    records = [marginrank.report(model, data).record for model in (kernel, linear)]
    assert records[0]["importance"] == records[1]["importance"] != []


def test_rankings_of_fused_runs_have_a_report():
    runs = {
        name: {q: {f"d{k}": np.cos(k * s) for k in range(8)} for q in "abc"}
        for name, s in (("bm25", 1.0), ("dense", 2.0))
    }
    qrels = {q: {"d1": 1, "d4": 2} for q in "abc"}
    model = FusionRanker().fit(runs, qrels)
    data = RankingData.from_runs(runs, qrels)
    record = marginrank.report(model, data, qrels=qrels, metrics=["ndcg@10"]).record
    expected = get_metric("ndcg@10")(data.y, model.predict(data), qid=data.qid)
    assert record["metrics"][0]["value"] == expected


def test_other_models_may_have_missing_values():
    data = make_data(8, 6)
    X = np.where(data.X > 1, np.nan, data.X)
    trees = HistGradientBoostingRegressor(max_iter=5).fit(X, data.y)
    for model in (trees, data.X[:, 0]):
        marginrank.report(model, X, data.y, qid=data.qid)
    with pytest.raises(ValueError, match="is NaN"):
        marginrank.report(RankSVM().fit(data), X, data.y, qid=data.qid)


def test_queries_without_a_value_are_no_evidence(data, model):
    rare = RankingData(data.X, np.where(data.qid == 3, data.y, 0), qid=data.qid)
    first = data.X[:, 0]
    report = marginrank.report(model, rare, baseline=first, metric="pairwise_accuracy")
    assert "over 1 query; baseline has" in report.verdict
    assert report.record["metric"]["text"] == (
        "share of correctly ordered pairs, among the pairs of all queries; "
        "a pair with equal scores counts as wrong"
    )
    none = RankingData(data.X, 0 * data.y, qid=data.qid)
    report = marginrank.report(model, none, metric="pairwise_accuracy")
    assert report.verdict == "No query has a value of pairwise_accuracy."


def test_queries_without_a_value_are_not_listed_as_the_worst(monkeypatch):
    monkeypatch.setattr(queries, "MOST_QUERIES", 8)
    monkeypatch.setattr(queries, "MOST_EXTREMES", 4)
    data = make_data(30, 10)
    y = np.where(data.qid < 10, 0, data.y)
    scores = data.X[:, 4]
    report = marginrank.report(
        scores, data.X, y, qid=data.qid, metric="pairwise_accuracy", random_state=1
    )
    metric = get_metric("pairwise_accuracy")
    values = metric(y, scores, qid=data.qid, per_query=True)
    worst = np.sort(values[~np.isnan(values)])[:4]
    listed = [value for value in report.record["queries"]["value"] if value is not None]
    np.testing.assert_allclose(np.sort(listed)[:4], worst)


def test_gaps_of_labels_are_rounded():
    data = make_data(6, 8)
    report = marginrank.report(data.X[:, 0], data.X, data.y / 10, qid=data.qid)
    rows = report.record["slices"][-1]["rows"]
    assert [row["label"] for row in rows] == ["0.1", "0.2", "0.3", "0.4"]


def test_only_fits_that_can_be_repeated_have_a_learning_curve(data):
    sparse = SparseRankSVM(C=10.0).fit(data)
    imported = LinearModel(np.ones(data.n_features), {})
    for model in (sparse, imported):
        assert marginrank.report(model, data, train=data).record["learning_curve"] is None


def test_sparse_and_dense_data_have_the_same_report():
    data = make_data(10, 8, dtype=np.float64)
    model = RankSVM().fit(data)
    names = {"feature_names": data.feature_names, "comments": data.comments}
    sparse = RankingData(sp.csr_array(data.X), data.y, qid=data.query_ids[data.qid], **names)
    dense, other = (marginrank.report(model, d).record for d in (data, sparse))
    for name in ("queries", "slices", "metrics"):
        assert dense[name] == other[name]
    for row, same in zip(dense["importance"], other["importance"], strict=True):
        assert row["importance"] == pytest.approx(same["importance"], rel=1e-9)


def test_labels_below_zero_leave_gains_out():
    data = make_data(10, 8)
    shifted = RankingData(data.X, data.y - 2, qid=data.qid)
    model = RankSVM().fit(shifted)
    with pytest.raises(ValueError, match="labels of zero or more"):
        marginrank.report(model, shifted)
    record = marginrank.report(model, shifted, metric="pairwise_accuracy").record
    assert "ndcg@10" not in [row["name"] for row in record["metrics"]]


def test_qrels_need_ids_of_documents():
    data = make_data(4, 4)
    nameless = RankingData(data.X, data.y, qid=data.qid)
    with pytest.raises(ValueError, match="comments"):
        marginrank.report(data.X[:, 0], nameless, qrels={"0": {"d": 1}})


def test_the_record_is_plain_json(linear_report, additive_report):
    for report in (linear_report, additive_report):
        assert json.loads(report.to_json()) == report.record


def test_forgotten_queries_are_a_warning(data, model):
    with pytest.warns(UserWarning, match="report got no qid"):
        forgotten = marginrank.report(model, data.X, data.y)
    assert forgotten.record["data"]["queries"] == 1


def test_a_baseline_of_another_length_is_named(data, model):
    with pytest.raises(ValueError, match="baseline has 3 entries"):
        marginrank.report(model, data, baseline=np.zeros(3))
