"""Cross validation of fusion: held-out values, selection of normalizers, the verdict."""

import numpy as np
import pytest
from helpers.generated_runs import generated_runs

from marginrank import FusionRanker
from marginrank.metrics import evaluate_run
from marginrank.models import FusionModel
from marginrank.selection.fusion import FusionEvaluation


def evaluation(difference, noise=0.01, n=50):
    rng = np.random.default_rng(0)
    values = rng.random(n)
    noisy = values - difference + noise * (rng.permutation(n) - (n - 1) / 2) / n
    return FusionEvaluation("ndcg@10", {"learned": values, "RRF": noisy}, {"minmax": 0.5})


def test_the_verdict_is_honest():
    assert evaluation(0.018).verdict.startswith(
        "Learned weights are better than RRF by 0.018 ± 0.0"
    )
    assert evaluation(-0.018).verdict.endswith("; keep RRF.")
    assert "worse than RRF by 0.018" in evaluation(-0.018).verdict
    assert evaluation(0.001, 1.0, 25).verdict == (
        "No evidence in 25 queries that learned weights beat RRF; keep RRF."
    )
    assert evaluation(0.0, 0.0).verdict.endswith("keep RRF.")


def test_methods_have_the_values_of_evaluate_run():
    runs, qrels = generated_runs(0, n_queries=12)
    qrels["nothing"] = {"d1": 1}  # retrieved by nobody
    with pytest.warns(UserWarning, match="1 of 13 judged queries"):
        found = FusionRanker(n_bootstraps=5, cv=3).fit(runs, qrels).evaluation_
    for method, normalizer, weights in (
        ("RRF", "rrf", [0.5, 0.5]),
        ("equal weights", "minmax", [0.5, 0.5]),
        ("s1 alone", "minmax", [0.0, 1.0]),
    ):
        run = FusionModel(("s0", "s1"), weights, normalizer).fuse(runs)
        with pytest.warns(UserWarning, match="1 of 13 judged queries"):
            expected = evaluate_run(run, qrels, ["ndcg@10"]).per_query["ndcg@10"]
        np.testing.assert_allclose(found.per_query[method], expected, atol=1e-12)
    assert list(found.per_query)[:4] == ["learned", "RRF", "equal weights", "grid"]
    assert found.n_queries == 13
    gain, half = found.gains["RRF"]
    difference = found.per_query["learned"] - found.per_query["RRF"]
    assert gain == pytest.approx(difference.mean())
    assert half > 0
    assert "learned_minus" in found._columns()


def test_values_are_of_queries_that_were_held_out():
    """A query with a unique best weight has its training value only if it was trained on."""
    runs, qrels = generated_runs(1, n_queries=8)
    ranker = FusionRanker(n_bootstraps=0, cv=8).fit(runs, qrels)
    held_out = ranker.evaluation_.per_query["learned"]
    for k, query in enumerate(qrels):
        others = {q: own for q, own in qrels.items() if q != query}
        alone = FusionRanker(n_bootstraps=0, cv=0).fit(runs, others)
        own = evaluate_run(alone.fuse(runs), {query: qrels[query]}, ["ndcg@10"])
        # Ties between equally good weights may be broken differently.
        assert held_out[k] == pytest.approx(own.means["ndcg@10"], abs=0.35)
    training = evaluate_run(ranker.fuse(runs), qrels, ["ndcg@10"]).means["ndcg@10"]
    assert held_out.mean() <= training + 1e-12


def test_normalizers_are_chosen_by_cross_validation():
    runs, qrels = generated_runs(2, quality=(2.0, 2.0), n_queries=30)
    # One document per query and signal gets an absurd score, which ranks ignore.
    for k, run in enumerate(runs.values()):
        for own in run.values():
            own[f"noise{k}"] = 1e6
    ranker = FusionRanker(normalizer=["minmax", "rrf"], n_bootstraps=5, cv=3).fit(runs, qrels)
    assert ranker.normalizer_ == "rrf"
    assert ranker.evaluation_.normalizers["rrf"] > ranker.evaluation_.normalizers["minmax"]
    assert ranker.verdict_ == ranker.evaluation_.verdict


def test_query_features_are_compared_with_none():
    runs, qrels = generated_runs(3, n_queries=12)
    features = {q: {"length": k % 3} for k, q in enumerate(qrels)}
    ranker = FusionRanker(n_bootstraps=5, cv=3).fit(runs, qrels, query_features=features)
    assert "learned, without query features" in ranker.evaluation_.per_query


def test_too_few_queries_have_no_evaluation():
    runs, qrels = generated_runs(4, n_queries=1)
    ranker = FusionRanker(n_bootstraps=5).fit(runs, qrels)
    assert ranker.evaluation_ is ranker.verdict_ is None
