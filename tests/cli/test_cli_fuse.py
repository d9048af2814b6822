"""marginrank fuse: the verdict first, the same numbers as the API, bad input in one sentence."""

import json

import pytest
from helpers.generated_runs import generated_runs

from marginrank import FusionRanker, dump_run, load_model

QUICK = ("--n-bootstraps", "5", "--cv", "3")


@pytest.fixture(scope="module")
def trec(tmp_path_factory):
    """Return a folder with two runs and qrels, and their content."""
    folder = tmp_path_factory.mktemp("fuse")
    runs, qrels = generated_runs(0, n_queries=12)
    for name, run in runs.items():
        dump_run(run, folder / f"{name}.run.gz")
    lines = [f"{q} 0 {d} {label}\n" for q, own in qrels.items() for d, label in own.items()]
    (folder / "qrels.txt").write_text("".join(lines))
    features = {q: {"length": k % 3} for k, q in enumerate(qrels)}
    (folder / "features.json").write_text(json.dumps(features))
    (folder / "nan.run").write_text("q0 Q0 d1 1 1.0 x\nq0 Q0 d2 2 nan x\n")
    (folder / "twice.run").write_text("q0 Q0 d1 1 1.0 x\nq0 Q0 d1 2 0.5 x\n")
    (folder / "ranks.run").write_text("q0 Q0 d1 1 1.0 x\nq0 Q0 d2 2 3.0 x\n")
    (folder / "other.txt").write_text("x9 0 d1 1\n")
    return folder, runs, qrels


def files(folder, *names):
    return [*(str(folder / name) for name in names), "--qrels", str(folder / "qrels.txt"), *QUICK]


def test_the_result_is_the_one_of_the_api(run, trec, tmp_path):
    folder, runs, qrels = trec
    out = tmp_path / "fusion.json"
    flags = (*files(folder, "s0.run.gz", "s1.run.gz"), "--model", out)
    result = json.loads(run("fuse", *flags, "--json").stdout)
    expected = FusionRanker(n_bootstraps=5, cv=3).fit(runs, qrels)
    loaded = load_model(out)
    assert list(result["weights"]) == ["s0", "s1"]
    assert result["weights"] == loaded.weights_ == expected.weights_
    assert set(result["methods"]) == set(expected.evaluation_.per_query)
    assert loaded.get_params()["cv"] == 3
    text = run("fuse", *flags).stdout
    assert text.startswith(result["verdict"] + "\n")
    assert f"{result['methods']['grid']['mean']:.4f} ±" in text


def test_names_lists_and_query_features(run, trec):
    folder, _, _ = trec
    named = [f"bm25={folder / 's0.run.gz'}", f"dense={folder / 's1.run.gz'}"]
    flags = [*named, "--qrels", folder / "qrels.txt", *QUICK, "--normalizer", "minmax,rrf"]
    features = ["--query-features", folder / "features.json"]
    result = json.loads(run("fuse", *flags, *features, "--json").stdout)
    assert list(result["weights"]) == ["bm25", "dense"]
    assert set(result["normalizers"]) == {"minmax", "rrf"}
    assert set(result["query_features"]["length"]["changes"]) == {"bm25", "dense"}
    assert "if length rises from 0 to 2" in run("fuse", *flags, *features).stdout


def test_bad_input(run, trec):
    folder, _, _ = trec
    for names, more, message in (
        (["nan.run"], (), "nan.run:2: score 'nan' is not a finite number"),
        (["twice.run"], (), "twice.run:2: document 'd1' of query 'q0' was listed before"),
        (["s0.run.gz", "s0.run.gz"], (), "names two runs"),
        (["s0.run.gz"], ("--normalizer", "x"), "--normalizer 'x'"),
        (["s0.run.gz"], ("--metric", "map"), "--metric 'map'"),
        (["s0.run.gz"], ("--query-features", str(folder / "qrels.txt")), "is not a JSON object"),
        (
            ["s0.run.gz"],
            ("--qrels", str(folder / "other.txt")),
            "no query of run 1 is in the qrels",
        ),
        (["s0.run.gz"], ("--model", str(folder / "s0.run.gz")), "would overwrite the input"),
    ):
        assert message in run("fuse", *files(folder, *names), *more, code=2).stderr
    done = run("fuse", *files(folder, "ranks.run"), "--cv", "0")
    assert done.stderr.count("ranks contradict scores") == 1


def test_other_commands_reject_fusion_models(run, trec, tmp_path):
    folder, _, _ = trec
    out = tmp_path / "fusion.json"
    run("fuse", *files(folder, "s0.run.gz"), "--model", out)
    assert "is a fusion model" in run("predict", out, folder / "qrels.txt", code=2).stderr
