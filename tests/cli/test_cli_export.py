"""marginrank export."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from marginrank import (
    KernelRankSVM,
    RankingData,
    RankSVM,
    dump_letor,
    load_letor,
    load_model,
    make_ranking,
)
from marginrank.models import FusionModel, LinearModel, write_model
from marginrank.models.json_model import write


def exported(run, model_json, *arguments):
    return json.loads(run("export", model_json, *arguments, "--json").stdout)


def test_files_are_written_and_listed(run, tmp_path, model_json):
    out = tmp_path / "ranker.json"
    result = exported(run, model_json, "--to", "elasticsearch", "--out", out)
    names = ["ranker.json", "ranker.features.json", "ranker.rescore.json"]
    assert result["files"] == [str(tmp_path / name) for name in names]
    assert sorted(names) == sorted(path.name for path in tmp_path.iterdir())
    weights = json.loads(out.read_text())["model"]["model"]["definition"]
    assert list(weights.values()) == load_model(model_json).coef_.tolist()
    assert list(weights) == ["f1", "f2", "f3", "f4", "f5", "f6"]


@pytest.mark.parametrize("target", ["sqlite", "python", "solr"])
def test_verification(run, tmp_path, model_json, test_txt, target):
    result = exported(
        run, model_json, "--to", target, "--out", tmp_path / "m", "--verify", test_txt
    )["verification"]
    scores = np.array(run("predict", model_json, test_txt).stdout.split(), dtype=float)
    assert result["documents"] == len(scores)
    assert result["spread"] == pytest.approx(np.ptp(scores))
    assert result["reordered_queries"] == 0
    assert 0 < result["largest_difference"] < 1e-5 * result["spread"]


@pytest.mark.parametrize("target", ["sqlite", "duckdb", "python", "c", "onnx"])
def test_additive_models_are_exported_and_verified(run, tmp_path, train_txt, test_txt, target):
    model = tmp_path / "curves.json"
    run("train-additive", train_txt, "--model", model, "--tol", "1e-3")
    result = exported(run, model, "--to", target, "--out", tmp_path / "m", "--verify", test_txt)
    assert result["curves"] == result["features"] == 6
    assert result["interactions"] == 0
    assert "weights" not in result
    found = result["verification"]
    assert found["largest_difference"] <= 1e-12 * found["largest_score"]
    assert (found["reordered_queries"], found["documents"] > 0) == (0, True)


@pytest.mark.parametrize("target", ["sqlite", "postgresql", "python", "c", "onnx"])
def test_pairs_of_features_are_exported_and_verified(run, tmp_path, train_txt, test_txt, target):
    model, data = tmp_path / "pairs.json", ("--verify", test_txt)
    run("train-additive", train_txt, "--model", model, "--tol", "1e-3", "--interactions", "2")
    result = exported(run, model, "--to", target, "--out", tmp_path / "m", *data)
    assert result["interactions"] == 2
    found = result["verification"]
    assert found["largest_difference"] <= 1e-12 * found["largest_score"]
    assert (found["reordered_queries"], found["documents"] > 0) == (0, True)


def test_additive_models_are_refused_by_targets_without_curves(run, error_of, tmp_path, train_txt):
    model = tmp_path / "curves.json"
    run("train-additive", train_txt, "--model", model, "--tol", "1e-3")
    sentence = error_of("export", model, "--to", "solr", "--out", tmp_path / "m.json")
    assert "solr does not support additive models; export it to onnx" in sentence
    assert not (tmp_path / "m.json").exists()


def test_verification_for_people(run, tmp_path, model_json, test_txt):
    out = tmp_path / "m.sql"
    printed = run("export", model_json, "--to", "sqlite", "--out", out, "--verify", test_txt).stdout
    assert "order of documents  unchanged" in printed
    assert "largest difference" in printed
    assert "verified by         SQLite" in printed


def test_an_automatic_offset_keeps_scores_above_zero(run, tmp_path, model_json, test_txt):
    out = tmp_path / "m.py"
    arguments = ("--to", "python", "--out", out, "--offset", "auto", "--verify", test_txt)
    result = exported(run, model_json, *arguments)
    scores = np.array(run("predict", model_json, test_txt).stdout.split(), dtype=float)
    assert result["offset"] == pytest.approx(scores.max() - 2 * scores.min())
    assert result["verification"]["largest_difference"] < 1e-12


@pytest.mark.parametrize("target", ["elasticsearch", "lucene"])
def test_negative_scores_fail_verification(run, tmp_path, model_json, test_txt, target):
    arguments = ("export", model_json, "--to", target, "--out", tmp_path / "m")
    done = run(*arguments, "--verify", test_txt, code=1)
    scores = np.array(run("predict", model_json, test_txt).stdout.split(), dtype=float)
    offset = scores.max() - 2 * scores.min()
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == (
        f"marginrank: verification failed: {(scores < 0).sum()} of {len(scores)} scores are "
        f"negative, which the engine rejects. Pass --offset {offset:.6g}, or --offset auto."
    )
    assert list(tmp_path.iterdir()) == []
    cured = run(*arguments, "--verify", test_txt, "--offset", f"{offset:.6g}").stdout
    assert "checked against     a reference implementation of" in cured
    assert "verified by" not in cured
    assert (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        (
            1e6 + np.arange(60) % 7,
            "scores of the export differ from the scores of the model by up to ",
        ),
        (5.4e37 * (np.arange(60) % 7), "reference of Solr gives document 6 the score inf"),
    ],
)
def test_inaccurate_exports_fail_verification(run, tmp_path, column, sentence):
    """Scores of 1e6 have seven digits in float32, and 3.5e38 is infinite there."""
    model, data = tmp_path / "model.json", tmp_path / "data.txt"
    write(LinearModel(np.array([1.1]), {}), model)
    dump_letor(RankingData(column[:, None], np.zeros(60), np.arange(60) // 10), data)
    done = run("export", model, "--to", "solr", "--out", tmp_path / "m", "--verify", data, code=1)
    assert f"marginrank: verification failed: {sentence}" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "m").exists()


def test_names_of_features(run, tmp_path, model_json):
    names = tmp_path / "names.json"
    for given, expected in (
        (list("abcdef"), list("abcdef")),
        ({"f2": "title", "f6": "date"}, ["f1", "title", "f3", "f4", "f5", "date"]),
    ):
        names.write_text(json.dumps(given))
        out = tmp_path / "m.json"
        run(
            "export", model_json, "--to", "solr", "--out", out, "--names", names, "--name", "linear"
        )
        content = json.loads(out.read_text())
        assert list(content["params"]["weights"]) == expected
        assert content["name"] == "linear"


def test_exports_are_models_again(run, tmp_path, model_json, test_txt):
    scores = np.array(run("predict", model_json, test_txt).stdout.split(), dtype=float)
    for target in ("solr", "elasticsearch", "ranklib"):
        run("export", model_json, "--to", target, "--out", tmp_path / "m")
        again = run("predict", tmp_path / "m", test_txt).stdout.split()
        np.testing.assert_array_equal(np.array(again, dtype=float), scores)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--to", "elastic"], "unknown target 'elastic'; use one of elasticsearch"),
        (["--to", "c", "--offset", "auto"], "--offset auto needs --verify"),
        (["--to", "c", "--offset", "inf"], '--offset inf must be a finite number or "auto"'),
        (["--to", "ranklib", "--offset", "1"], "ranklib does not support --offset"),
        (["--to", "c", "--missing", "0"], "--missing needs --verify"),
        (["--to", "c", "--name", ""], "--name '' must be letters, digits and _"),
        (["--to", "c", "--name", "a b"], "--name 'a b' must be letters, digits and _"),
    ],
)
def test_flags_without_meaning_are_refused(error_of, tmp_path, model_json, arguments, sentence):
    assert error_of("export", model_json, *arguments, "--out", tmp_path / "m").startswith(sentence)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[1]", "must contain a JSON list of feature names, or an object {name"),
        ('"a"', "must contain a JSON list of feature names, or an object {name"),
        ("{", "names.json: "),
        ('["a"]', "--names has 1 entries and must have 6"),
        ('{"x": "y"}', "--names has 'x'"),
        ('["a", "b", "c", "d", "e", "a"]', "rename one with --names."),
    ],
)
def test_wrong_names_are_refused(error_of, tmp_path, model_json, content, sentence):
    names = tmp_path / "names.json"
    names.write_text(content)
    out = tmp_path / "m.c"
    told = error_of("export", model_json, "--to", "c", "--out", out, "--names", names)
    assert sentence in told
    assert not out.exists()


def test_no_input_is_overwritten(error_of, tmp_path, model_json):
    copy = tmp_path / "m.features.json"
    copy.write_bytes(model_json.read_bytes())
    told = error_of("export", copy, "--to", "solr", "--out", tmp_path / "m.json")
    assert "would overwrite the input" in told
    assert load_model(copy).coef_.size == 6


def test_nothing_is_written_that_cannot_be_verified(tmp_path, model_json, test_txt, monkeypatch):
    monkeypatch.setenv("PATH", "")
    out = tmp_path / "m.c"
    command = ["export", model_json, "--to", "c", "--out", out, "--verify", test_txt]
    done = subprocess.run(
        [sys.executable, "-m", "marginrank", *map(str, command)], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert re.search("cc is not on PATH.*a C compiler", done.stderr.splitlines()[-1])
    assert not out.exists()


@pytest.mark.parametrize(("package", "target"), [("onnx", "onnx"), ("sqlglot", "sql:mysql")])
def test_missing_extras_are_named(error_of, tmp_path, model_json, monkeypatch, package, target):
    monkeypatch.setitem(sys.modules, package, None)
    assert error_of("export", model_json, "--to", target, "--out", tmp_path / "m") == (
        f"{package} is not installed; get it with: pip install {package}"
    )


def test_kernel_models_are_exported_to_onnx(run, error_of, tmp_path, train_txt, test_txt):
    data = load_letor(train_txt)
    kernel, out = tmp_path / "kernel.npz", tmp_path / "m.onnx"
    KernelRankSVM(n_components=50).fit(data.X, data.y, qid=data.qid).save(kernel)
    result = exported(run, kernel, "--to", "onnx", "--out", out, "--verify", test_txt)
    found = result["verification"]
    assert (result["landmarks"], result["features"], found["reordered_queries"]) == (50, 6, 0)
    assert found["largest_difference"] <= 1e-12 * found["largest_score"]
    assert out.stat().st_size > 50 * 6 * 8
    told = error_of("export", kernel, "--to", "c", "--out", tmp_path / "m.c")
    assert told == (
        "c does not support kernel models; export it to onnx or onnx-float32, or train a RankSVM."
    )


def test_hostile_names_of_a_model_file(run, tmp_path):
    import pandas as pd

    X, y, qid = make_ranking(6, 5, 3, random_state=0)
    frame = pd.DataFrame(X, columns=['"; DROP TABLE documents; --', "new\nline", "日本語 '"])
    RankSVM().fit(frame, y, qid=qid).save(tmp_path / "model.json")
    frame.assign(label=y, qid=qid).to_parquet(tmp_path / "data.parquet")
    arguments = ("--out", tmp_path / "m", "--verify", tmp_path / "data.parquet")
    result = exported(run, tmp_path / "model.json", "--to", "sqlite", *arguments)
    assert result["verification"]["reordered_queries"] == 0
    assert result["verification"]["largest_difference"] < 1e-12


# Fusion models


@pytest.fixture
def fusion_json(tmp_path):
    path = tmp_path / "fusion.json"
    write_model(FusionModel(("bm25", "dense"), [0.25, 0.75], "rrf"), path)
    return path


def test_fusion_models(run, tmp_path, fusion_json):
    out = tmp_path / "pipeline.json"
    result = exported(run, fusion_json, "--to", "opensearch", "--out", out)
    assert result["files"] == [str(out), str(tmp_path / "pipeline.search.json")]
    assert result["signals"] == {"bm25": 0.25, "dense": 0.75}
    (processor,) = json.loads(out.read_text())["phase_results_processors"]
    settings = processor["score-ranker-processor"]["combination"]
    assert settings["parameters"]["weights"] == [0.25, 0.75]
    text = run("export", fusion_json, "--to", "qdrant", "--out", tmp_path / "q").stdout
    assert re.search(r"weight of dense +0\.75", text)


def test_signals_are_renamed(run, tmp_path, fusion_json):
    names = tmp_path / "names.json"
    names.write_text('{"bm25": "bm25(title)", "dense": "closeness(field, embedding)"}')
    out = tmp_path / "hybrid.profile"
    run("export", fusion_json, "--to", "vespa", "--out", out, "--names", names)
    assert "reciprocal_rank(bm25(title), 60.0) * 0.25" in out.read_text()
    assert "rank-profile hybrid " in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "weaviate"], "weaviate cannot run normalizer='rrf'"),
        (["--to", "python"], "'python' does not fuse results"),
        (["--to", "qdrant", "--offset", "1"], "--offset does not apply to fusion models"),
        (["--to", "qdrant", "--verify", "TEST"], "--verify does not apply to fusion models"),
    ],
)
def test_fusion_models_that_are_not_exported(
    run, tmp_path, fusion_json, test_txt, arguments, message
):
    arguments = [str(test_txt) if word == "TEST" else word for word in arguments]
    done = run("export", fusion_json, *arguments, "--out", tmp_path / "out", code=2)
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.fixture
def runs(tmp_path):
    """Return the arguments of fuse: two runs of eight queries, and their judgments."""
    qrels = {f"q{k}": {f"d{k % 3}": 1} for k in range(8)}
    dense = {q: {"d0": 0.1, "d1": 0.2, "d2": 0.3} | dict.fromkeys(qrels[q], 0.9) for q in qrels}
    bm25 = {q: {"d0": 3.0, "d1": 2.0, "d2": 1.0} for q in qrels}
    for name, content in {"bm25": bm25, "dense": dense, "qrels": qrels}.items():
        (tmp_path / name).write_text(json.dumps(content))
    return [tmp_path / "bm25", tmp_path / "dense", "--qrels", tmp_path / "qrels"]


def test_fuse_writes_the_settings_of_an_engine(run, tmp_path, runs):
    model, out = tmp_path / "fusion.json", tmp_path / "pipeline.json"
    target = ["--to", "opensearch", "--out", out]
    result = json.loads(run("fuse", *runs, "--model", model, *target, "--json").stdout)
    assert result["files"] == [str(out), str(tmp_path / "pipeline.search.json")]
    written = out.read_bytes()
    assert exported(run, model, *target)["signals"] == result["weights"]
    assert out.read_bytes() == written
    ranker = load_model(model)
    assert ranker.export(tmp_path / "python.json", "opensearch")[0] == str(tmp_path / "python.json")
    assert (tmp_path / "python.json").read_bytes() == written


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "opensearch"], "--to needs --out"),
        (["--out", "x"], "--out needs --to"),
        (["--to", "solr", "--out", "x"], "'solr' does not fuse results"),
    ],
)
def test_fuse_rejects_targets_before_the_fit(run, runs, arguments, message):
    assert message in run("fuse", *runs, *arguments, code=2).stderr
