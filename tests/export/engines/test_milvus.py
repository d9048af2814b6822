"""Exports of fusion models in Milvus Lite, in a file. Its signals are vector fields."""

import numpy as np
import pytest
from helpers.fusion import N_QUERIES, assert_same_order

from marginrank.export.fusion import fusion_files
from marginrank.models import FusionModel

pymilvus = pytest.importorskip("pymilvus", reason="Milvus: pip install 'pymilvus[milvus-lite]'")
pytest.importorskip("milvus_lite", reason="Milvus: pip install 'pymilvus[milvus-lite]'")
N_DOCUMENTS, SIZE = 120, 6
SIGNALS = ("title", "body")
DEPTH = 15


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    client = pymilvus.MilvusClient(str(tmp_path_factory.mktemp("milvus") / "test.db"))
    schema = client.create_schema(auto_id=False)
    schema.add_field("id", pymilvus.DataType.INT64, is_primary=True)
    index = client.prepare_index_params()
    for signal in SIGNALS:
        schema.add_field(signal, pymilvus.DataType.FLOAT_VECTOR, dim=SIZE)
        index.add_index(signal, index_type="FLAT", metric_type="IP")
    client.create_collection("documents", schema=schema, index_params=index)
    rng = np.random.default_rng(0)
    rows = [
        {"id": k, **{name: rng.normal(size=SIZE).tolist() for name in SIGNALS}}
        for k in range(N_DOCUMENTS)
    ]
    client.insert("documents", rows)
    client.load_collection("documents")
    yield client
    client.close()


def by_document(hits):
    return {str(hit["id"]): hit["distance"] for hit in hits}


@pytest.mark.parametrize(("normalizer", "weights"), [("none", (0.3, 0.7)), ("rrf", (0.5, 0.5))])
def test_order(client, normalizer, weights):
    model = FusionModel(SIGNALS, weights, normalizer, rrf_constant=3, depth=DEPTH)
    exported = {}
    exec(fusion_files(model, "milvus")[""].decode(), exported)
    assert exported["SIGNALS"] == list(SIGNALS)
    rng = np.random.default_rng(1)
    for _ in range(N_QUERIES):
        vectors = {name: rng.normal(size=SIZE).tolist() for name in SIGNALS}
        runs, requests = {}, []
        for name in exported["SIGNALS"]:
            search = {"anns_field": name, "limit": exported["DEPTH"]}
            found = client.search("documents", [vectors[name]], search_params={}, **search)
            runs[name] = {"q": by_document(found[0])}
            requests.append(pymilvus.AnnSearchRequest([vectors[name]], param={}, **search))
        (fused,) = client.hybrid_search("documents", requests, exported["RANKER"], limit=99)
        assert_same_order(model.fuse(runs)["q"], list(by_document(fused)))
