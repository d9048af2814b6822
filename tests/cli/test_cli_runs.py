"""marginrank evaluate and compare with runs and qrels."""

import json

import numpy as np
import pytest

from marginrank import dump_run
from marginrank.metrics import compare_runs, evaluate_run


@pytest.fixture(scope="module")
def trec(tmp_path_factory):
    """Return a folder with two runs and qrels, and what they hold."""
    folder = tmp_path_factory.mktemp("trec")
    rng = np.random.default_rng(0)
    queries = [f"q{k}" for k in range(12)]
    qrels = {q: {f"d{d}": int(rng.integers(0, 3)) for d in range(6)} for q in queries}
    a, b = (
        {q: {f"d{d}": float(rng.normal()) for d in range(2, 10)} for q in queries} for _ in "ab"
    )
    dump_run(a, folder / "a.run")
    dump_run(b, folder / "b.run.gz")
    lines = [f"{q} 0 {d} {label}\n" for q, own in qrels.items() for d, label in own.items()]
    (folder / "qrels.txt").write_text("".join(lines))
    return folder, a, b, qrels


def test_a_run_has_the_values_of_the_api(run, trec, tmp_path):
    folder, a, _, qrels = trec
    names = ["ndcg@5", "map", "judged@5"]
    out = tmp_path / "by_query.tsv"
    files = ("--run", folder / "a.run", "--qrels", folder / "qrels.txt")
    flags = (*files, "--metrics", ",".join(names), "--per-query", out)
    result = json.loads(run("evaluate", *flags, "--json").stdout)
    expected = evaluate_run(a, qrels, names)
    assert result["metrics"] == expected.means
    assert result["bounds"]["map"] == list(expected.bounds["map"])
    header, *rows = [line.split("\t") for line in out.read_text().splitlines()]
    assert header == ["qid", *names]
    assert [row[0] for row in rows] == list(qrels)
    table = run("evaluate", *flags).stdout
    low, high = expected.bounds["ndcg@5"]
    assert f"{expected.means['ndcg@5']:.4f} ±" in table
    assert f"{low:.4f} … {high:.4f}" in table
    condensed = json.loads(run("evaluate", *flags, "--unjudged", "skip", "--json").stdout)
    assert condensed["metrics"] == evaluate_run(a, qrels, names, unjudged="skip").means


def test_runs_are_compared(run, trec):
    folder, a, b, qrels = trec
    files = ("--run-a", folder / "a.run", "--run-b", folder / "b.run.gz")
    done = run("compare", *files, "--qrels", folder / "qrels.txt", "--metric", "map", "--json")
    result = json.loads(done.stdout)
    expected = compare_runs(a, b, qrels, "map")
    assert result["difference"] == expected.difference
    assert result["randomization_p"] == expected.randomization_p
    assert (
        "map" in run("compare", *files, "--qrels", folder / "qrels.txt", "--metric", "map").stdout
    )


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("evaluate", "--run", "{a}"), "--qrels"),
        (("evaluate", "--qrels", "{q}"), "--run"),
        (("evaluate", "{q}", "--run", "{a}", "--qrels", "{q}"), "qrels.txt"),
        (("evaluate", "--run", "{a}", "--qrels", "{q}", "--group", "{q}"), "--group"),
        (("evaluate", "--run", "{a}", "--qrels", "{q}", "--metrics", "ndgc"), "--metrics 'ndgc'"),
        (("evaluate", "--run", "{a}", "--qrels", "{q}", "--unjudged", "drop"), "'drop'"),
        (("evaluate", "--run", "{q}", "--qrels", "{q}"), "qrels.txt:1: 4 columns"),
        (("evaluate", "--run", "{a}", "--qrels", "{q}none"), "qrels.txtnone"),
        (("compare", "--run-a", "{a}", "--qrels", "{q}"), "--run-b"),
        (
            ("compare", "--run-a", "{a}", "--run-b", "{a}", "--qrels", "{q}", "--model-a", "m"),
            "--model-a",
        ),
        (("compare",), "--run-a"),
        (("evaluate",), "--run"),
    ],
)
def test_flags_that_do_not_fit_are_named(error_of, trec, arguments, word):
    folder = trec[0]
    places = {"a": folder / "a.run", "q": folder / "qrels.txt"}
    assert word in error_of(*(argument.format(**places) for argument in arguments))
