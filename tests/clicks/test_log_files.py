"""Click logs in files: tables and User Behavior Insights, in any order, with bad rows."""

import gzip
import json

import numpy as np
import pytest
from helpers.tables import each

from marginrank import ClickLog, RankingData, RankSVM, load_clicks, make_clicks, make_ranking
from marginrank.clicks import log_files
from marginrank.clicks.log_files import read_sessions
from marginrank.clicks.sessions import BadRows
from marginrank.clicks.table_log import LogColumns

NAMES = ("session", "query", "document", "position", "click")
ROWS = [("s1", "q", "a", 1, 0), ("s1", "q", "b", 2, 1), ("s2", "r", "ä b", 3, 0)]


def columns_of(log):
    fields = (log.session, log.query, log.document, log.position, log.click)
    return [field.tolist() for field in fields]


def write_csv(path, rows, names=NAMES, delimiter=","):
    lines = [delimiter.join(map(str, row)) for row in [names, *rows]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_ubi(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def query(session, results=(), text="q"):
    return {
        "query_id": session,
        "user_query": text,
        "client_id": "c",
        "query_response_hit_ids": list(results),
    }


def event(action, session, document, ordinal=None):
    attributes = {"object": {"object_id": document}}
    if ordinal is not None:
        attributes["position"] = {"ordinal": ordinal}
    return {"action_name": action, "query_id": session, "event_attributes": attributes}


def write_parquet(path, rows):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = [list(column) for column in zip(*rows, strict=True)]
    parquet.write_table(arrow.table(columns, names=NAMES), path)


def test_tables_of_every_kind_are_the_same_log(tmp_path):
    expected = [[0, 0, 1], ["q", "q", "r"], ["a", "b", "ä b"], [1, 2, 3], [0.0, 1.0, 0.0]]
    text = write_csv(tmp_path / "a.csv", ROWS).read_bytes()
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"\xef\xbb\xbf" + text))
    write_csv(tmp_path / "a.tsv", ROWS, delimiter="\t")
    write_csv(tmp_path / "mixed.csv", [ROWS[1], ROWS[2], ROWS[0]])
    write_parquet(tmp_path / "a.parquet", ROWS)
    for name in ("a.csv", "a.csv.gz", "a.tsv", "mixed.csv", "a.parquet"):
        assert columns_of(load_clicks(tmp_path / name)) == expected, name
    renamed = write_csv(tmp_path / "b.csv", ROWS, ("s", "q", "d", "p", "c"))
    log = load_clicks(renamed, session="s", query="q", document="d", position="p", click="c")
    assert columns_of(log) == expected


def test_ubi_shows_results_or_impressions(tmp_path):
    records = [
        event("click", "u1", "b", 2),  # before its query
        query("u1", ["a", "b"]),
        query("u2"),
        event("impression", "u2", "c", 4),
        event("impression", "u2", "c", 4),
        event("impression", "u2", 7, 6),
        event("click", "u2", "7"),
        event("login", "u2", "zzz"),
        {"action_name": "click", "event_attributes": {}},  # not on a result
        {"index": {"_index": "ubi_queries"}},
        {"_index": "ubi_queries", "_source": query("u3", ["x", "y"], "r ö")},
        event("impression", "u3", "y"),
    ]
    log = load_clicks(write_ubi(tmp_path / "log.ndjson", records))
    assert columns_of(log) == [
        [0, 0, 1, 1, 2],
        ["q", "q", "q", "q", "r ö"],
        ["a", "b", "c", "7", "y"],
        [1, 2, 4, 6, 2],
        [0.0, 1.0, 0.0, 1.0, 0.0],
    ]
    queries = [record for record in records if "user_query" in record.get("_source", record)]
    events = [record for record in records if record not in queries]
    paths = [write_ubi(tmp_path / "q.jsonl", queries), write_ubi(tmp_path / "e.jsonl", events)]
    both = columns_of(load_clicks(paths))
    assert sorted(zip(*both[1:], strict=True)) == sorted(zip(*columns_of(log)[1:], strict=True))
    carts = [*records, event("cart", "u1", "a")]
    log = load_clicks(write_ubi(tmp_path / "log.ndjson", carts), click="cart")
    assert log.document[log.click > 0].tolist() == ["a"]


BAD_ROWS = {
    "position 0": (("s1", "q", "c", 0, 0), "log.csv:4: position is '0'; positions are whole"),
    "half": (("s1", "q", "c", 1.5, 0), "log.csv:4: position is '1.5'"),
    "huge": (("s1", "q", "c", "9" * 30, 0), "log.csv:4: position is '999"),
    "same": (
        ("s1", "q", "c", 2, 0),
        "log.csv:4: document 'c' is at position 2, which already shows 'b' of .*:3",
    ),
    "twice": (("s1", "q", "a", 3, 0), "log.csv:4: document 'a' is at position 3, but at 1 in"),
    "unseen": (("s1", "q", "c", "", 1), "log.csv:4: document 'c' has a click but no position"),
    "clicks": (("s1", "q", "c", 3, 2), "log.csv:4: click is '2'; clicks are 0 or 1"),
    "no id": (("s1", "q", "", 3, 0), "log.csv:4: document is ''"),
    "query": (("s1", "x", "c", 3, 0), "log.csv:4: the query is 'x', but 'q' in"),
    "short": (("s1", "q"), "log.csv:4: 2 fields, but the header has 5"),
    "long": (("s1", "q", "x" * 200_000, 3, 0), "log.csv:4: field larger than field limit"),
}


@each("name", BAD_ROWS)
def test_bad_rows_of_tables_are_named_or_skipped(tmp_path, name):
    row, message = BAD_ROWS[name]
    path = write_csv(tmp_path / "log.csv", [*ROWS[:2], row, ROWS[2]])
    with pytest.raises(ValueError, match=message):
        load_clicks(path)
    with pytest.warns(UserWarning, match="log.csv: skipped 1 "):
        log = load_clicks(path, skip_bad=True)
    assert log.document.tolist() == ["a", "b", "ä b"]


def test_a_quote_that_is_not_closed_counts_the_lines_it_takes(tmp_path):
    lines = "".join(f"s2,r,d{k},{k},0\n" for k in range(1, 6))
    path = write_csv(tmp_path / "log.csv", ROWS[:2])
    path.write_text(path.read_text() + 's3,"q,a,1,0\n' + lines)
    with pytest.warns(UserWarning, match="log.csv: skipped 6 malformed lines"):
        assert load_clicks(path, skip_bad=True).document.tolist() == ["a", "b"]
    path.write_text(path.read_text().replace("a,1,0\ns2", 'a",b,1,0\ns2'))
    assert load_clicks(path).n_sessions == 3
    path.write_text(",".join(NAMES) + '\ns,q,"two\nlines",1,0\n')
    assert load_clicks(path).document.tolist() == ["two\nlines"]


BAD_LINES = {
    "empty": (b"{}", "log.ndjson:4: neither a query nor an event of UBI"),
    "broken": (b'{"query_id": "u1", "user_', "log.ndjson:4: not a JSON object"),
    "deep": (b"[" * 100_000, "log.ndjson:4: not a JSON object"),
    "digits": (b'{"query_id": ' + b"1" * 5000 + b"}", "log.ndjson:4: not a JSON object"),
    "encoding": (b'{"query_id": "\xff"}', "log.ndjson:4: not a JSON object"),
    "list": (b"[1]", "log.ndjson:4: not a JSON object"),
    "other": (b'{"a": 1}', "log.ndjson:4: neither a query nor an event of UBI"),
    "no text": (b'{"query_id": "u9"}', "log.ndjson:4: user_query is None"),
    "results": (
        b'{"query_id": "u1", "user_query": "q", "query_response_hit_ids": [[]]}',
        "log.ndjson:4: query_response_hit_ids is not a list of ids",
    ),
    "two queries": (
        json.dumps(query("u1", ["a"], "other")).encode(),
        "log.ndjson:4: the query_id belongs to another query in .*:1",
    ),
    "orphan": (
        json.dumps(event("click", "u7", "a")).encode(),
        "log.ndjson:4: no record of a query has the query_id of this event",
    ),
    "unseen": (
        json.dumps(event("click", "u1", "z", 1)).encode(),
        "log.ndjson:4: the click is on document 'z', which query 'q' did not show",
    ),
    "position": (
        json.dumps(event("click", "u1", "a", 0)).encode(),
        "log.ndjson:4: position.ordinal is 0; positions are whole",
    ),
    "nowhere": (
        json.dumps(event("impression", "u2", "z")).encode(),
        "log.ndjson:4: the impression of document 'z' has no position.ordinal",
    ),
}


@each("name", BAD_LINES)
def test_bad_lines_of_ubi_are_named_or_skipped(tmp_path, name):
    line, message = BAD_LINES[name]
    first = [query("u1", ["a", "b"]), event("click", "u1", "a"), query("u2", ["c"])]
    path = write_ubi(tmp_path / "log.ndjson", first)
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(ValueError, match=message):
        load_clicks(path)
    with pytest.warns(UserWarning, match="log.ndjson: skipped 1 "):
        log = load_clicks(path, skip_bad=True)
    shown = ["a", "b"] if name == "nowhere" else ["a", "b", "c"]  # u2 has impressions then
    assert log.document.tolist() == shown
    assert log.click.tolist() == [1.0, 0.0, 0.0][: len(shown)]


def test_a_skipped_query_has_no_results(tmp_path):
    other = query("u1", ["x", "y"], "other")
    path = write_ubi(tmp_path / "log.ndjson", [query("u1"), other, query("u1", ["a"])])
    with pytest.warns(UserWarning, match="skipped 1 malformed lines"):
        assert load_clicks(path, skip_bad=True).document.tolist() == ["a"]


def test_files_that_are_no_logs(tmp_path):
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "empty.ndjson").write_text("")
    (tmp_path / "other.ndjson").write_text("session,query\n1,2\n")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"session,query\n" * 999)[:-20])
    (tmp_path / "line.ndjson.gz").write_bytes(gzip.compress(bytes(1 << 26)))
    write_csv(tmp_path / "few.csv", [], NAMES[:4])
    (tmp_path / "mac.csv").write_text(",".join(NAMES) + "\rs,q,a,1,0\r", newline="")
    for name, message in {
        "empty.csv": "empty.csv is empty; its first line must name the columns",
        "empty.ndjson": "empty.ndjson contains no documents that were shown; skipped nothing",
        "other.ndjson": "no documents that were shown; skipped 2 malformed lines",
        "cut.csv.gz": "cut.csv.gz: the compressed file is damaged or truncated",
        "line.ndjson.gz": "line.ndjson.gz: a line is longer than 16 MiB",
        "few.csv": "few.csv has no column 'click'",
        "mac.csv": "mac.csv:1: the header cannot be read: new-line character",
        "log.txt": r"the name of a click log must end in \.csv",
    }.items():
        with pytest.raises(ValueError, match=message):
            load_clicks(tmp_path / name, skip_bad=True)
    with pytest.raises(ValueError, match="tables and JSON cannot be read as one log"):
        load_clicks([tmp_path / "few.csv", tmp_path / "empty.ndjson"])
    with pytest.raises(ValueError, match="empty list"):
        load_clicks([])


def test_parts_of_a_large_log_are_the_same_sessions(tmp_path, monkeypatch):
    rows = [(f"s{k % 50}", f"q{k % 5}", f"d{k}", 1 + k // 50, k % 3 == 0) for k in range(500)]
    path = write_csv(tmp_path / "log.csv", rows)
    whole = list(read_sessions([str(path)], LogColumns(), BadRows(False)))
    monkeypatch.setattr(log_files, "PART_BYTES", 1000)
    monkeypatch.setattr(log_files, "BUFFERED", 300)
    folder = tmp_path / "parts"
    folder.mkdir()
    largest, parts = 0, []
    for one in read_sessions([str(path)], LogColumns(), BadRows(False), folder=str(folder)):
        sizes = [part.stat().st_size for part in folder.iterdir()]
        largest = max(largest, len(sizes))
        parts.append(one)
    assert largest > 5
    assert list(folder.iterdir()) == []
    assert sorted(whole) == sorted(parts)


def test_a_joined_log_fits_like_its_arrays():
    X, y, qid = make_ranking(30, 10, 4, random_state=0)
    features = RankingData(X, y, qid=qid, comments=[f"d{k}" for k in range(len(y))])
    log = make_clicks(y, qid=qid, scores=X[:, 0], n_sessions=200, random_state=0)
    named = ClickLog.of(
        session=log.session,
        query=log.query,
        document=[f"d{k}" for k in log.document],
        position=log.position,
        click=log.click,
    )
    joined = RankSVM(C=0.01).fit(named.join(features))
    given = RankSVM(C=0.01).fit(X[log.document], log.click, qid=log.session, position=log.position)
    np.testing.assert_array_equal(joined.coef_, given.coef_)
    np.testing.assert_array_equal(joined.position_effect_, given.position_effect_)
    some = RankingData(X[:150], y[:150], qid=qid[:150], comments=features.comments[:150])
    with pytest.raises(ValueError, match=r"row \d+ of the log: document 'd\d+'.*'d0' of query '0'"):
        named.join(some)
    with pytest.warns(UserWarning, match="skipped .* documents without features"):
        assert named.join(some, skip_bad=True).n_documents == np.sum(log.document < 150)
    other = RankingData(X[:1], y[:1], qid=["none"], comments=["d0"])
    with (
        pytest.warns(UserWarning, match="documents without features"),
        pytest.raises(ValueError, match="no document of the log has features"),
    ):
        named.join(other, skip_bad=True)
    with pytest.raises(ValueError, match="two documents of query '0' have the comment 'd0'"):
        named.join(RankingData(X, y, qid=qid, comments=["d0"] * len(y)))


def test_a_log_with_propensities_is_joined_with_costs():
    X, y, qid = make_ranking(30, 10, 4, random_state=0)
    features = RankingData(X, y, qid=qid, comments=[f"d{k}" for k in range(len(y))])
    log = make_clicks(y, qid=qid, scores=X[:, 0], n_sessions=200, random_state=0)
    one_click = np.bincount(log.session, weights=log.click)[log.session] <= 1
    columns = {
        "session": log.session[one_click],
        "query": log.query[one_click],
        "document": [f"d{k}" for k in log.document[one_click]],
        "position": log.position[one_click],
        "click": log.click[one_click],
        "propensity": log.propensity[one_click],
    }
    joined = ClickLog.of(**columns).join(features)
    np.testing.assert_array_equal(joined.cost, 1.0 / columns["propensity"])
    assert joined.position is None
    expected = RankSVM(C=0.01).fit(
        X[log.document[one_click]],
        columns["click"],
        qid=columns["session"],
        propensity=columns["propensity"],
    )
    np.testing.assert_allclose(RankSVM(C=0.01).fit(joined).coef_, expected.coef_, rtol=1e-10)
    some = RankingData(X[:150], y[:150], qid=qid[:150], comments=features.comments[:150])
    with pytest.warns(UserWarning, match="skipped"):
        fewer = ClickLog.of(**columns).join(some, skip_bad=True)
    kept = log.document[one_click] < 150
    np.testing.assert_array_equal(fewer.cost, 1.0 / columns["propensity"][kept])
    for bad, message in {0.0: "propensity.0. is 0;", 1.5: "propensity.0. is 1.5;"}.items():
        wrong = columns["propensity"].copy()
        wrong[0] = bad
        with pytest.raises(ValueError, match=message):
            ClickLog.of(**(columns | {"propensity": wrong}))
    with pytest.raises(ValueError, match=r"propensity has shape \(2,\)"):
        ClickLog.of(**(columns | {"propensity": [0.5, 0.5]}))
