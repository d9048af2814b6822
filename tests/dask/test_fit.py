"""Fits on a cluster come to the optimum of a fit in memory, with the same bits on any cluster."""

import inspect
import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from collections_of import NAMES, as_arrays, as_data, as_frame, as_stores
from distributed import Client
from workers import nothing_left_on

from marginrank import RankSVM, SparseRankSVM, StopReason, load_model, make_ranking
from marginrank.dask import DaskRankSVM, DaskSparseRankSVM, clusters, executor
from marginrank.dask.clusters import ClusterError
from marginrank.dask.fit import fit_on_dask
from marginrank.dask.loading import load_parts
from marginrank.fit.linear import Parameters

X, Y, QID = make_ranking(300, 20, 5, random_state=0)
CHUNKS = [2000, 0, 1000, 2500, 500]
LOCAL = {DaskRankSVM: RankSVM, DaskSparseRankSVM: SparseRankSVM}


def fitted(client, model=None, chunks=CHUNKS):
    model = model or DaskRankSVM(C=0.1)
    return model.fit(**as_data(chunks, X, Y, QID), client=client)


def assert_same_optimum(model, local, tol=1e-6):
    assert model.objective_ == pytest.approx(local.objective_, rel=2 * tol)
    assert model.n_pairs_ == local.n_pairs_
    assert model.stop_reason_.converged


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"normalization": "query", "loss": "huber"},
        {"normalization": "pairs", "lam": 1e-3},
        {"loss": "hinge", "C": 1e-3},
        {"loss": "hinge", "C": 1e-3, "solver": "bmrm", "tol": 1e-4},
        {"scale": "standard", "solver": "tron"},
        {"scale": "query"},
        {"pair_cost": "ndcg"},
        {"pair_cost": np.subtract.outer(np.arange(5), np.arange(5)).clip(0)},
        {"pair_selection": "adjacent", "margin": "label"},
    ],
    ids=str,
)
def test_the_optimum_is_that_of_rank_svm(client, parameters):
    model = fitted(client, DaskRankSVM(**parameters))
    local = RankSVM(**parameters).fit(X, Y, qid=QID)
    assert_same_optimum(model, local, parameters.get("tol", 1e-6))


@pytest.mark.parametrize(
    "parameters", [{}, {"radius": 0.5}, {"scale": "range", "C": 10.0}], ids=str
)
def test_the_optimum_is_that_of_sparse_rank_svm(client, parameters):
    model = fitted(client, DaskSparseRankSVM(**parameters))
    local = SparseRankSVM(**parameters).fit(X, Y, qid=QID)
    assert_same_optimum(model, local)
    assert model.sparsity_ == local.sparsity_


def test_weights_and_propensities(client):
    rng = np.random.default_rng(0)
    columns = {
        "sample_weight": rng.uniform(0.5, 2, len(Y)),
        "query_weight": rng.uniform(0.5, 2, 300)[QID],
        "propensity": rng.uniform(0.1, 1, len(Y)),
    }
    local = RankSVM(normalization="query").fit(X, Y, qid=QID, **columns)
    X_, y, qid, *values = as_arrays(CHUNKS, X, Y, QID, *columns.values())
    model = DaskRankSVM(normalization="query").fit(
        X_, y, qid=qid, **dict(zip(columns, values, strict=True)), client=client
    )
    assert_same_optimum(model, local)


@pytest.mark.parametrize("layout", ["float32", "csr"])
def test_layouts(client, layout):
    convert = {"float32": lambda a: a.astype(np.float32), "csr": sp.csr_array}[layout]
    X_, y, qid = as_arrays([2000, 4000], X, Y, QID)
    model = DaskRankSVM().fit(X_.map_blocks(convert), y, qid=qid, client=client)
    assert_same_optimum(model, RankSVM().fit(convert(X), Y, qid=QID))


def test_cut_queries_are_refused_or_shuffled(client):
    arrays = as_data([2005, 3995], X, Y, QID)
    with pytest.raises(ValueError, match=r"query 100 .*partitions 0 and 1"):
        DaskRankSVM().fit(**arrays, client=client)
    model = DaskRankSVM().fit(**arrays, client=client, partitions="by_query")
    assert_same_optimum(model, RankSVM().fit(X, Y, qid=QID))


def test_partitions_without_pairs(client):
    y = np.where(QID < 100, 1.0, Y)  # the first partition has one label only
    model = DaskRankSVM().fit(**as_data(CHUNKS, X, y, QID), client=client)
    assert_same_optimum(model, RankSVM().fit(X, y, qid=QID))
    with pytest.raises(ValueError, match=r"pair.*n_samples=6000"):
        DaskRankSVM().fit(**as_data(CHUNKS, X, np.ones(6000), QID), client=client)


@pytest.mark.parametrize("dask_class", LOCAL)
def test_signatures_are_those_of_the_local_estimators(dask_class):
    local = LOCAL[dask_class]
    assert inspect.signature(dask_class) == inspect.signature(local)
    names = list(inspect.signature(local.fit).parameters)
    assert list(inspect.signature(dask_class.fit).parameters) == [*names, "client", "partitions"]


@pytest.mark.parametrize("name", ["group", "pairs", "pair_weight", "memory_limit"])
def test_what_belongs_to_one_process_is_refused(client, name):
    with pytest.raises(ValueError, match=f"{name} .*Dask cluster"):
        DaskRankSVM().fit(X, **{name: [1]}, client=client)


def test_a_goal_that_ranks_documents_is_refused(client):
    with pytest.raises(ValueError, match=r"objective='ndcg@10'.*dask"):
        DaskRankSVM(objective="ndcg@10").fit(**as_data(CHUNKS, X, Y, QID), client=client)


def test_frames_stores_and_predictions(client, tmp_path):
    frame = as_frame(CHUNKS, X, Y, QID)
    model = DaskRankSVM(C=0.1).fit(frame, "label", qid="query", client=client)
    assert model.feature_names_in_.tolist() == NAMES
    scores = model.predict(frame)
    assert scores.npartitions == len(CHUNKS)
    np.testing.assert_array_equal(
        scores.compute(), model.to_local().predict(pd.DataFrame(X, columns=NAMES))
    )
    paths = as_stores(tmp_path, [2500, 3500], X, Y, QID)
    of_stores = DaskRankSVM(C=0.1).fit(paths, client=client)
    assert_same_optimum(of_stores, model)
    expected = of_stores.to_local().predict(X)
    np.testing.assert_array_equal(of_stores.predict(paths).compute(), expected)
    of_arrays = of_stores.predict(da.from_array(X, chunks=(1000, 2)))
    assert of_arrays.chunks == ((1000,) * 6,)
    np.testing.assert_array_equal(of_arrays.compute(), expected)
    local = of_stores.to_local()
    assert type(local) is RankSVM
    assert local.get_params() == of_stores.get_params()
    assert of_stores.score(paths, client=client) == local.score(X, Y, qid=QID)


def test_model_files_are_those_of_the_local_estimators(client, tmp_path):
    for model in (fitted(client), fitted(client, DaskSparseRankSVM())):
        model.save(tmp_path / "model.json")
        loaded = load_model(tmp_path / "model.json")
        assert type(loaded) is LOCAL[type(model)]
        np.testing.assert_array_equal(loaded.coef_, model.coef_)
        assert loaded.gap_ == model.gap_
        assert len(loaded.history_) == len(model.history_)


def test_two_fits_at_once(client):
    expected = [fitted(client, DaskRankSVM(C=C)).coef_ for C in (0.1, 1.0)]
    found = {}

    def run(k, C):
        found[k] = fitted(client, DaskRankSVM(C=C)).coef_

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate((0.1, 1.0))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(2):
        np.testing.assert_array_equal(found[k], expected[k])


def test_workers_keep_nothing_of_a_fit(client):
    with nothing_left_on(client):
        fitted(client)


def test_what_the_client_receives(client, monkeypatch):
    """No vector of documents: at most three vectors of features a part and product."""
    received = []

    def fetch(*given):
        found = clusters.fetch(*given)
        received.extend(len(pickle.dumps(told)) for answer in found for told in answer)
        return found

    monkeypatch.setattr(executor, "fetch", fetch)
    model = fitted(client, DaskRankSVM(scale="standard"), [2000] * 3)
    assert model.stop_reason_.converged
    sample, products = received[:3], received[3:]
    assert min(sample) > 5_000
    assert len(products) > 40
    assert max(products) <= 3 * 8 * X.shape[1] + 1_000  # vectors of documents take 16,000


MANY_PRODUCTS = {"C": 10.0, "solver": "tron", "tol": 1e-9}


@pytest.fixture(scope="module")
def expected(client):
    return fitted(client, DaskRankSVM(**MANY_PRODUCTS))


@pytest.mark.parametrize("n_workers", [1, 3])
def test_the_bits_do_not_depend_on_the_workers(new_cluster, expected, n_workers):
    model = fitted(new_cluster(n_workers), DaskRankSVM(**MANY_PRODUCTS))
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.gap_ == expected.gap_


def fit_and_then(event, client):
    """Fit, and let something happen after the third iteration."""
    loaded = load_parts(client, *as_arrays(CHUNKS, X)[:1], **labels_and_queries())
    parameters = Parameters(**MANY_PRODUCTS)
    n_done = itertools.count(1)

    def callback(_):
        if next(n_done) == 3:
            event()

    return fit_on_dask(client, loaded, parameters, callback=callback)


def labels_and_queries():
    return dict(zip(("y", "qid"), as_arrays(CHUNKS, Y, QID), strict=True))


def kill_workers(client, n):
    """Kill some worker processes."""
    for process in list(client.run(os.getpid).values())[:n]:
        os.kill(process, signal.SIGKILL)


def lose_patience(monkeypatch):
    """Wait for nothing any more: to be called when the cluster is gone."""
    monkeypatch.setattr(clusters, "PATIENCE", 1.0)
    monkeypatch.setattr(clusters, "SLICE", 0.5)


@pytest.mark.parametrize("n_killed", [1, 2])
def test_workers_killed_in_mid_fit_leave_no_trace(new_cluster, expected, monkeypatch, n_killed):
    """Their nannies start new ones, even if none is left."""
    monkeypatch.setattr(clusters, "PATIENCE", 300.0)  # a busy machine starts them slowly
    client = new_cluster(2, processes=True)
    fit = fit_and_then(lambda: kill_workers(client, n_killed), client)
    np.testing.assert_array_equal(fit.coef, expected.coef_)
    assert fit.report.gap == expected.gap_


def test_without_workers_a_fit_ends_with_an_error(new_cluster, monkeypatch):
    """The best weights up to then are kept."""
    client = new_cluster(0)
    command = [sys.executable, "-m", "distributed.cli.dask_worker", client.scheduler.address]
    options = ["--no-nanny", "--nthreads", "1", "--no-dashboard"]
    workers = [subprocess.Popen([*command, *options]) for _ in range(2)]
    client.wait_for_workers(2)

    def kill_workers():
        for worker in workers:
            worker.kill()
            worker.wait()
        lose_patience(monkeypatch)

    fit = fit_and_then(kill_workers, client)
    assert isinstance(fit.report.error, ClusterError)
    assert "has had no workers" in str(fit.report.error)
    assert fit.report.stop_reason is StopReason.FAILED
    assert fit.coef.any()


def test_a_client_closed_in_mid_fit_is_an_error(new_cluster):
    client = new_cluster(1)
    fit = fit_and_then(client.close, client)
    assert isinstance(fit.report.error, ClusterError)
    assert "the Dask client is closed" in str(fit.report.error)


def test_a_scheduler_that_is_gone_is_an_error(new_cluster, monkeypatch):
    client = new_cluster(1)

    def close_cluster():
        client.cluster.close()
        lose_patience(monkeypatch)

    fit = fit_and_then(close_cluster, client)
    assert isinstance(fit.report.error, ClusterError)


def test_questions_to_a_cluster_that_was_closed_are_errors(new_cluster):
    client = new_cluster(1)
    future = client.submit(int, pure=False)
    client.cluster.close()
    client.close()
    for ask in (
        lambda: clusters.threads_by_worker(client),
        lambda: clusters.homes_of(client, [future]),
        lambda: clusters.fetch(client, [future]),
        lambda: clusters.map_tasks(client, int, ["1"]),
    ):
        with pytest.raises(ClusterError, match="the Dask client is closed"):
            ask()
    assert clusters.count_workers(client) == 0


@pytest.mark.parametrize("ask", [clusters.homes_of, clusters.fetch], ids=lambda ask: ask.__name__)
def test_a_client_that_is_closed_while_the_scheduler_is_asked_is_an_error(
    new_cluster, monkeypatch, ask
):
    client = new_cluster(1)
    future = client.submit(int, pure=False)
    begin = clusters._begin

    def close_and_begin(*question):
        client.close()
        return begin(*question)

    monkeypatch.setattr(clusters, "_begin", close_and_begin)
    with pytest.raises(ClusterError, match="the Dask client is closed"):
        ask(client, [future])


def test_a_scheduler_that_does_not_answer_is_an_error(client, monkeypatch):
    monkeypatch.setattr(clusters, "PATIENCE", 0.0)
    monkeypatch.setattr(clusters, "_begin", lambda *question: Future())
    with pytest.raises(ClusterError, match="scheduler has not answered for 0 seconds"):
        clusters.threads_by_worker(client)
    assert clusters.count_workers(client) == 0


def test_the_client_of_the_process_is_taken(client):
    assert Client.current() is client
    assert DaskRankSVM(C=0.1).fit(**as_data(CHUNKS, X, Y, QID)).n_pairs_ > 0
