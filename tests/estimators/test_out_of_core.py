"""Fits to a store within a limit on memory."""

import gc
import json
import os
import subprocess
import sys
import weakref
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp

from marginrank import (
    KernelRankSVM,
    RankingData,
    RankSVM,
    RankSVMCV,
    SparseRankSVM,
    StopReason,
    load_model,
    make_ranking,
)
from marginrank._utils.memory import private_memory
from marginrank.data.store.feature_reader import FeatureReader
from marginrank.data.store.store_writer import save_store
from marginrank.fit import inputs
from marginrank.operators.parts import matrix as parts_matrix
from marginrank.operators.parts import streaming

ROOM = 400_000_000  # beside what the process has already, for buffers, samples and all else


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(streaming, "PART_BYTES", 1 << 13)


@pytest.fixture
def store(tmp_path):
    return make_store(tmp_path / "data.store")


def make_store(folder, layout=np.float32, n_queries=400, docs_per_query=(1, 40), **weights):
    X, y, qid = make_ranking(n_queries, docs_per_query, 12, random_state=3)
    X = sp.csr_array(np.where(X > 0, X, 0)) if layout == "csr" else X.astype(layout)
    RankingData(X, y, qid, **weights).save(folder)
    return folder


def limit(room=ROOM):
    return private_memory() + room


def assert_same_optimum(found, expected, tol):
    assert found.stop_reason_.converged
    assert abs(found.objective_ - expected.objective_) <= 2 * tol * expected.objective_
    assert found.n_pairs_ == expected.n_pairs_
    assert found.history_[-1].fraction == 1.0


@pytest.mark.parametrize(
    ("layout", "parameters"),
    [
        (np.float32, {}),
        (np.float64, {}),
        ("csr", {}),
        (np.float32, {"loss": "huber", "pair_cost": "ndcg", "normalization": "query"}),
        ("csr", {"loss": "hinge"}),
        (np.float32, {"loss": "hinge", "solver": "ocas", "tol": 1e-4}),
        (np.float64, {"loss": "hinge", "solver": "bmrm", "tol": 1e-3}),
        ("csr", {"solver": "tron"}),
        (np.float32, {"margin": "label", "scale": "standard"}),
        (np.float64, {"scale": "query", "pair_selection": "adjacent"}),
        ("csr", {"scale": "standard"}),
        ("csr", {"scale": "query"}),
    ],
    ids=str,
)
def test_the_optimum_is_that_of_a_fit_in_memory(tmp_path, layout, parameters):
    folder = make_store(tmp_path / "s", layout, n_queries=200)
    expected = RankSVM(C=0.1, **parameters).fit(RankingData.open(folder))
    found = RankSVM(C=0.1, **parameters).fit(folder, memory_limit=limit())
    assert_same_optimum(found, expected, expected.tol)


@pytest.mark.parametrize(
    "parameters",
    [
        {"radius": 0.5},
        {"C": 1.0, "l1_ratio": 0.5},
        {"radius": 0.5, "solver": "fenchel", "tol": 1e-3},
    ],
    ids=str,
)
def test_sparse_weights(tmp_path, parameters):
    store = make_store(tmp_path / "s", n_queries=100)
    expected = SparseRankSVM(**parameters).fit(RankingData.open(store))
    found = SparseRankSVM(**parameters).fit(store, memory_limit=limit())
    assert_same_optimum(found, expected, expected.tol)
    np.testing.assert_array_equal(found.coef_ != 0, expected.coef_ != 0)


def test_weights_and_pairs(tmp_path):
    n = len(make_ranking(400, (1, 40), 12, random_state=3)[1])
    rng = np.random.default_rng(0)
    folder = make_store(
        tmp_path / "s",
        sample_weight=rng.uniform(0.5, 2.0, n),
        query_weight=rng.integers(0, 3, 400).astype(float),
    )
    data = RankingData.open(folder)
    starts = data.queries.offsets[:-1][data.queries.sizes > 3]
    pairs = np.concatenate([np.column_stack([starts, starts + k]) for k in (1, 3)])
    for given in ({}, {"pairs": pairs}, {"propensity": rng.uniform(0.1, 1.0, n)}):
        expected = RankSVM(C=0.1).fit(data, **given)
        found = RankSVM(C=0.1).fit(folder, memory_limit=limit(), **given)
        assert_same_optimum(found, expected, 1e-6)


def test_limits_and_threads_do_not_change_the_bits(store):
    fits = [
        RankSVM(C=0.1, n_jobs=threads).fit(store, memory_limit=limit(room))
        for threads in (1, 2, 3)
        for room in (ROOM, ROOM + 300_000, 3 * ROOM)
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.coef_, fits[0].coef_)
        assert fit.objective_ == fits[0].objective_
        assert fit.gap_ == fits[0].gap_


def test_an_opened_store_and_sizes_in_words(store):
    expected = RankSVM(C=0.1).fit(store, memory_limit=limit())
    for source in (store, str(store), RankingData.open(store)):
        found = RankSVM(C=0.1).fit(source, memory_limit="64 GB")
        np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_a_path_alone_is_read_into_memory(store, recwarn):
    found = RankSVM(C=0.1).fit(store)
    np.testing.assert_array_equal(found.coef_, RankSVM(C=0.1).fit(RankingData.open(store)).coef_)
    assert not recwarn


def test_a_store_larger_than_free_memory_streams_and_says_so(store, monkeypatch):
    expected = RankSVM(C=0.1).fit(store, memory_limit=limit())
    monkeypatch.setattr(inputs, "available_memory", lambda: 1000)
    monkeypatch.setattr(inputs, "SHARE_OF_FREE", ROOM / 1000)
    for source in (store, RankingData.open(store)):
        with pytest.warns(UserWarning, match=r"0 MB.*disk"):
            found = RankSVM(C=0.1).fit(source)
        np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_pinned_blocks_are_read_once(store, monkeypatch):
    readers = []

    class Reader(FeatureReader):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            readers.append(self)

    monkeypatch.setattr(parts_matrix, "FeatureReader", Reader)
    found = RankSVM(C=0.1).fit(store, memory_limit=limit())
    assert found.history_[-1].sweeps > 3
    n_bytes = RankingData.open(store).X.nbytes
    assert readers[0].bytes_read == n_bytes


def test_a_limit_that_is_too_small_is_refused_with_numbers(store):
    message = r"memory_limit is 100 MB, .* [\d.,]+ .B: [\d.,]+ .B "
    with pytest.raises(ValueError, match=message):
        RankSVM().fit(store, memory_limit="100MB")


def test_what_is_not_on_disk_has_no_limit(store):
    data = RankingData.open(store)
    in_memory = data.with_features(np.array(data.X))
    message = "memory_limit .* these are in memory"
    with pytest.raises(ValueError, match=message):
        RankSVM().fit(in_memory, memory_limit="64GB")
    with pytest.raises(ValueError, match=message):
        RankSVM().fit(data.X, data.y, qid=data.qid, memory_limit="64GB")
    with pytest.raises(ValueError, match=r"y\b.*path"):
        RankSVM().fit(store, data.y)
    with pytest.raises(ValueError, match="memory_limit='lots'"):
        RankSVM().fit(store, memory_limit="lots")


def test_rows_that_are_apart_are_refused_with_the_way_out(tmp_path):
    X, y, qid = make_ranking(20, 5, 3, random_state=0)
    order = np.random.default_rng(0).permutation(len(y))
    RankingData(X[order], y[order], qid[order]).save(tmp_path / "s")
    with pytest.raises(ValueError, match="marginrank convert"):
        RankSVM().fit(tmp_path / "s", memory_limit="64GB")


def test_a_store_that_is_gone(tmp_path, store):
    with pytest.raises(OSError, match=r"nothing is not a folder"):
        RankSVM().fit(tmp_path / "nothing", memory_limit="64GB")
    data = RankingData.open(store)
    os.rename(store, tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"X\.npy"):
        RankSVM().fit(data, memory_limit="64GB")


def cut_after(monkeypatch, store, sweeps):
    """Cut X of a store short when it has been read so many times, nothing of it pinned."""
    n_rows = RankingData.open(store).n_documents
    seen = {"rows": 0}

    class Cutting(FeatureReader):
        def __init__(self, *args, **options):
            options["pinned_bytes"] = 0
            super().__init__(*args, **options, on_read=self.count)

        @staticmethod
        def count(rows, n_bytes):
            seen["rows"] += rows
            if seen["rows"] > sweeps * n_rows:
                os.truncate(store / "X.npy", 20_000)

    def make(*args, on_read=None, **options):
        return Cutting(*args, **options)

    make.memory_needed = FeatureReader.memory_needed
    monkeypatch.setattr(parts_matrix, "FeatureReader", make)


@pytest.mark.parametrize("learner", [RankSVM(C=0.1), SparseRankSVM(radius=0.5)], ids=repr)
def test_a_file_that_is_cut_keeps_the_best_weights(store, learner, monkeypatch):
    cut_after(monkeypatch, store, 5.5)
    with pytest.raises(OSError, match=r"X\.npy.* \d+ of \d+"):
        learner.fit(store, memory_limit=limit())
    assert learner.stop_reason_ is StopReason.FAILED
    assert learner.coef_.shape == (12,)
    assert np.any(learner.coef_ != 0)
    assert learner.objective_ == min(
        line.objective for line in learner.history_ if line.fraction == 1.0
    )


def test_a_sample_certifies_nothing_when_a_fit_fails(tmp_path, monkeypatch):
    folder = make_store(tmp_path / "s", n_queries=4000)
    cut_after(monkeypatch, folder, 1.5)
    model = RankSVM(C=0.1)
    with pytest.raises(OSError, match=r"X\.npy"):
        model.fit(folder, memory_limit=limit())
    assert model.history_
    assert all(line.fraction < 1.0 for line in model.history_)
    assert np.any(model.coef_ != 0)
    assert model.objective_ == model.gap_ == np.inf  # that of all documents is not known
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").coef_, model.coef_)


@pytest.mark.parametrize("sweeps", [0.5, 5.5])
def test_a_fit_that_fails_gives_back_its_memory(store, monkeypatch, sweeps):
    """At once, and not when cycles of references are collected some time later."""
    cut_after(monkeypatch, store, sweeps)
    matrices = []
    init = parts_matrix.StreamedMatrix.__init__

    def remembered(matrix, *args, **options):
        init(matrix, *args, **options)
        matrices.append(weakref.ref(matrix))

    monkeypatch.setattr(parts_matrix.StreamedMatrix, "__init__", remembered)
    gc.collect()
    gc.disable()
    try:
        with suppress(OSError, ValueError):
            RankSVM(C=0.1).fit(store, memory_limit=limit())
        assert [matrix() for matrix in matrices] == [None]
    finally:
        gc.enable()


def test_a_hinge_fit_that_fails_keeps_weights_of_its_own_problem(store, monkeypatch):
    cut_after(monkeypatch, store, 60)
    model = RankSVM(C=0.1, loss="hinge", tol=1e-9)
    with pytest.raises(OSError, match=r"X\.npy"):
        model.fit(store, memory_limit=limit())
    monkeypatch.undo()
    exact = RankSVM(C=0.1, loss="hinge", tol=1e-6).fit(make_store(store.parent / "again"))
    assert model.objective_ >= exact.objective_ - exact.gap_
    assert model.objective_ - model.gap_ <= exact.objective_


def test_a_long_query_without_pairs(tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "PART_BYTES", 1024)
    folder = make_store(tmp_path / "s", n_queries=24, docs_per_query=30)
    starts = RankingData.open(folder).queries.offsets[:-1:3]
    pairs = np.concatenate([np.column_stack([starts + k, starts + 2 * k]) for k in (1, 3, 7)])
    for parameters in ({"loss": "hinge"}, {"tol": 1e-9}, {"loss": "huber"}):
        expected = RankSVM(C=0.1, **parameters).fit(RankingData.open(folder), pairs=pairs)
        found = RankSVM(C=0.1, **parameters).fit(folder, pairs=pairs, memory_limit=limit())
        assert_same_optimum(found, expected, expected.tol)


def test_an_unpacked_store_that_is_open_stays_in_memory(tmp_path, monkeypatch, recwarn):
    X, y, qid = make_ranking(400, 20, 12, random_state=3)
    save_store(RankingData(np.round(X), y, qid)._parts(), tmp_path / "s", packed=True)
    data = RankingData.open(tmp_path / "s")
    assert data.stored.layout == "packed"
    enough = inputs.STATE_BYTES * data.n_documents + data.X.nbytes // 2
    monkeypatch.setattr(inputs, "available_memory", lambda: enough)
    RankSVM(C=0.1).fit(data)
    assert not recwarn


def test_rows_that_are_apart_are_mapped_whatever_the_memory(tmp_path, monkeypatch):
    X, y, qid = make_ranking(20, 5, 3, random_state=0)
    order = np.random.default_rng(0).permutation(len(y))
    RankingData(X[order], y[order], qid[order]).save(tmp_path / "s")
    expected = RankSVM().fit(tmp_path / "s").coef_
    monkeypatch.setattr(inputs, "available_memory", lambda: 0)
    np.testing.assert_array_equal(RankSVM().fit(tmp_path / "s").coef_, expected)


def test_a_path_where_data_are_meant(store):
    for estimator in (RankSVMCV(), KernelRankSVM()):
        with pytest.raises(TypeError, match=r"path.*RankingData\.open"):
            estimator.fit(str(store))
    with pytest.raises(TypeError, match="path"):
        RankSVM(C=0.1).fit(store).predict(store)


def test_sizes_of_numpy(store):
    found = RankSVM(C=0.1).fit(store, memory_limit=np.int64(2**36))
    np.testing.assert_array_equal(
        found.coef_, RankSVM(C=0.1).fit(store, memory_limit=np.float32(2**36)).coef_
    )


def test_damage_is_found_by_the_first_sweep(store):
    with open(store / "X.npy", "r+b") as file:
        file.seek(-3, os.SEEK_END)
        file.write(b"?")
    with pytest.raises(ValueError, match=r"X\.npy.*checksum"):
        RankSVM().fit(store, memory_limit=limit())


@pytest.mark.parametrize(
    "names",
    [[f"MQ2008/S{k}.txt.gz" for k in (1, 2, 3)], [f"OHSUMED/S{k}.txt.gz" for k in (1, 2, 3)]],
)
def test_real_data(real_data, tmp_path, names):
    X, y, qid = real_data(*names)
    RankingData(X, y, qid).save(tmp_path / "s")
    expected = RankSVM(C=1e-3, tol=1e-9).fit(X, y, qid=qid)
    found = RankSVM(C=1e-3, tol=1e-7).fit(tmp_path / "s", memory_limit=limit())
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-7)
    assert found.objective_ >= expected.objective_ - expected.gap_


UNDER_A_LIMIT = """
import json, resource, sys
from marginrank import RankSVM, RankingData
from marginrank._utils.memory import private_memory, reserved_memory
from marginrank.operators.parts import matrix, streaming
streaming.PART_BYTES, matrix.RESERVOIR_BYTES = 1 << 20, 1 << 21
resource.setrlimit(resource.RLIMIT_DATA, 2 * (reserved_memory() + 130_000_000,))
limit = private_memory() + 130_000_000
model = RankSVM(C=1e-3, n_jobs=2).fit(sys.argv[1], memory_limit=limit)
print(json.dumps([model.objective_, model.stop_reason_.converged, model.history_[-1].sweeps]))
"""


RESERVES_ADDRESSES = """
import mmap, sys
from marginrank import RankSVM
addresses = mmap.mmap(-1, 2 * 10**9, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
RankSVM(C=0.1).fit(sys.argv[1], memory_limit="1GB")
"""


def test_addresses_that_a_library_reserves_do_not_count(store):
    """As allocators do: pandas with pyarrow has a gigabyte of them."""
    command = [sys.executable, "-c", RESERVES_ADDRESSES, store]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


KEEPS_THE_PLAN = """
import resource, sys
from marginrank import RankSVM, SparseRankSVM
from marginrank._utils.memory import reserved_memory
from marginrank.operators.parts import matrix as parts_matrix
plan = parts_matrix.StreamedMatrix.memory_plan
def exact(matrix):
    planned = plan(matrix)
    matrix._limit = planned.needed
    more = planned.needed - planned.used
    resource.setrlimit(resource.RLIMIT_DATA, 2 * (reserved_memory() + more,))
    return planned
parts_matrix.StreamedMatrix.memory_plan = exact
model = eval(sys.argv[1]).fit(sys.argv[2], memory_limit="64GB")
assert model.stop_reason_.converged, model.stop_reason_
"""


@pytest.fixture(scope="module")
def many_documents(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many") / "s"
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900_000, 2), dtype=np.float32)
    y = np.digitize(X.sum(axis=1) + rng.normal(size=len(X)), [0.0, 1.0])
    RankingData(X, y, group=np.full(18_000, 50)).save(folder)
    return folder


@pytest.mark.parametrize(
    "learner",
    [
        "RankSVM(C=1e-4, loss='huber')",
        "RankSVM(C=1e-4, loss='hinge', tol=1e-4)",
        "RankSVM(C=1e-4, loss='hinge', solver='ocas', tol=1e-3)",
        "SparseRankSVM(radius=0.5, tol=1e-4)",
    ],
)
def test_solvers_keep_to_the_plan(many_documents, learner):
    """With few features, what solvers keep of documents is most of all memory."""
    command = [sys.executable, "-c", KEEPS_THE_PLAN, learner, str(many_documents)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_a_process_that_may_not_have_more_memory(tmp_path):
    """X has 160 MB, and the process may have 130 MB beside what it begins with, 115 of them for
    other things."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200_000, 200), dtype=np.float32)
    y = np.digitize(X[:, :20].sum(axis=1) + 4 * rng.normal(size=len(X)), [0.0, 4.0])
    data = RankingData(X, y, group=np.full(2_000, 100))
    data.save(tmp_path / "s")
    command = [sys.executable, "-c", UNDER_A_LIMIT, str(tmp_path / "s")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    objective, converged, sweeps = json.loads(run.stdout)
    assert converged
    assert sweeps > 3
    assert objective == pytest.approx(RankSVM(C=1e-3).fit(data).objective_, rel=2e-6)
