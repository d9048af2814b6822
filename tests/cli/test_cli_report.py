"""marginrank report."""

import json

import pytest
from helpers.reports import decoded
from helpers.tables import each

from marginrank import load_letor, load_model


@pytest.fixture(scope="module")
def baseline_txt(files, model_json, test_txt):
    """Return a file of the scores of one feature."""
    path = files / "feature.txt"
    X = load_letor(test_txt, n_features=6).X
    path.write_text("".join(f"{s!r}\n" for s in X[:, 0].tolist()))
    return path


@pytest.fixture(scope="module")
def written(run, files, model_json, test_txt, train_txt, baseline_txt):
    """Return the record of a report and what the command printed."""
    sources = ("--baseline", baseline_txt, "--train", train_txt)
    out = files / "report.html"
    done = run("report", model_json, test_txt, *sources, "--out", out, "--json")
    return json.loads((files / "report.json").read_text()), json.loads(done.stdout)


def test_metrics_equal_those_of_evaluate(run, written, model_json, test_txt, baseline_txt):
    record, printed = written
    assert printed["metrics"] == record["metrics"]
    for side, sources in (("value", [model_json]), ("baseline", ["--scores", baseline_txt])):
        evaluated = json.loads(run("evaluate", *sources, test_txt, "--json").stdout)["metrics"]
        rows = {row["name"]: row[side] for row in record["metrics"]}
        values = {n: row["value"] if side == "baseline" else row for n, row in rows.items()}
        assert values == evaluated


def test_the_verdict_is_that_of_compare(run, written, model_json, test_txt, baseline_txt):
    sides = ("--model-a", model_json, "--scores-b", baseline_txt)
    compared = json.loads(run("compare", test_txt, *sides, "--json").stdout)
    record, printed = written
    for name in ("mean_a", "mean_b", "difference", "interval", "t_test_p", "randomization_p"):
        assert record["comparison"][name] == compared[name]
    assert f"{abs(compared['difference']):.4f} ndcg@10" in printed["verdict"]


def test_values_of_queries_equal_those_of_evaluate(run, written, model_json, test_txt, tmp_path):
    path = tmp_path / "by_query.tsv"
    run("evaluate", model_json, test_txt, "--metrics", "ndcg@10", "--per-query", path)
    rows = [line.split("\t") for line in path.read_text().splitlines()[1:]]
    table = written[0]["queries"]
    assert table["id"] == [query for query, _ in rows]
    assert table["value"] == pytest.approx([float(value) for _, value in rows], abs=1e-12)


def test_options_of_the_metric_are_spelled_out(run, model_json, test_txt, tmp_path):
    flags = ("--metric", "ndcg@3", "--gain", "linear", "--discount", "letor")
    out = tmp_path / "r.html"
    run("report", model_json, test_txt, *flags, "--out", out)
    metric = json.loads((tmp_path / "r.json").read_text())["metric"]
    assert "gain = label" in metric["text"]
    assert "1 at ranks 1 and 2, then 1 / log2(rank)" in metric["text"]
    assert metric["text"] in out.read_text("utf-8").replace("&#39;", "'")


def test_the_page_is_made_again_from_its_record(run, written, files, tmp_path):
    out = tmp_path / "again.html"
    run("report", "--from", files / "report.json", "--out", out)
    assert out.read_bytes() == (files / "report.html").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["again.html"]


def test_additive_models_and_judgments(run, train_txt, test_txt, tmp_path):
    model = tmp_path / "curves.json"
    run("train-additive", train_txt, "--model", model)
    run("report", model, test_txt, "--baseline", model, "--out", tmp_path / "r.html")
    record = json.loads((tmp_path / "r.json").read_text())
    assert record["curves"]
    assert record["comparison"]["ties"] == record["data"]["queries"]
    assert "There is no evidence" in record["verdict"]


@each(
    ("words", "message"),
    [
        (["m.json"], "pass a model and data"),
        (["m.json", "d.txt", "--out", "r.pdf"], "must end in .html"),
        (["m.json", "d.txt", "--from", "r.json"], "--from needs no model"),
        (["--from", "r.json", "--metric", "ndcg"], "--metric has no effect with --from"),
        (["m.json", "d.txt", "--out", "m.html"], "would overwrite the input"),
        (["m.json", "d.txt", "--out", "folder.html"], "folder.json is a folder"),
        (["--from", "d.txt"], "is not a report"),
    ],
)
def test_errors(error_of, tmp_path, monkeypatch, model_json, test_txt, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.json").write_bytes(model_json.read_bytes())
    (tmp_path / "d.txt").write_bytes(test_txt.read_bytes())
    (tmp_path / "r.json").write_text("{}")
    (tmp_path / "folder.json").mkdir(exist_ok=True)
    out = [] if "--out" in words else ["--out", "report.html"]
    assert message in error_of("report", *words, *out)
    assert not list(tmp_path.glob("*.html"))


def test_what_is_named_is_read(error_of, model_json, test_txt, tmp_path):
    out = ("--out", tmp_path / "r.html")
    missing = tmp_path / "none.txt"
    for flag in ("--baseline", "--train", "--qrels"):
        assert "none.txt" in error_of("report", model_json, test_txt, flag, missing, *out)


def test_scores_of_the_page_are_those_of_the_model(written, model_json, test_txt):
    data = load_letor(test_txt, n_features=6)
    scores = load_model(model_json).predict(data.X)
    block = next(one for one in written[0]["blocks"] if one["full"])
    size = len(block["label"])
    at = written[0]["blocks"].index(block)
    first = sum(written[0]["queries"]["documents"][:at])
    assert decoded(block).tolist() == scores[first : first + size].tolist()
