"""--dask of train and train-sparse."""

import json
import sys

import numpy as np
import pytest
from distributed import LocalCluster

from marginrank import RankingData, RankSVM, SparseRankSVM, StopReason, load_model, make_ranking
from marginrank.dask.clusters import ClusterError
from marginrank.dask.executor import DaskExecutor

LEARNERS = {
    "train": (RankSVM(C=0.1), ("-C", "0.1")),
    "train-sparse": (SparseRankSVM(radius=1.0), ("--radius", "1")),
}


@pytest.fixture(scope="module")
def ranking():
    return make_ranking(200, 10, 6, dtype=np.float32, random_state=0)


@pytest.fixture(scope="module")
def stores(tmp_path_factory, ranking):
    """Two stores, of half of the queries each."""
    X, y, qid = ranking
    folder = tmp_path_factory.mktemp("stores")
    paths = [folder / "a.store", folder / "b.store"]
    for path, rows in zip(paths, (qid < 100, qid >= 100), strict=True):
        RankingData(X[rows], y[rows], qid[rows]).save(path)
    return paths


@pytest.fixture(scope="module")
def scheduler():
    """Return the address of a cluster of two workers."""
    options = {"threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with LocalCluster(n_workers=2, protocol="tcp", **options) as cluster:
        yield cluster.scheduler_address


@pytest.mark.parametrize("command", LEARNERS)
def test_the_optimum_is_that_of_all_documents_in_memory(
    run, stores, ranking, scheduler, tmp_path, command
):
    X, y, qid = ranking
    estimator, flags = LEARNERS[command]
    expected = estimator.fit(X, y, qid=qid)
    flags = (*flags, "--dask", scheduler, "--valid", stores[0], "--metrics", "ndcg@3", "--json")
    done = run(command, *stores, "--model", tmp_path / "m.json", *flags)
    found = load_model(tmp_path / "m.json")
    assert type(found) is type(expected)
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-6)
    result = json.loads(done.stdout)
    assert result["converged"]
    assert result["data"] == {
        "documents": 2000,
        "queries": 200,
        "features": 6,
        "pairs": RankingData(X, y, qid).n_pairs,
    }
    assert result["dask"] == {"scheduler": scheduler, "workers": 2, "parts": 2}
    assert 0 < result["valid"]["ndcg@3"] <= 1
    assert list(result["seconds"]) == ["import", "load", "read", "solve", "write", "evaluate"]


def test_workers_that_the_command_starts_itself(run, stores, scheduler, tmp_path):
    done = run("train", *stores, "--model", tmp_path / "a.json", "--dask", "local[2]", "--verbose")
    run("train", *stores, "--model", tmp_path / "b.json", "--dask", scheduler)
    a, b = (load_model(tmp_path / f"{name}.json") for name in "ab")
    np.testing.assert_array_equal(a.coef_, b.coef_)
    told = [line.split() for line in done.stdout.splitlines()]
    assert ["workers", "2"] in told
    assert ["parts", "2"] in told
    lines = [line for line in done.stderr.splitlines() if line.startswith("iter ")]
    rows = round(2000 * (1 + a.history_[-1].sweeps))
    assert f"  rows {rows:,}  parts 2  workers 2" in lines[-1]


def test_a_cluster_that_fails_leaves_the_best_weights(
    invoke, stores, scheduler, tmp_path, monkeypatch
):
    run_tasks, sweeps = DaskExecutor.run, []

    def fail_later(executor, *args, **options):
        sweeps.append(options.get("sweep", False))
        if sum(sweeps) > 6:
            raise ClusterError("the Dask cluster is on fire.")
        return run_tasks(executor, *args, **options)

    monkeypatch.setattr(DaskExecutor, "run", fail_later)
    model = tmp_path / "m.json"
    done = invoke("train", *stores, "--model", model, "--dask", scheduler, "--tol", "1e-10")
    assert done.returncode == 2
    expected = f"marginrank: the Dask cluster is on fire; the best weights so far are in {model}."
    assert done.stderr.splitlines()[-1] == expected
    assert load_model(model).stop_reason_ is StopReason.FAILED


@pytest.mark.parametrize(
    "where",
    ["", "local", "local[]", "local[0]", "local[-1]", "local[99999]", "host", "tcp://a b:1"],
)
def test_what_is_no_cluster(invoke, stores, where):
    done = invoke("train", stores[0], "--model", "m.json", f"--dask={where}")
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"marginrank: --dask '{where}' must be the address of a scheduler"
    )


@pytest.mark.parametrize("where", ["tcp://127.0.0.1:9", "127.0.0.1:9", "pigeon://127.0.0.1:9"])
def test_a_scheduler_that_is_not_there(invoke, stores, where, tmp_path, monkeypatch):
    monkeypatch.setattr("marginrank.cli.support.cluster.PATIENCE", "1s")
    done = invoke("train", stores[0], "--model", tmp_path / "m.json", "--dask", where)
    assert done.returncode == 2
    sentence = done.stderr.splitlines()[-1]
    assert sentence.startswith(f"marginrank: --dask {where}: no scheduler answers there; start one")


@pytest.mark.parametrize(
    ("command", "flags", "sentence"),
    [
        (
            "train",
            ("--memory-limit", "2GB"),
            "--memory-limit cannot be combined with --dask; drop one.",
        ),
        ("train", ("--pairs", "p.txt"), "--pairs cannot be combined with --dask; drop one."),
        (
            "train",
            ("--objective", "ndcg@5"),
            "--objective cannot be combined with --dask; drop one.",
        ),
        (
            "train-sparse",
            ("--memory-limit", "2GB"),
            "--memory-limit cannot be combined with --dask; drop one.",
        ),
        (
            "train-sparse",
            ("--path", "3", "--valid", "v.txt"),
            "--dask cannot be combined with --path; drop one.",
        ),
    ],
)
def test_flags_that_do_not_go_with_it(invoke, stores, command, flags, sentence):
    done = invoke(command, stores[0], "--model", "m.json", "--dask", "local[1]", *flags)
    assert done.stderr == f"marginrank: {sentence}\n"


def test_text_is_sent_to_convert(invoke, train_txt):
    done = invoke("train", train_txt, "--model", "m.json", "--dask", "local[1]")
    assert f"--dask is for a store, but {train_txt} is text; write one with" in done.stderr


def test_without_dask_its_extra_is_named(invoke, stores, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = invoke("train", stores[0], "--model", tmp_path / "m.json", "--dask", "local[1]")
    assert done.returncode == 2
    assert done.stderr == (
        "marginrank: distributed is not installed; get it with: "
        "pip install 'dask[dataframe,distributed]'\n"
    )


def test_a_query_in_two_stores(invoke, stores, scheduler, tmp_path):
    flags = ("--model", tmp_path / "m.json", "--dask", scheduler)
    done = invoke("train", stores[0], stores[0], *flags)
    assert done.returncode == 2
    assert not (tmp_path / "m.json").exists()
    assert done.stderr.splitlines()[-1] == (
        "marginrank: query 0 is in the partitions 0 and 1, but queries must not be split; write "
        "stores of whole queries."
    )


def test_ctrl_c_ends_the_workers_as_well(interrupted, stores, tmp_path):
    flags = ("--dask", "local[2]", "--loss", "hinge", "--solver", "bmrm", "--tol", "1e-12")
    rest = interrupted("train", *stores, "--model", tmp_path / "m.json", *flags)
    assert rest == ["marginrank: interrupted; no file is half-written"]
    assert not (tmp_path / "m.json").exists()
