"""Runs joined with qrels, against dictionaries of each query."""

import numpy as np
import pytest

from marginrank.data.runs import as_run, judged_documents, retrieved_features


def random_runs(seed, n_queries=8, n_runs=3):
    """Return runs with ties, missing queries and queries without judgments, and qrels."""
    rng = np.random.default_rng(seed)
    documents = [f"d{k}" for k in range(12)]

    def draw(most):
        return rng.choice(documents, rng.integers(0, most), replace=False).tolist()

    def queries():
        return [f"q{k}" for k in rng.permutation(n_queries) if rng.random() < 0.8] + ["last"]

    runs = {
        f"s{k}": {q: {d: float(rng.integers(0, 4)) for d in draw(11)} for q in queries()}
        for k in range(n_runs)
    }
    return runs, {q: {d: int(rng.integers(-1, 3)) for d in draw(6)} for q in queries()} | {
        "last": {"d3": 1}
    }


@pytest.mark.filterwarnings("ignore:.*judged queries are in no run")
@pytest.mark.parametrize("unjudged", ["irrelevant", "skip"])
@pytest.mark.parametrize("depth", [1, 4, None])
def test_documents_of_runs_and_qrels(depth, unjudged):
    for seed in range(20):
        runs, qrels = random_runs(seed)
        joined = judged_documents(list(runs.values()), qrels, unjudged=unjudged, depth=depth)
        row = 0
        for query, labels in qrels.items():
            tops = [
                sorted(run.get(query, {}).items(), key=lambda one: (one[1], one[0]))[::-1][:depth]
                for run in runs.values()
            ]
            found = set(labels)
            if unjudged == "irrelevant":
                found |= {document for top in tops for document, _ in top}
            for document in sorted(found, reverse=True):
                assert joined.query_ids[joined.query[row]] == query
                assert joined.document[row] == document
                assert joined.is_judged[row] == (document in labels)
                assert joined.y[row] == max(labels.get(document, 0), 0)
                expected = [dict(top).get(document, -np.inf) for top in tops]
                assert joined.scores[:, row].tolist() == expected
                row += 1
        assert joined.y.size == row


def test_features_of_runs_without_judgments():
    runs = {"a": {"q": {"x": 1.0, "y": 1.0, "z": 3.0}, "empty": {}}, "b": {}}
    found = retrieved_features(runs, None, 2, "irrelevant")
    assert found.document.tolist() == ["z", "y"]  # y and x are tied
    assert found.X.tolist() == [[3, 1, 0, 0, 3, 1], [1, 2, 0, 0, 3, 1]]
    assert found.query.tolist() == ["q", "q"]


def test_ids_that_become_equal_as_text():
    for run in ({"q": {1: 0.5, "1": 0.7}}, {1: {"d": 0.5}, "1": {"d": 0.7}}):
        with pytest.raises(ValueError, match=r"run: query '[q1]'"):
            as_run(run)


def test_runs_without_documents_are_named():
    for qrels in (None, {"q": {"x": 1}}):
        with pytest.raises(ValueError, match="all runs are empty"):
            retrieved_features({"a": {"q": {}}}, qrels, 2, "irrelevant")
