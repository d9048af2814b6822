"""`marginrank explain`: which pair, which contributions, and what it says of bad input."""

import json
import math

import numpy as np
import pytest

from marginrank import (
    AdditiveRankSVM,
    KernelRankSVM,
    RankingData,
    RankSVM,
    dump_letor,
    make_ranking,
)

NAMES = ["bm25", "age", "clicks", "words"]


@pytest.fixture(scope="module")
def data():
    X, y, qid = make_ranking(20, 8, 4, noise=1.0, random_state=0)
    X = X.astype(np.float32).astype(np.float64)
    comments = [f"docid = D{k} inc = 1" for k in range(len(y))]
    return RankingData(X, y, [f"q{q}" for q in qid], comments=comments)


@pytest.fixture(scope="module")
def files(data, tmp_path_factory):
    """Return a folder with data and with models of every kind."""
    folder = tmp_path_factory.mktemp("explain")
    dump_letor(data, folder / "data.txt")
    for name, model in MODELS.items():
        model.fit(data).save(folder / name)
    return folder


MODELS = {
    "linear.json": RankSVM(C=0.1),
    "additive.json": AdditiveRankSVM(interactions=1),
    "kernel.npz": KernelRankSVM(kernel="linear"),
}


def explained(run, files, *arguments, model="linear.json"):
    done = run("explain", files / model, files / "data.txt", *arguments, "--json")
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", MODELS)
def test_contributions_add_up_to_the_difference_of_the_scores(run, files, data, name):
    found = explained(
        run, files, "--query", "q3", "--documents", "2", "5", "--top", "2", model=name
    )
    rows = np.flatnonzero(data.qid == 3)
    scores = MODELS[name].predict(data.X[rows])
    order = np.argsort(-scores, kind="stable")
    assert [one["score"] for one in found["documents"]] == scores[order[[1, 4]]].tolist()
    assert [one["label"] for one in found["documents"]] == data.y[rows[order[[1, 4]]]].tolist()
    reasons = MODELS[name].explain(*data.X[rows[order[[1, 4]]]])
    assert [one["feature"] for one in found["contributions"]] == [r.name for r in reasons[:2]]
    parts = [one["contribution"] for one in found["contributions"]]
    parts.append(found["others"]["contribution"])
    assert found["others"]["features"] == len(reasons) - 2
    assert math.fsum(parts) == pytest.approx(found["sum"], rel=1e-15, abs=1e-15)
    assert found["sum"] == math.fsum(reason.difference for reason in reasons)
    size = np.abs(scores).max()
    assert found["sum"] == pytest.approx(np.subtract(*scores[order[[1, 4]]]), abs=1e-12 * size)


def test_by_default_the_top_pair_in_the_wrong_order(run, files, data):
    scores = MODELS["linear.json"].predict(data.X)
    n_wrong = 0
    for number in range(6):
        rows = np.flatnonzero(data.qid == number)
        labels = data.y[rows[np.argsort(-scores[rows], kind="stable")]]
        wrong = [(i, j) for i in range(8) for j in range(i + 1, 8) if labels[i] < labels[j]]
        first, second = wrong[0] if wrong else (0, 1)
        found = explained(run, files, "--query", f"q{number}")
        assert [one["rank"] for one in found["documents"]] == [first + 1, second + 1]
        text = run("explain", files / "linear.json", files / "data.txt", "--query", f"q{number}")
        assert ("wrong order" in text.stdout) == bool(wrong)
        n_wrong += bool(wrong)
    assert n_wrong > 0


def test_documents_by_comment_or_by_a_word_of_it(run, files):
    found = explained(run, files, "--query", "q3", "--documents", "D25", "docid = D30 inc = 1")
    assert [one["comment"].split()[2] for one in found["documents"]] == ["D25", "D30"]
    back = explained(run, files, "--query", "q3", "--documents", "D30", "D25")
    assert back["sum"] == -found["sum"]


def test_as_text(run, files):
    done = run("explain", files / "linear.json", files / "data.txt", "--query", "q3", "--top", "2")
    assert "Query q3" in done.stdout
    assert "docid = D" in done.stdout
    assert "2 others" in done.stdout
    assert "sum" in done.stdout
    assert "contribution" in done.stdout


def test_a_plot(run, files, tmp_path):
    arguments = (files / "linear.json", files / "data.txt", "--query", "q3")
    run("explain", *arguments, "--plot", tmp_path / "why.svg")
    assert b"difference of the scores" in (tmp_path / "why.svg").read_bytes()
    assert "must end in" in run("explain", *arguments, "--plot", tmp_path / "p.x", code=2).stderr


def test_missing_values_and_names_of_a_table_without_labels(run, tmp_path):
    X, y, qid = make_ranking(20, 8, 4, random_state=0)
    X[::5, 1] = np.nan
    data = RankingData(X, y, qid, feature_names=NAMES, allow_nan=True)
    AdditiveRankSVM().fit(data).save(tmp_path / "m.json")
    rows = [",".join("" if v != v else repr(v) for v in row) for row in X[:8].tolist()]
    (tmp_path / "t.csv").write_text("\n".join([",".join(NAMES), *rows]))
    done = run("explain", tmp_path / "m.json", tmp_path / "t.csv", "--qid", "", "--top", "9")
    assert all(name in done.stdout for name in NAMES)
    assert "missing" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--query", "q99"],
            "--query 'q99' is not in the data: .*data.txt has 20 queries (q0, q1,",
        ),
        ([], "data.txt has 20 queries (q0, q1, q2, q3, q4, …); pass the id of one as --query."),
        (["--query", "q3", "--documents", "9", "1"], "'9' is not a document of query q3; name one"),
        (["--query", "q3", "--documents", "D1", "1"], "position in the ranking, 1 to 8, or by its"),
        (
            ["--query", "q3", "--documents", "inc", "1"],
            "in the comments of 8 documents of query q3",
        ),
        (["--query", "q3", "--documents", "2", "2"], "names one document twice; name two."),
        (["--query", "q3", "--top", "0"], "--top 0"),
    ],
)
def test_bad_input(run, files, arguments, message):
    done = run("explain", files / "linear.json", files / "data.txt", *arguments, code=2)
    for part in message.split(".*"):
        assert part in done.stderr


def test_kernels_without_contributions(run, files, data, tmp_path):
    KernelRankSVM(kernel="rbf").fit(data).save(tmp_path / "rbf.npz")
    done = run("explain", tmp_path / "rbf.npz", files / "data.txt", "--query", "q3", code=2)
    assert "has no exact contributions by feature" in done.stderr
