"""--memory-limit of train and train-sparse."""

import json
import os

import numpy as np
import pytest

from marginrank import RankingData, RankSVM, SparseRankSVM, StopReason, load_model, make_ranking
from marginrank._utils.memory import private_memory
from marginrank.data.store.feature_reader import FeatureReader
from marginrank.fit import inputs
from marginrank.fit.stream_progress import StreamProgress
from marginrank.operators.parts import streaming

LIMIT = "64GB"
LEARNERS = {
    "train": (RankSVM(C=0.1), ("-C", "0.1")),
    "train-sparse": (SparseRankSVM(radius=1.0), ("--radius", "1")),
}


@pytest.fixture(scope="module")
def ranking():
    return make_ranking(200, 10, 6, dtype=np.float32, random_state=0)


@pytest.fixture
def store(tmp_path, ranking):
    RankingData(*ranking).save(tmp_path / "data.store")
    return tmp_path / "data.store"


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(streaming, "PART_BYTES", 1 << 12)


@pytest.fixture
def nothing_pinned(monkeypatch):
    pin = FeatureReader._pin
    monkeypatch.setattr(FeatureReader, "_pin", lambda reader, _: pin(reader, 0))


@pytest.mark.parametrize("command", LEARNERS)
def test_equals_the_python_api_bitwise(run, store, tmp_path, command):
    estimator, flags = LEARNERS[command]
    model = tmp_path / "m.json"
    done = run(command, store, "--model", model, *flags, "--memory-limit", LIMIT, "--json")
    expected = estimator.fit(store, memory_limit=LIMIT)
    np.testing.assert_array_equal(load_model(model).coef_, expected.coef_)
    result = json.loads(done.stdout)
    assert result["objective"] == expected.objective_
    assert result["stream"] == {
        "memory_limit": 64 * 10**9,
        "n_parts": 1,
        "bytes_read": 48_000,
        "pinned_bytes": 48_000,
    }
    phases = [line.split()[0].rstrip(":") for line in done.stderr.splitlines()]
    assert phases == ["read", "solve", "write"]


@pytest.mark.usefixtures("small_parts", "nothing_pinned")
def test_what_was_read_is_in_the_table_and_in_each_line(invoke, store, tmp_path):
    flags = ("--memory-limit", LIMIT, "--verbose")
    done = invoke("train", store, "--model", tmp_path / "m.json", *flags)
    rows = dict(line.split("  ", 1) for line in done.stdout.splitlines() if "  " in line)
    told = {name: value.strip() for name, value in rows.items()}
    assert told["memory limit"] == "64.0 GB"
    assert told["parts"] == "12"
    assert told["kept in memory"] == "0 MB of X"
    lines = [line for line in done.stderr.splitlines() if line.startswith("iter ")]
    assert lines[-1].split("  read ")[1].split("  ")[0] == told["read from disk"]
    history = load_model(tmp_path / "m.json").history_
    assert f"rows {round(2000 * (1 + history[-1].sweeps)):,}  " in lines[-1]


def test_a_bar_on_a_terminal(run_on_terminal, store, tmp_path):
    flags = ("--memory-limit", LIMIT, "--json")
    printed, shown = run_on_terminal("train", store, "--model", tmp_path / "m.json", *flags)
    assert json.loads(printed)["converged"]
    assert "/2000" in shown
    assert "train  iteration" in shown
    assert "solve:" not in shown


def test_pairs_of_a_store(run, store, ranking, tmp_path):
    _, y, qid = ranking
    pairs = np.argwhere((qid[:, None] == qid) & (y[:, None] > y))[::3]
    np.savetxt(tmp_path / "p.pairs", pairs, fmt="%d", delimiter="\t")
    flags = ("--pairs", tmp_path / "p.pairs", "--memory-limit", LIMIT, "--json")
    done = run("train", store, "--model", tmp_path / "m.json", *flags)
    assert json.loads(done.stdout)["data"]["pairs"] == len(pairs)
    expected = RankSVM().fit(store, pairs=pairs, memory_limit=LIMIT)
    np.testing.assert_array_equal(load_model(tmp_path / "m.json").coef_, expected.coef_)


def test_validation_beside_a_store(run, store, test_txt, tmp_path):
    flags = ("--valid", test_txt, "--metrics", "ndcg@3", "--memory-limit", LIMIT, "--json")
    done = run("train", store, "--model", tmp_path / "m.json", *flags)
    assert 0 < json.loads(done.stdout)["valid"]["ndcg@3"] <= 1


@pytest.mark.parametrize("command", LEARNERS)
def test_a_store_larger_than_free_memory_streams_and_says_so(
    invoke, store, tmp_path, monkeypatch, command
):
    monkeypatch.setattr(inputs, "available_memory", lambda: 1000)
    monkeypatch.setattr(inputs, "SHARE_OF_FREE", 400_000)  # of 1000 bytes, as there are more
    done = invoke(command, store, "--model", tmp_path / "m.json", "--json")
    assert done.returncode == 0, done.stderr
    (warning,) = [line for line in done.stderr.splitlines() if ": warning: " in line]
    assert warning.startswith(f"marginrank: warning: {store} needs ")
    assert "--memory-limit " in warning
    assert json.loads(done.stdout)["stream"]["memory_limit"] > private_memory() / 2


def test_a_path_is_walked_in_memory(invoke, store, tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "available_memory", lambda: 1000)
    flags = ("--path", "3", "--valid", store, "--json")
    done = invoke("train-sparse", store, "--model", tmp_path / "m.json", *flags)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    done = invoke("train-sparse", store, "--model", "m.json", *flags, "--memory-limit", LIMIT)
    assert done.stderr == "marginrank: --memory-limit cannot be combined with --path; drop one.\n"


@pytest.mark.usefixtures("small_parts", "nothing_pinned")
@pytest.mark.parametrize("command", LEARNERS)
def test_a_file_that_is_cut_leaves_the_best_weights(invoke, store, tmp_path, monkeypatch, command):
    on_read = StreamProgress.on_read

    def cut_later(progress, n_rows, n_bytes):
        on_read(progress, n_rows, n_bytes)
        if progress.rows_read > 5.5 * progress.n_rows:
            os.truncate(store / "X.npy", 20_000)

    monkeypatch.setattr(StreamProgress, "on_read", cut_later)
    model = tmp_path / "m.json"
    flags = (*LEARNERS[command][1], "--tol", "1e-10", "--memory-limit", LIMIT)
    done = invoke(command, store, "--model", model, *flags)
    assert done.returncode == 2
    assert done.stdout == ""
    *_, written, sentence = done.stderr.splitlines()
    assert written.startswith("write ")
    assert sentence.startswith(f"marginrank: {store}/X.npy ended at byte 20000 of ")
    assert sentence.endswith(f"; the best weights so far are in {model}.")
    assert "warning" not in done.stderr
    kept = load_model(model)
    assert kept.stop_reason_ is StopReason.FAILED
    assert np.any(kept.coef_ != 0)


@pytest.mark.usefixtures("small_parts")
def test_a_file_that_is_cut_before_there_are_weights(invoke, store, tmp_path, monkeypatch):
    monkeypatch.setattr(StreamProgress, "__init__", _cutting(store / "X.npy"))
    done = invoke("train", store, "--model", tmp_path / "m.json", "--memory-limit", LIMIT)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"marginrank: {store}/X.npy ")
    assert not (tmp_path / "m.json").exists()


def _cutting(path):
    init = StreamProgress.__init__

    def cut(progress, *args, **options):
        os.truncate(path, 20_000)
        init(progress, *args, **options)

    return cut


@pytest.mark.parametrize("size", ["x", "", "0", "-1", "nan", "1e", "2 XB", "9" * 400])
@pytest.mark.parametrize("command", LEARNERS)
def test_what_is_no_size(invoke, store, command, size):
    done = invoke(command, store, "--model", "m.json", f"--memory-limit={size}")
    assert done.returncode == 2
    assert done.stderr == (
        f"marginrank: --memory-limit '{size}' must be a number of bytes, or a size such as "
        "'2GB' or '512MB'.\n"
    )


def test_a_limit_that_is_too_small(error_of, store, tmp_path):
    sentence = error_of("train", store, "--model", tmp_path / "m.json", "--memory-limit", "1MB")
    assert sentence.endswith("--dask.")
    assert sentence.startswith("--memory-limit is 1 MB, ")
    assert not (tmp_path / "m.json").exists()


@pytest.mark.parametrize(("suffix", "kind"), [("txt", "text"), ("csv", "a table")])
def test_text_and_tables_are_sent_to_convert(error_of, tmp_path, suffix, kind):
    path = tmp_path / f"train.{suffix}"
    path.write_text("not looked at")
    sentence = error_of("train", path, "--model", tmp_path / "m.json", "--memory-limit", "2GB")
    assert sentence == (
        f"--memory-limit is for a store, but {path} is {kind}; write one with: marginrank convert "
        f"{path} NEW.store, and train on that."
    )


def test_what_is_not_there(error_of, tmp_path):
    flags = ("--model", tmp_path / "m.json", "--memory-limit", "2GB")
    sentence = error_of("train", tmp_path / "no.store", *flags)
    assert sentence == f"{tmp_path}/no.store: No such file or directory"


def test_a_store_whose_queries_are_apart(error_of, tmp_path, ranking):
    order = np.random.default_rng(0).permutation(2000)
    RankingData(*(column[order] for column in ranking)).save(tmp_path / "apart.store")
    flags = ("--model", tmp_path / "m.json", "--memory-limit", LIMIT)
    sentence = error_of("train", tmp_path / "apart.store", *flags)
    assert sentence.startswith(f"{tmp_path}/apart.store: the rows")
    assert sentence.endswith("marginrank convert OLD NEW.")


def test_two_stores_are_refused(error_of, store, tmp_path):
    flags = ("--model", tmp_path / "m.json", "--memory-limit", LIMIT)
    assert "several files must all be text" in error_of("train", store, store, *flags)
