"""marginrank train."""

import json
import os
import re
import signal
from dataclasses import fields

import numpy as np
import pytest

from marginrank import (
    AdditiveRankSVM,
    RankingData,
    RankSVM,
    SGDRankSVM,
    SparseRankSVM,
    load_letor,
    load_model,
    make_ranking,
    metrics,
)
from marginrank._utils.parameters import Mention, Message, ParameterError, given


def test_equals_the_python_api_bitwise(trained, model_json, train_txt):
    data = load_letor(train_txt)
    expected = RankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_array_equal(load_model(model_json).coef_, expected.coef_)
    result = json.loads(trained.stdout)
    assert result["objective"] == expected.objective_
    assert result["gap"] == expected.gap_
    assert result["n_iter"] == expected.n_iter_
    assert result["stop_reason"] == expected.stop_reason_.name.lower()


def test_json_tells_data_parameters_and_seconds(trained, model_json, train_txt):
    result = json.loads(trained.stdout)
    data = load_letor(train_txt)
    assert result["data"] == {
        "documents": data.n_documents,
        "queries": data.n_queries,
        "features": data.n_features,
        "pairs": data.n_pairs,
    }
    assert result["model"] == str(model_json)
    assert result["parameters"]["C"] == 0.1
    assert list(result["seconds"]) == ["import", "read", "group", "solve", "write"]


def test_plain_lines_off_a_terminal(trained):
    phases = [line.split()[0].rstrip(":") for line in trained.stderr.splitlines()]
    assert phases == ["read", "group", "solve", "write"]


def test_bars_on_a_terminal(run_on_terminal, train_txt, tmp_path):
    printed, shown = run_on_terminal("train", train_txt, "--json", "--model", tmp_path / "m.json")
    assert json.loads(printed)["converged"]
    assert "\x1b[" in shown
    assert "train" in shown
    assert "solve:" not in shown


def test_table_and_validation(run, tmp_path, train_txt, test_txt, model_json):
    model = tmp_path / "m.json"
    arguments = ("--metrics", "ndcg@3,pairwise_accuracy", "--valid", test_txt, "--verbose")
    done = run("train", train_txt, "--model", model, "-C", "0.1", *arguments)
    for word in ("objective", "certified gap", "iterations", "stopped because", "ndcg@3", "solve"):
        assert word in done.stdout
    assert str(model) in "".join(done.stdout.split())
    assert any(line.startswith("iter ") for line in done.stderr.splitlines())
    np.testing.assert_array_equal(load_model(model).coef_, load_model(model_json).coef_)


def test_validation_equals_the_metrics(run, tmp_path, train_txt, test_txt):
    flags = ("--valid", test_txt, "--metrics", "ndcg@3,pairwise_accuracy", "--json")
    done = run("train", train_txt, "--model", tmp_path / "m.json", *flags)
    test = load_letor(test_txt, n_features=6)
    scores = load_model(tmp_path / "m.json").predict(test.X)
    assert json.loads(done.stdout)["valid"] == {
        "ndcg@3": metrics.ndcg(test.y, scores, qid=test.qid, k=3),
        "pairwise_accuracy": metrics.pairwise_accuracy(test.y, scores, qid=test.qid),
    }


def test_several_files_and_stdin_are_text(run, tmp_path, train_txt):
    lines = train_txt.read_text().splitlines(keepends=True)
    (tmp_path / "a.txt").write_text("".join(lines[:50]))
    (tmp_path / "b.txt").write_text("".join(lines[50:]))
    run("train", tmp_path / "a.txt", tmp_path / "b.txt", "--model", tmp_path / "parts.json")
    run("train", "-", "--model", tmp_path / "stdin.json", input="".join(lines))
    parts, stdin = (load_model(tmp_path / f"{name}.json") for name in ("parts", "stdin"))
    np.testing.assert_array_equal(parts.coef_, stdin.coef_)


def test_weights_of_a_store_and_of_a_table(run, tmp_path):
    X, y, qid = make_ranking(20, 10, 3, shuffle=True, random_state=0)
    weights = np.random.default_rng(0).integers(1, 4, size=(2, len(y))).astype(float)
    weights[1] = weights[1][qid]  # one value a query
    names = ("sample_weight", "query_weight")
    by_name = dict(zip(names, weights, strict=True))
    expected = RankSVM().fit(X, y, qid=qid, **by_name).coef_

    RankingData(X, y, qid, **by_name).save(tmp_path / "store")
    run("train", tmp_path / "store", "--model", tmp_path / "store.json")
    np.testing.assert_array_equal(load_model(tmp_path / "store.json").coef_, expected)

    rows = np.column_stack([y, qid, *weights, X]).tolist()
    lines = [",".join(map(repr, row)) for row in rows]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(["label,qid,sample,query,a,b,c", *lines]))
    flags = ("--sample-weight", "sample", "--query-weight", "query")
    run("train", table, "--model", tmp_path / "table.json", *flags)
    np.testing.assert_array_equal(load_model(tmp_path / "table.json").coef_, expected)


@pytest.mark.parametrize(
    ("name", "estimator"),
    [
        ("train", RankSVM),
        ("train-sparse", SparseRankSVM),
        ("train-additive", AdditiveRankSVM),
        ("train-online", SGDRankSVM),
    ],
)
def test_flags_are_those_of_the_estimator(name, estimator):
    from marginrank.cli.app import command
    from marginrank.cli.flags import shared as _options

    flags = {option.name: option.default for option in command(name).params}
    shared = {f.name for f in fields(_options.Reading) if f.name != "given"}
    shared |= {f.name for f in fields(_options.ValidationFlags)}
    shared |= {f.name for f in fields(_options.Resources)}
    own = {"pairs", "chunk_documents", "path", "parameter", "plot", "data"}
    learned = flags.keys() - shared - own - {"model", "json"}
    parameters = estimator().get_params()
    # Not of a command: a start, the share that is held out, and the name of a metric.
    left_out = {"warm_start", "validation_fraction", "scoring"}
    assert learned | {"n_jobs"} == parameters.keys() - left_out
    assert {name: flags[name] for name in learned} == {name: parameters[name] for name in learned}


def test_unfinished_fit_is_a_warning(run, tmp_path, train_txt):
    flags = ("--solver", "tron", "--max-iter", "1", "--tol", "1e-12", "--json")
    done = run("train", train_txt, "--model", tmp_path / "m.json", *flags)
    (warning,) = [line for line in done.stderr.splitlines() if ": warning: " in line]
    assert "The solver did not converge (--max-iter was reached)" in warning
    assert warning.endswith(". Increase --max-iter or --tol, or scale the features.")
    assert json.loads(done.stdout)["converged"] is False


def test_missing_file(error_of, tmp_path):
    sentence = error_of("train", tmp_path / "no.txt", "--model", tmp_path / "m.json")
    assert sentence == f"{tmp_path}/no.txt: No such file or directory"


def test_malformed_line(error_of, tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_text("1 qid:1 1:0.5\n0 qid:1 1:x\n")
    sentence = error_of("train", bad, "--model", tmp_path / "m.json")
    assert sentence.startswith(f"{bad}:2:")
    assert not (tmp_path / "m.json").exists()


def test_malformed_validation_data_are_refused_before_training(error_of, tmp_path, train_txt):
    bad = tmp_path / "bad.txt"
    bad.write_text("1 qid:1 7:0.5\n")
    sentence = error_of("train", train_txt, "--model", tmp_path / "m.json", "--valid", bad)
    assert sentence.startswith(f"{bad}:1:")
    assert not (tmp_path / "m.json").exists()


@pytest.mark.parametrize(
    ("flag", "value", "word"),
    [
        ("--loss", "hingee", "loss"),
        ("--C", "-1", "C"),
        ("--metrics", "ndgc", "ndgc"),
        ("--model", "no/such/folder/m.json", "folder"),
    ],
)
def test_wrong_flags_are_refused_before_reading(error_of, tmp_path, flag, value, word):
    flags = {"--model": tmp_path / "m.json", "--valid": "not_read.txt", flag: value}
    pairs = [part for item in flags.items() for part in item]
    assert word in error_of("train", tmp_path / "not_read.txt", *pairs)


def test_no_pair(error_of, tmp_path):
    flat = tmp_path / "flat.txt"
    flat.write_text("1 qid:1 1:0.5\n1 qid:1 1:2\n")
    assert "no pair" in error_of("train", flat, "--model", tmp_path / "m.json")


@pytest.fixture(params=[(), ("--memory-limit", "64GB")], ids=["in memory", "on disk"])
def slow_fit(request, tmp_path):
    """Return the arguments of a fit of many iterations, and the model that it would write."""
    X, y, qid = make_ranking(
        500, 100, 60, heavy_tail=1.0, correlation=0.9, dtype=np.float32, random_state=0
    )
    RankingData(X, y, qid).save(tmp_path / "data.store")
    flags = ("--solver", "tron", "--tol", "1e-14", "--model", tmp_path / "m.json", *request.param)
    return ("train", tmp_path / "data.store", *flags), tmp_path / "m.json"


def test_interrupted_train_writes_nothing(interrupted, slow_fit):
    arguments, model = slow_fit
    assert interrupted(*arguments) == ["marginrank: interrupted; no file is half-written"]
    assert [path.name for path in model.parent.iterdir()] == ["data.store"]


def test_progress_that_nobody_reads_any_more_writes_nothing(paused, slow_fit):
    arguments, model = slow_fit
    process = paused(["iter "], *arguments, "--verbose")
    process.read_to_pause()
    process.stop_reading()
    assert process.end()[0] in (141, -signal.SIGPIPE)
    assert not model.exists()


@pytest.fixture
def ungrouped(tmp_path):
    """Return a folder with text without qid, and files of group sizes."""
    (tmp_path / "train.txt").write_text("1 1:1\n0 1:2\n1 1:1.5\n0 1:3\n")
    (tmp_path / "train.group").write_text("2\n2\n")
    (tmp_path / "valid.txt").write_text("1 1:1\n0 1:2\n0 1:5\n")
    (tmp_path / "valid.group").write_text("3\n")
    return tmp_path


def test_validation_data_have_groups_of_their_own(run, ungrouped):
    flags = ("--group", ungrouped / "train.group", "--valid", ungrouped / "valid.txt", "--json")
    command = ("train", ungrouped / "train.txt", "--model", ungrouped / "m.json", *flags)
    done = run(*command, "--valid-group", ungrouped / "valid.group")
    assert "no qid" not in done.stderr
    assert json.loads(done.stdout)["valid"]["pairwise_accuracy"] == 1
    warning = f"{ungrouped}/valid.txt has no qid, so all documents count as one query"
    assert run(*command).stderr.count(warning) == 1


def test_text_without_queries_is_a_warning(run, ungrouped):
    train_txt = ungrouped / "train.txt"
    warning = (
        f"marginrank: warning: {train_txt} has no qid, so all documents count as one query; if "
        "they are not, pass --group.\n"
    )
    done = run("train", train_txt, "--model", ungrouped / "m.json")
    assert done.stderr.count(warning) == 1
    assert "warning" not in run("predict", ungrouped / "m.json", train_txt).stderr


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("train", "valid"),
        ("train-sparse", "valid"),
        ("train-online", "valid"),
        ("tune", "valid"),
        ("tune", "test"),
        ("learning-curve", "valid"),
    ],
)
def test_data_to_judge_by_have_a_flag_of_their_own_for_queries(
    invoke, train_txt, tmp_path, command, name
):
    judged = tmp_path / "judged.txt"
    lines = train_txt.read_text().splitlines()[:20]
    judged.write_text("".join(f"{re.sub('qid:[0-9]+ ', '', line)}\n" for line in lines))
    flags = [] if command == "learning-curve" else ["--model", tmp_path / "m.json"]
    flags += ["-C", "0.1"] if command == "tune" else []
    done = invoke(command, train_txt, f"--{name}", judged, *flags)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"{judged} has no qid.* --{name}-group\.\n", done.stderr)


def test_group_sizes_that_do_not_fit_are_named(error_of, ungrouped):
    flags = ("--model", ungrouped / "m.json", "--group", ungrouped / "valid.group")
    assert error_of("train", ungrouped / "train.txt", *flags) == (
        f"{ungrouped}/valid.group: the group sizes sum to 3, but {ungrouped}/train.txt has 4 "
        "documents; write one size per query."
    )


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--model", "."), ". is a folder; name a file to write to."),
        (("--model", "-"), '"-" is standard input; name a file to write to.'),
        (("--valid", "no.txt"), "no.txt: No such file or directory"),
        (("--valid-group", "g"), "--valid-group needs --valid."),
    ],
)
def test_wrong_files_are_refused_before_reading(run, tmp_path, flags, sentence):
    (tmp_path / "bad.txt").write_text("not read")
    model = () if "--model" in flags else ("--model", tmp_path / "m.json")
    done = run("train", tmp_path / "bad.txt", *model, *flags, code=2)
    assert done.stderr == f"marginrank: {sentence}\n"


def test_a_folder_that_is_not_writable_is_refused(tmp_path, monkeypatch):
    from marginrank.cli.support.checks import check_writable

    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ValueError, match=f"{tmp_path} is not writable"):
        check_writable(str(tmp_path / "m.json"))


def test_standard_input_is_read_once(error_of, tmp_path):
    model = ("--model", tmp_path / "m.json")
    assert "only once" in error_of("train", "-", *model, "--valid", "-")
    assert "only once" in error_of("train", "-", "-", *model)


@pytest.mark.parametrize(
    ("text", "flags", "end"),
    [
        ("1 qid:1 0:1\n", (), "pass --zero-based if they start at 0."),
        ("1 qid:1 1:nan\n", (), "pass --missing to replace it."),
        ("1 qid:1 3:1\n", ("--n-features", "2"), "index 3 is beyond --n-features 2."),
        ("", (), "data.txt has no documents: it is empty or holds only comments."),
        ("1 qid:1 1:\x1b[2J\n", (), "'\\x1b[2J' is not a finite number."),
        ("1 qid:1 1:1\n", ("--C", "-1"), None),
    ],
)
def test_messages_are_of_the_command_line(error_of, tmp_path, text, flags, end):
    (tmp_path / "data.txt").write_text(text)
    model = ("--model", tmp_path / "m.json")
    sentence = error_of("train", tmp_path / "data.txt", *model, *flags)
    assert sentence.startswith("--C -1") if end is None else sentence.endswith(end)


@pytest.mark.parametrize(
    ("mention", "expected"),
    [
        (Mention("pair_cost"), "--pair-cost"),
        (Mention("label", ""), "--label"),
        (given("qid", None), '--qid ""'),
        (given("zero_based", True), "--zero-based"),
        (given("C", -1.0), "--C -1.0"),
        (given("solver", "newton"), "--solver 'newton'"),
    ],
)
def test_parameters_become_flags(mention, expected):
    from marginrank.cli.support.errors import message_of

    error = ParameterError("runs/C=1: ", mention, " and 'qid=3'")
    assert message_of(error) == f"runs/C=1: {expected} and 'qid=3'"
    assert message_of(ValueError("set C=1")) == "set C=1"


@pytest.mark.parametrize("command", ["train", "train-sparse", "train-online"])
def test_data_without_pairs_are_refused_in_words_of_the_command_line(run, tmp_path, command):
    (tmp_path / "data.txt").write_text("1 qid:1 1:1\n1 qid:1 1:2\n0 qid:2 1:2\n")
    done = run(command, tmp_path / "data.txt", "--model", tmp_path / "m.json", code=2)
    assert done.stderr.splitlines()[-1] == (
        "marginrank: there is no pair to learn from: no query has two documents with different "
        "labels (3 documents, 2 queries); check the labels and the queries."
    )


def test_warnings_name_flags_too():
    from marginrank.cli.support.errors import message_of

    message = Message("increase ", Mention("max_iter"), " or use ", Mention("RankSVM"))
    assert message_of(UserWarning(message)) == "increase --max-iter or use marginrank train"
    assert message_of(UserWarning("increase max_iter")) == "increase max_iter"


def test_the_features_that_a_model_has_are_not_a_flag(error_of, tmp_path, model_json):
    wide = tmp_path / "wide.txt"
    wide.write_text("1 qid:1 7:1\n")
    sentence = error_of("predict", model_json, wide)
    assert sentence == f"{wide}:1:9: index 7 is beyond the 6 features of the model."
