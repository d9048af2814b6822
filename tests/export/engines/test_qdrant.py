"""Exports of fusion models in Qdrant, in memory. Its signals are named vectors."""

import json

import numpy as np
import pytest
from helpers.fusion import N_QUERIES, assert_same_order

from marginrank.export.fusion import fusion_files
from marginrank.models import FusionModel

qdrant = pytest.importorskip("qdrant_client", reason="Qdrant: pip install qdrant-client")
models = qdrant.models
N_DOCUMENTS, N_TERMS, SIZE = 120, 40, 6
SIGNALS = ("terms", "vector")


def sparse(rng, size):
    places = np.sort(rng.choice(N_TERMS, size, replace=False)).tolist()
    return {"indices": places, "values": rng.gamma(2.0, size=size).tolist()}


@pytest.fixture(scope="module")
def client():
    rng = np.random.default_rng(0)
    client = qdrant.QdrantClient(":memory:")
    client.create_collection(
        "documents",
        vectors_config={"vector": models.VectorParams(size=SIZE, distance=models.Distance.DOT)},
        sparse_vectors_config={"terms": models.SparseVectorParams()},
    )
    points = [
        models.PointStruct(
            id=k,
            vector={
                "vector": rng.normal(size=SIZE).tolist(),
                "terms": models.SparseVector(**sparse(rng, 5)),
            },
        )
        for k in range(N_DOCUMENTS)
    ]
    client.upsert("documents", points)
    return client


def queries():
    rng = np.random.default_rng(1)
    return [
        {"terms": sparse(rng, 4), "vector": rng.normal(size=SIZE).tolist()}
        for _ in range(N_QUERIES)
    ]


def filled(search, query):
    """Return a prefetch with the vectors of a query in place of the placeholders."""
    if "prefetch" in search:
        return {**search, "prefetch": [filled(inner, query) for inner in search["prefetch"]]}
    assert search["query"] == "QUERY"
    return {**search, "query": query[search["using"]]}


def answers(client, body):
    """Return the points of a request, which is read by the models of the REST interface."""
    request = models.QueryRequest(**body)
    found = client.query_points(
        "documents",
        prefetch=request.prefetch,
        query=request.query,
        using=request.using,
        limit=request.limit,
    )
    return {str(point.id): point.score for point in found.points}


@pytest.mark.parametrize("weights", [(0.3, 0.7), (0.5, 0.5), (-0.2, 1.2)])
@pytest.mark.parametrize("normalizer", ["rrf", "dbsf", "none"])
def test_order(client, normalizer, weights):
    model = FusionModel(SIGNALS, weights, normalizer, rrf_constant=3, depth=15)
    body = json.loads(fusion_files(model, "qdrant")[""])
    for query in queries():
        runs = {
            name: {"q": answers(client, {"query": query[name], "using": name, "limit": 15})}
            for name in SIGNALS
        }
        search = {**body, "prefetch": [filled(one, query) for one in body["prefetch"]], "limit": 99}
        assert_same_order(model.fuse(runs)["q"], list(answers(client, search)))
