"""Learning to rank and fusion in pipelines of PyTerrier, without its Java part."""

import numpy as np
import pandas as pd
import pytest
from helpers.fusion import assert_same_order, fusion_model, random_runs

from marginrank import RankSVM, make_ranking

pt = pytest.importorskip("pyterrier", reason="PyTerrier: pip install python-terrier")


def frames(seed):
    """Return documents with features, in mixed order, and their judgments."""
    X, y, qid = make_ranking(n_queries=60, docs_per_query=12, n_features=4, random_state=seed)
    order = np.random.default_rng(seed).permutation(len(y))
    documents = pd.DataFrame(
        {
            "qid": [f"q{q}" for q in qid],
            "query": "words",
            "docno": [f"d{k}" for k in range(len(y))],
            "features": list(X),
            "score": 0.0,
            "rank": 0,
        }
    )
    qrels = pd.DataFrame({"qid": documents["qid"], "docno": documents["docno"], "label": y})
    return documents.iloc[order].reset_index(drop=True), qrels, (X, y, qid)


def test_apply_learned_model():
    train, qrels, (X, y, qid) = frames(0)
    test, test_qrels, (X_test, _, _) = frames(1)
    pipeline = pt.ltr.apply_learned_model(RankSVM(C=0.1), form="ltr")
    pipeline.fit(train, qrels, test, test_qrels)
    expected = RankSVM(C=0.1).fit(X, y, qid=qid).predict(X_test)
    found = pipeline.transform(test).set_index("docno")["score"]
    np.testing.assert_allclose(found[[f"d{k}" for k in range(len(X_test))]], expected, rtol=1e-4)


def test_fusion_transformer():
    """The transformer of docs/how_to/runs.md."""
    model = fusion_model("rrf")
    runs = random_runs(model.signals)
    results = {
        name: pd.DataFrame(
            [(q, d, s) for q, found in run.items() for d, s in found.items()],
            columns=["qid", "docno", "score"],
        )
        for name, run in runs.items()
    }
    retrievers = {
        name: pt.apply.generic(lambda topics, f=frame: f[f["qid"].isin(topics["qid"])])
        for name, frame in results.items()
    }

    def fuse(topics):
        fused = model.fuse({name: search(topics) for name, search in retrievers.items()})
        rows = [(q, d, s) for q, found in fused.items() for d, s in found.items()]
        return pt.model.add_ranks(pd.DataFrame(rows, columns=["qid", "docno", "score"]))

    topics = pd.DataFrame({"qid": list(next(iter(runs.values()))), "query": "words"})
    fused = pt.apply.generic(fuse)(topics)
    for query, expected in model.fuse(runs).items():
        own = fused[fused["qid"] == query].sort_values("rank")
        assert_same_order(expected, own["docno"].tolist(), accuracy=0.0)
