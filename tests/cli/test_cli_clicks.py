"""marginrank clicks: from a log and features to a store that fits learn positions from."""

import gzip
import json
import os
from collections import Counter

import numpy as np
import pytest
from helpers.tables import each

from marginrank import RankingData, RankSVM, make_clicks, make_ranking

X, Y, QID = make_ranking(30, 10, 4, random_state=0)
LOG = make_clicks(Y, qid=QID, scores=X[:, 0], n_sessions=300, temperature=0.5, random_state=0)


def id_of(row):
    return f"dök{row}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with features as text, table and store, and the log as a table and as UBI."""
    folder = tmp_path_factory.mktemp("clicks")
    ids = [id_of(row) for row in range(len(Y))]
    lines = [
        f"0 qid:{QID[k]} " + " ".join(f"{j}:{v!r}" for j, v in enumerate(X[k].tolist(), 1))
        for k in range(len(Y))
    ]
    text = "".join(f"{line} # {name}\n" for line, name in zip(lines, ids, strict=True))
    (folder / "f.txt").write_text(text)
    RankingData(X, Y, qid=QID, comments=ids).save(folder / "f.store")
    header = "qid,doc," + ",".join(f"x{j}" for j in range(X.shape[1]))
    rows = [f"{QID[k]},{ids[k]}," + ",".join(map(repr, X[k].tolist())) for k in range(len(Y))]
    (folder / "f.csv").write_text("\n".join([header, *rows]) + "\n")
    shown = zip(LOG.session, LOG.query, LOG.document, LOG.position, LOG.click, strict=True)
    table = [(f"s{s}", q, id_of(d), p, int(c)) for s, q, d, p, c in shown]
    rows = [",".join(map(str, row)) for row in [("session", "query", "document", "position",
                                                 "click"), *table]]  # fmt: skip
    (folder / "log.csv.gz").write_bytes(gzip.compress("\n".join(rows).encode()))
    records = []
    for s in range(300):
        own = [row for row in table if row[0] == f"s{s}"]
        results = [row[2] for row in own]
        records.append({"query_id": own[0][0], "user_query": str(own[0][1]),
                        "query_response_hit_ids": results})  # fmt: skip
        records += [
            {"action_name": "click", "query_id": row[0],
             "event_attributes": {"object": {"object_id": row[2]}}}
            for row in own if row[4]
        ]  # fmt: skip
    (folder / "log.ndjson").write_text("".join(json.dumps(one) + "\n" for one in records))
    return folder


@pytest.fixture(scope="module")
def expected():
    """Return the fit to the arrays of the log."""
    given = {"qid": LOG.session, "position": LOG.position}
    return RankSVM(C=0.01).fit(X[LOG.document], LOG.click, **given)


@each("log", ("log.csv.gz", "log.ndjson"))
@each("features", (["f.txt"], ["f.csv", "--comments", "doc"], ["f.store"]))
def test_a_store_of_sessions_is_fitted_with_positions(
    run, folder, expected, tmp_path, log, features
):
    out = tmp_path / "sessions.store"
    table, *flags = features
    arguments = (folder / log, "--features", folder / table, *flags, "--out", out)
    result = json.loads(run("clicks", *arguments, "--overwrite", "--json").stdout)
    clicks = np.bincount(LOG.session, LOG.click)
    assert result["sessions"] == 300
    assert result["without_clicks"] == np.sum(clicks == 0) > 0
    assert result["all_clicked"] == np.sum(clicks == 10)
    assert result["stored"]["queries"] == 300 - result["without_clicks"] - result["all_clicked"]
    assert (result["last_position"], result["skipped"]) == (10, {})
    with_pairs = ((clicks > 0) & (clicks < 10))[LOG.session]
    shown = zip(LOG.document[with_pairs], LOG.position[with_pairs], strict=True)
    places = Counter(document for document, _ in set(shown))
    assert result["moved_documents"] == sum(n > 1 for n in places.values()) > 100
    assert os.listdir(tmp_path) == ["sessions.store"]
    model = RankSVM(C=0.01).fit(out)
    # Sessions without pairs do not matter; sessions of other order sum in another order.
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-5)
    np.testing.assert_allclose(model.position_effect_, expected.position_effect_, atol=1e-5)


def test_the_commands_that_train_use_the_positions(run, folder, expected, tmp_path):
    out, model = tmp_path / "sessions.store", tmp_path / "m.json"
    log = (folder / "log.csv.gz", "--features", folder / "f.store")
    done = run("clicks", *log, "--out", out)
    assert "sessions to train on" in done.stdout
    assert f"clicks {LOG.click.sum():,.0f}" in " ".join(done.stdout.split())
    result = json.loads(run("train", out, "-C", "0.01", "--model", model, "--json").stdout)
    effects = np.array(result["position_effect"])
    np.testing.assert_allclose(effects, expected.position_effect_, atol=1e-5)
    assert effects[0] > effects[-1]
    assert "effect of each position" in run("train", out, "--model", model).stdout
    run("train-sparse", out, "--model", model)
    run("train-additive", out, "--model", model)
    assert "effect of each position" in run("train-online", out, "--model", model).stdout


def test_bad_rows_are_named_or_counted(run, folder, tmp_path):
    out = tmp_path / "s.store"
    rows = ["s,0,dök0,1,1", "s,0,dök1,0,0", "s,0,dök2,1,0", "s,0,missing,3,0", "s,0,dök3,4,0"]
    log = tmp_path / "bad.csv"
    log.write_text("\n".join(["session,query,document,position,click", *rows]) + "\n")
    arguments = ("clicks", log, "--features", folder / "f.store", "--out", out)
    done = run(*arguments, code=2)
    assert "bad.csv:3: position is '0'" in done.stderr
    assert "skip bad rows with --skip-bad." in done.stderr
    assert os.listdir(tmp_path) == ["bad.csv"]
    result = json.loads(run(*arguments, "--skip-bad", "--json").stdout)
    assert result["skipped"] == {
        "invalid positions": 1,
        "documents at a position that shows another one": 1,
        "documents without features": 1,
    }
    assert RankingData.open(out).comments[:] == ["dök0", "dök3"]
    assert "skipped: documents without features 1" in " ".join(
        run(*arguments, "--skip-bad", "--overwrite").stdout.split()
    )
    log.write_text("\n".join(["session,query,document,position,click", rows[3]]) + "\n")
    done = run(*arguments, "--overwrite", code=2)
    assert "bad.csv:2: document 'missing' of query '0' has no features" in done.stderr


def test_what_cannot_be_a_log_is_named_before_any_work(run, folder, tmp_path):
    out = tmp_path / "s.store"
    (tmp_path / "one.csv").write_text("session,query,document,position,click\ns,0,dök0,1,1\n")
    (tmp_path / "plain.txt").write_text("0 qid:0 1:1\n")
    (tmp_path / "empty.ndjson.gz").write_bytes(gzip.compress(b""))
    (tmp_path / "cut.jsonl").write_text('{"query_id": "u", "user_query": "q"}\n{"query_id":')
    out.mkdir()
    (out / "mine.txt").write_text("x")
    log, features, other = folder / "log.ndjson", folder / "f.store", tmp_path / "other.store"
    for arguments, message in (
        ((log, "--features", features, "--out", out), "s.store exists"),
        ((log, "--features", features, "--out", out, "--overwrite"), "is not a marginrank store"),
        ((log, "--features", "none.store", "--out", other), "none.store"),
        (("log.parq", "--features", features, "--out", other), "must end in"),
        ((log, "--features", features, "--out", other, "--session", "x"), "--session is for tab"),
        ((log, "--features", tmp_path / "plain.txt", "--out", other), "has no comments"),
        ((tmp_path / "one.csv", "--features", features, "--out", other), "none of the 1 sessions"),
        ((tmp_path / "one.csv", "--features", features, "--out", other, "--click", "z"), "--click"),
        ((tmp_path / "empty.ndjson.gz", "--features", features, "--out", other), "the 0 sessions"),
        ((tmp_path / "cut.jsonl", "--features", features, "--out", other), "cut.jsonl:2: not a"),
    ):
        done = run("clicks", *arguments, code=2)
        assert message in done.stderr, done.stderr
        assert "bug" not in done.stderr
    inputs = ["cut.jsonl", "empty.ndjson.gz", "one.csv", "plain.txt", "s.store"]
    assert sorted(os.listdir(tmp_path)) == inputs


def test_standard_input(run, folder, tmp_path):
    text = (folder / "log.ndjson").read_text()
    arguments = ("--features", folder / "f.store", "--out", tmp_path / "s.store", "--json")
    result = json.loads(run("clicks", "-", *arguments, input=text).stdout)
    assert result["sessions"] == 300
