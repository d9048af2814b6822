"""Exports of fusion models in LanceDB: a full-text search and a vector search."""

import numpy as np
import pytest
from helpers.fusion import N_QUERIES, assert_same_order

from marginrank.export.fusion import fusion_files
from marginrank.models import FusionModel

lancedb = pytest.importorskip("lancedb", reason="LanceDB: pip install lancedb")
N_DOCUMENTS, SIZE = 150, 6
VOCABULARY = [f"word{k}" for k in range(30)]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    rows = [
        {
            "id": f"d{k}",
            # Texts of different lengths have different scores: the ranks of ties are arbitrary.
            "text": " ".join(rng.choice(VOCABULARY, 5 + k)),
            "vector": rng.normal(size=SIZE).astype(np.float32).tolist(),
        }
        for k in range(N_DOCUMENTS)
    ]
    database = lancedb.connect(tmp_path_factory.mktemp("lancedb"))
    table = database.create_table("documents", rows)
    table.create_index("text", config=lancedb.index.FTS())
    return table


@pytest.mark.parametrize(("normalizer", "weights"), [("minmax", (0.3, 0.7)), ("rrf", (0.5, 0.5))])
def test_order(table, normalizer, weights):
    model = FusionModel(("text", "vector"), weights, normalizer, rrf_constant=3, depth=20)
    exported = {}
    exec(fusion_files(model, "lancedb")[""].decode(), exported)
    depth, rng = exported["DEPTH"], np.random.default_rng(1)
    for _ in range(N_QUERIES):
        words = " ".join(rng.choice(VOCABULARY, 3, replace=False))
        vector = rng.normal(size=SIZE).astype(np.float32).tolist()
        text_hits = table.search(words, query_type="fts").limit(depth).to_list()
        vector_hits = table.search(vector).limit(depth).to_list()
        assert len({hit["_score"] for hit in text_hits}) == len(text_hits)
        runs = {
            "text": {"q": {hit["id"]: hit["_score"] for hit in text_hits}},
            "vector": {"q": {hit["id"]: -hit["_distance"] for hit in vector_hits}},
        }
        hybrid = table.search(query_type="hybrid").vector(vector).text(words).limit(depth)
        found = [hit["id"] for hit in hybrid.rerank(exported["RERANKER"]).to_list()]
        expected = model.fuse(runs)["q"]
        best = sorted(expected, key=expected.get)[-len(found) :]  # limit() cuts the fused list, too
        assert len(found) == depth
        lowest = min(expected[document] for document in best)
        assert all(expected[document] >= lowest - 1e-6 for document in found)
        assert_same_order({document: expected[document] for document in found}, found)
