"""Documents of collections and stores become parts; bad ones are named by partition and row."""

import os

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pytest
import scipy.sparse as sp
from collections_of import as_arrays, as_frame, as_stores, frame_of
from dask import delayed
from dask.sizeof import sizeof
from workers import wait_until

from marginrank import RankingData, make_ranking
from marginrank.dask import cuts
from marginrank.dask.chunks import chunk_of_store, plan_store
from marginrank.dask.clusters import ClusterError, fetch, find_client
from marginrank.dask.loading import load_parts
from marginrank.dask.parts import Part

X, Y, QID = make_ranking(40, 10, 5, random_state=0)
WHOLE = [100, 0, 250, 50]  # queries of ten documents are whole
CUT = [105, 195, 100]


def parts_of(client, X, partitions="as_is", **columns):
    loaded = load_parts(client, X, partitions, **columns)
    return fetch(client, loaded.parts)


def assert_same_documents(parts):
    """Assert that the parts have the documents of X, in order."""
    for name, expected in (("X", X), ("y", Y)):
        np.testing.assert_array_equal(
            np.concatenate([getattr(p.data, name) for p in parts]), expected
        )
    ids = [p.data.query_ids[p.data.qid] for p in parts]
    np.testing.assert_array_equal(np.concatenate(ids), QID)


def test_arrays(client):
    X_, y, qid = as_arrays(WHOLE, X, Y, QID)
    parts = parts_of(client, X_.rechunk({1: 2}), y=y.rechunk(-1), qid=qid)
    assert [part.number for part in parts] == [0, 2, 3]  # the empty one is left out
    assert_same_documents(parts)


@pytest.mark.parametrize("beside", [False, True])
def test_frames(client, beside):
    frame = as_frame(WHOLE, X, Y, QID)
    columns = {"y": "label", "qid": "query"}
    if beside:
        columns = {role: frame[name] for role, name in columns.items()}
        frame = frame.drop(columns=["label", "query"])
    assert_same_documents(parts_of(client, frame, **columns))


def test_frames_with_strings_for_queries(client):
    frame = as_frame(WHOLE, X, Y, np.array([f"q{q}" for q in QID]))
    parts = parts_of(client, frame, y="label", qid="query")
    ids = np.concatenate([part.data.query_ids for part in parts])
    assert ids.tolist() == [f"q{q}" for q in range(40)]


def test_every_query_that_is_cut_is_found(client, monkeypatch):
    """Hashes of many buckets are compared, those of one worker included."""
    monkeypatch.setattr(cuts, "BUCKET", 3)
    for first, second in [(0, 1), (0, 3), (1, 2), (2, 3)]:
        ids = np.repeat(np.arange(40), 10)
        ids[100 * second] = ids[100 * first]  # the first query of the one is in the other as well
        X_, y, qid = as_arrays([100] * 4, X, Y, ids)
        with pytest.raises(
            ValueError, match=f"query {10 * first} is in the partitions {first} and {second}"
        ):
            parts_of(client, X_, y=y, qid=qid)


def test_stores(client, tmp_path):
    assert_same_documents(parts_of(client, as_stores(tmp_path, [200, 200], X, Y, QID)))


def test_a_store_is_cut_between_queries(tmp_path):
    order = np.random.default_rng(0).permutation(len(Y))
    data = RankingData(
        sp.csr_array(X[order]),
        Y[order],
        QID[order],
        sample_weight=1.0 + order,
        query_weight=QID[::10] + 1.0,
    )
    data.save(tmp_path / "store")
    plan = plan_store(str(tmp_path / "store"), part_bytes=2000)
    assert len(plan.ranges) > 4
    chunks = [chunk_of_store(k, span) for k, span in enumerate(plan.ranges)]
    ids = [set(chunk.qid.tolist()) for chunk in chunks]
    assert sum(map(len, ids)) == len(set.union(*ids)) == 40
    rows = np.concatenate([chunk.sample_weight for chunk in chunks]).astype(int) - 1
    np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in chunks]), Y[rows])
    np.testing.assert_array_equal(np.concatenate([chunk.X.toarray() for chunk in chunks]), X[rows])
    weights = data.query_weight[data.qid][np.argsort(order)][rows]
    np.testing.assert_array_equal(np.concatenate([c.query_weight for c in chunks]), weights)


def test_weights_and_propensities(client):
    weight, propensity = np.linspace(1, 2, len(Y)), np.linspace(0.1, 1, len(Y))
    frame = frame_of(X, Y, QID).assign(w=weight, p=propensity, qw=1.0 + QID)
    parts = parts_of(
        client,
        dd.from_pandas(frame, npartitions=4, sort=False),
        y="label",
        qid="query",
        sample_weight="w",
        query_weight="qw",
        propensity="p",
    )
    assert parts[0].data.n_features == 5
    np.testing.assert_array_equal(np.concatenate([p.data.sample_weight for p in parts]), weight)
    np.testing.assert_array_equal(np.concatenate([p.propensity for p in parts]), propensity)
    np.testing.assert_array_equal(
        np.concatenate([p.data.query_weight for p in parts]), np.arange(1.0, 41)
    )


@pytest.mark.parametrize("ids", [QID, QID.astype(float), np.array([f"q{q}" for q in QID], object)])
def test_a_query_that_is_cut_is_named(client, ids):
    X_, y, qid = as_arrays(CUT, X, Y, ids)
    with pytest.raises(
        ValueError, match=rf"query {ids.tolist()[100]!r} is in the partitions 0 and 1"
    ):
        parts_of(client, X_, y=y, qid=qid)


@pytest.mark.parametrize("ids", [QID, np.array([f"q{q}" for q in QID], object)])
def test_by_query_puts_documents_together_in_their_order(client, ids):
    order = np.random.default_rng(0).permutation(len(Y))
    number = np.arange(len(Y), dtype=float)[:, None]
    parts = parts_of(
        client,
        *as_arrays(CUT, number)[:1],
        "by_query",
        **dict(zip(("y", "qid"), as_arrays(CUT, Y[order], ids[order]), strict=True)),
    )
    assert len(parts) == 3
    seen = [set(part.data.query_ids.tolist()) for part in parts]
    assert sum(map(len, seen)) == 40
    for part in parts:
        assert part.data.queries.rows is None
        rows = part.data.X[:, 0].astype(int)
        np.testing.assert_array_equal(part.data.query_ids[part.data.qid], ids[order][rows])
        np.testing.assert_array_equal(part.data.y, Y[order][rows])
        for query in np.split(rows, part.data.queries.offsets[1:-1]):
            assert (np.diff(query) > 0).all()


@pytest.mark.parametrize("partitions", ["as_is", "by_query"])
def test_nan_is_named_by_partition_and_row(client, partitions):
    bad = X.copy()
    bad[317, 2] = np.nan
    X_, y, qid = as_arrays(WHOLE, bad, Y, QID)
    with pytest.raises(ValueError, match=r"partition 2: X\[217, 2\] is NaN"):
        parts_of(client, X_, partitions, y=y, qid=qid)
    with pytest.raises(ValueError, match="partition 2: column 'clicks', row 217 is NaN"):
        parts_of(client, as_frame(WHOLE, bad, Y, QID), partitions, y="label", qid="query")


def declared_alike(*blocks):
    """Return an array of blocks, each said to be of the type of the first."""
    dtype = blocks[0].dtype
    return da.concatenate(
        [da.from_delayed(delayed(block), shape=block.shape, dtype=dtype) for block in blocks]
    )


@pytest.mark.parametrize("partitions", ["as_is", "by_query"])
def test_types_that_differ_are_named(client, partitions):
    X_, y, qid = as_arrays([200, 200], X, Y, QID)
    mixed = declared_alike(X[:200], X[200:].astype(np.float32))
    with pytest.raises(ValueError, match=r"1 has dense float32 .* partition 0 has dense float64"):
        parts_of(client, mixed, partitions, y=y, qid=qid)
    texts = declared_alike(QID[:200], QID[200:].astype(str))
    with pytest.raises(ValueError, match="1 has query ids that are strings and partition 0"):
        parts_of(client, X_, partitions, y=y, qid=texts)


def test_numbers_of_features_that_differ_are_named(client, tmp_path):
    for name, width in (("a", 5), ("b", 4)):
        RankingData(X[:, :width], Y, QID + (width == 4) * 100).save(tmp_path / name)
    with pytest.raises(ValueError, match="partition 1 has 4 features and partition 0 has 5"):
        parts_of(client, [tmp_path / "a", tmp_path / "b"])


def test_a_store_that_is_gone_is_named(client, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        parts_of(client, [str(tmp_path / "nowhere")])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((X, {}), "X is a ndarray and must be a Dask dataframe"),
        (("arrays", {"qid": QID}), "y is None|qid is a ndarray and X a Dask array"),
        (("arrays", {}), "y is None"),
        (("frame", {"y": "label"}), "qid is None.* 2 partitions"),
        (("frame", {"y": "nope", "qid": "query"}), "X has no column 'nope'"),
        (("stores", {"y": "label"}), r"y\b.*stores"),
        (("empty", {"y": "label", "qid": "query"}), "all 2 partitions are empty"),
    ],
)
def test_what_is_no_data_is_refused(client, tmp_path, given, message):
    kind, columns = given
    made = {
        "arrays": lambda: da.from_array(X, chunks=(200, 5)),
        "frame": lambda: as_frame([200, 200], X, Y, QID),
        "stores": lambda: as_stores(tmp_path, [400], X, Y, QID),
        "empty": lambda: as_frame([0, 0], X[:0], Y[:0], QID[:0]),
    }
    data = made[kind]() if isinstance(kind, str) else kind
    with pytest.raises((ValueError, TypeError), match=message):
        parts_of(client, data, **columns)


def test_dask_knows_the_size_of_parts():
    part = Part(0, RankingData(X, Y, QID))
    assert sizeof(part) >= X.nbytes + Y.nbytes


def test_a_closed_client_is_refused(new_cluster):
    client = new_cluster(1)
    client.close()
    with pytest.raises(ClusterError, match="the Dask client is closed"):
        find_client(client)


def test_a_worker_that_dies_is_replaced(new_cluster):
    """Loading is pure: what is lost is read again."""
    client = new_cluster(2, processes=True)
    X_, y, qid = as_arrays([100] * 4, X, Y, QID)
    loaded = load_parts(client, X_, y=y, qid=qid)
    first = next(iter(client.has_what()))
    client.submit(os._exit, 1, workers=[first], allow_other_workers=False, pure=False, retries=0)
    wait_until(lambda: first not in client.has_what())  # or nothing would be lost yet
    assert_same_documents(fetch(client, loaded.parts))
