"""Fits of fusion weights: equal to the real metric, at least the lattice, reproducible."""

import numpy as np
import pytest
from helpers.generated_runs import generated_runs

from marginrank import FusionRanker, RankingData
from marginrank.fit.fusion import FusionParameters, FusionProblem, JudgedSignals
from marginrank.fit.fusion_search import lattice
from marginrank.metrics import evaluate_run
from marginrank.models import FusionModel

QUICK = {"n_bootstraps": 10, "cv": 0}


def value(weights, runs, qrels, metric="ndcg@10", normalizer="minmax"):
    run = FusionModel(tuple(runs), weights, normalizer).fuse(runs)
    return evaluate_run(run, qrels, [metric]).per_query[metric]


def fitted_value(ranker, runs, qrels, **options):
    metric = ranker.metric
    return evaluate_run(ranker.fuse(runs, **options), qrels, [metric]).means[metric]


def test_lattices():
    assert [len(lattice(n)) for n in (1, 2, 3, 4, 12)] == [1, 11, 66, 286, 78]
    assert all(np.allclose(lattice(n).sum(axis=1), 1.0) for n in (2, 3, 7))


@pytest.mark.parametrize("metric", ["ndcg@5", "ndcg", "dcg@3", "recall@4", "p@5"])
def test_problems_have_the_values_of_evaluate_run(metric):
    runs, qrels = generated_runs(1, quality=(1.0, 0.5, 0.2))
    judged = JudgedSignals.of(runs, qrels, 100)
    rng = np.random.default_rng(0)
    for normalizer in ("minmax", "rrf", "none", "zscore"):
        problem = FusionProblem(judged, FusionParameters(metric=metric), normalizer)
        for w in rng.dirichlet(np.ones(3), 3):
            model = problem.model(w)
            expected = value(model.weights, runs, qrels, metric, normalizer)
            np.testing.assert_allclose(problem.values(w), expected, atol=1e-12)
            fused = model.predict(judged.data)
            np.testing.assert_allclose(judged.values(fused, metric), expected, atol=1e-12)


@pytest.mark.parametrize("n_signals", [2, 3])
def test_training_optimum(n_signals):
    runs, qrels = generated_runs(2, quality=(1.5, 1.0, 0.5)[:n_signals], n_queries=12)
    ranker = FusionRanker(n_bootstraps=0, cv=0).fit(runs, qrels)
    found = fitted_value(ranker, runs, qrels)
    points = lattice(n_signals)
    if n_signals == 2:  # the whole line, finely
        share = np.linspace(0, 1, 501)
        points = np.column_stack([share, 1 - share])
    judged = JudgedSignals.of(runs, qrels, 100)
    values = FusionProblem(judged, FusionParameters(), "minmax")._metric.values(points)
    assert found >= values.mean(axis=0).max() - 1e-12
    assert sum(ranker.weights_.values()) == pytest.approx(1.0)


def test_fits_to_some_queries_share_nothing_with_the_others():
    runs, qrels = generated_runs(10, quality=(1.2, 0.8), n_queries=24)
    judged = JudgedSignals.of(runs, qrels, 100)
    problem = FusionProblem(judged, FusionParameters(n_bootstraps=0), "minmax")
    for fold in range(3):
        used = np.arange(24) % 3 != fold
        some = {query: qrels[query] for query, own in zip(judged.queries, used, strict=True) if own}
        expected = FusionRanker(n_bootstraps=0, cv=0).fit(runs, some).model_.weights
        found = problem.model(problem.fit(used, 0)).weights
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_averaged_weights_of_many_queries_are_not_worse_than_the_lattice():
    runs, qrels = generated_runs(3, quality=(1.0, 0.8), n_queries=110, n_documents=15, depth=8)
    found = fitted_value(FusionRanker(**QUICK).fit(runs, qrels), runs, qrels)
    assert found >= max(value(w, runs, qrels).mean() for w in lattice(2)) - 1e-12


def test_averaged_weights_prefer_the_better_signal():
    runs, qrels = generated_runs(4, quality=(2.0, 0.0), n_queries=30)
    weights = FusionRanker(**QUICK).fit(runs, qrels).weights_
    assert 0.6 < weights["s0"] < 1.0


def test_fits_are_reproducible_and_seeded():
    runs, qrels = generated_runs(5, quality=(1.0, 1.0, 0.5))
    first, again = (FusionRanker(**QUICK).fit(runs, qrels).weights_ for _ in range(2))
    other = FusionRanker(**QUICK, random_state=1).fit(runs, qrels).weights_
    assert first == again != other


def test_ranking_data_gives_the_same_weights_if_all_judged_documents_are_retrieved():
    runs, qrels = generated_runs(6)
    found = {q: set().union(*(run[q] for run in runs.values())) for q in qrels}
    qrels = {q: {d: y for d, y in own.items() if d in found[q]} for q, own in qrels.items()}
    qrels = {q: own for q, own in qrels.items() if own}
    data = RankingData.from_runs(runs, qrels)
    ranker = FusionRanker(**QUICK)
    assert ranker.fit(data).weights_ == ranker.fit(runs, qrels).weights_
    fused = ranker.fuse(data)
    assert fused == data.to_run(ranker.predict(data))


def test_negative_weights():
    runs, qrels = generated_runs(7, quality=(1.0, -2.0), n_queries=30)
    both = [FusionRanker(n_bootstraps=0, cv=0, positive=p).fit(runs, qrels) for p in (True, False)]
    positive, free = (fitted_value(ranker, runs, qrels) for ranker in both)
    assert both[1].weights_["s1"] < 0 <= both[0].weights_["s1"]
    assert free > positive


@pytest.mark.parametrize("n_bootstraps", [0, 5])
def test_weights_of_either_sign_do_not_cancel(n_bootstraps):
    """If all weights are equally good, the middle of the line through them is zero."""
    runs = {name: {"q": {"d": 1.0, "e": 2.0}} for name in "ab"}
    ranker = FusionRanker(metric="recall", positive=False, n_bootstraps=n_bootstraps, cv=0)
    weights = ranker.fit(runs, {"q": {"d": 1}}).model_.weights
    assert np.abs(weights).sum() == pytest.approx(1.0)


def test_weights_that_depend_on_the_query():
    short, y_short = generated_runs(8, quality=(3.0, 0.0), n_queries=15)
    long, y_long = generated_runs(9, quality=(0.0, 3.0), n_queries=15)
    runs = {s: {f"a{q}": own for q, own in short[s].items()} | long[s] for s in short}
    qrels = {f"a{q}": own for q, own in y_short.items()} | y_long
    features = {q: {"length": 2.0 if q.startswith("a") else 9.0} for q in qrels}
    plain = FusionRanker(**QUICK).fit(runs, qrels)
    ranker = FusionRanker(**QUICK).fit(runs, qrels, query_features=features)
    gain = fitted_value(ranker, runs, qrels, query_features=features)
    assert gain > fitted_value(plain, runs, qrels) + 0.02
    weights = ranker.model_.weights_of(["x", "y"], {"x": {"length": 2}, "y": {"length": 9}})
    assert (weights >= -1e-12).all()
    shares = weights[:, 0] / weights.sum(axis=1)
    assert shares[0] > 0.6 > 0.4 > shares[1]
    with pytest.raises(ValueError, match="query feature 'length' is 1 for every query"):
        FusionRanker().fit(runs, qrels, query_features={q: {"length": 1} for q in qrels})
    with pytest.raises(ValueError, match="query_features has no query"):
        FusionRanker().fit(runs, qrels, query_features={next(iter(qrels)): {"length": 1}})


def test_one_signal_one_document_and_ties():
    runs = {"a": {"q": {"d": 1.0}, "r": {"d": 1.0, "e": 1.0}}}
    ranker = FusionRanker(**QUICK).fit(runs, {"q": {"d": 1}, "r": {"d": 1}})
    assert ranker.weights_ == {"a": 1.0}
    assert list(ranker.fuse(runs)["r"]) == ["e", "d"]
    two = {"a": runs["a"], "b": {"q": {"d": 2.0}, "r": {"e": 2.0, "d": 1.0}}}
    weights = FusionRanker(**QUICK).fit(two, {"q": {"d": 1}, "r": {"d": 1}}).weights_
    assert sum(weights.values()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("runs", "qrels", "message"),
    [
        ({"a": {"q": {"d": np.nan}}}, {"q": {"d": 1}}, r"a\['q'\]\['d'\] is nan"),
        ({"a": {"q": {"d": 1.0}}}, {"r": {"d": 1}}, "no query of run 1 is in the qrels"),
        ({"a": {"q": {"d": 1.0}}}, None, "qrels is missing"),
        ({}, {"r": {"d": 1}}, "runs is empty"),
        ({"a": {"q": {"d": 1.0}}, "b": {}}, {"q": {"d": 1}}, "run 2 has no documents"),
        (
            {"a": {"q": {"d": 1.0}}},
            {"q": {"d": 0, "e": -1}},
            "no run retrieved a document with a label",
        ),
        ({"a": {"q": {"d": "x"}}}, {"q": {"d": 1}}, r"a\['q'\] has a value that is not a number"),
    ],
)
def test_bad_input(runs, qrels, message):
    with pytest.raises(ValueError, match=message):
        FusionRanker().fit(runs, qrels)


def test_documents_with_other_ids_are_a_warning():
    runs, qrels = {"a": {"q": {"d": 1.0}}}, {"q": {"x": 1}}
    message = "No retrieved document is judged: .* 'd', of the qrels 'x'"
    with pytest.warns(UserWarning, match=message):
        RankingData.from_runs(runs, qrels)
    with (
        pytest.warns(UserWarning, match=message),
        pytest.raises(ValueError, match="no run retrieved a document with a label above 0"),
    ):
        FusionRanker().fit(runs, qrels)


def test_bad_data_and_parameters():
    runs, qrels = generated_runs(0)
    with pytest.raises(TypeError, match=r"qrels.* has a value that is not a number"):
        FusionRanker().fit(runs, runs)  # signals instead of queries
    with pytest.raises(ValueError, match="no run retrieved a document with a label above 0"):
        FusionRanker().fit(
            RankingData.from_runs(runs, {q: dict.fromkeys(d, 0) for q, d in qrels.items()})
        )
    with pytest.raises(TypeError, match="runs is a list"):
        FusionRanker().fit([runs], qrels)
    with pytest.raises(ValueError, match="the data is not from RankingData"):
        FusionRanker().fit(RankingData([[1.0]], [1]))
    with pytest.raises(ValueError, match="qrels cannot be combined with RankingData"):
        FusionRanker().fit(RankingData.from_runs(runs, qrels), qrels)
    for options, message in (
        ({"metric": "map"}, "metric='map'"),
        ({"metric": "precision"}, "metric='precision'"),
        ({"normalizer": ["minmax", "x"]}, "normalizer='x'"),
        ({"normalizer": ["minmax", "rrf"], "cv": 0}, "several names"),
        ({"cv": 1}, "cv=1"),
        ({"n_bootstraps": -1}, "n_bootstraps=-1"),
    ):
        with pytest.raises(ValueError, match=message):
            FusionRanker(**options).fit(runs, qrels)


def test_documents_that_are_listed_twice():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"qid": ["q", "q"], "docno": ["d", "d"], "score": [1.0, 2.0]})
    with pytest.raises(ValueError, match="repeats document 'd'"):
        FusionRanker().fit({"a": frame}, {"q": {"d": 1}})
