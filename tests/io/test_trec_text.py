"""Runs and qrels as TREC text and JSON."""

import gzip
import io
import json

import pytest

from marginrank import dump_run, load_qrels, load_run

RUN = b"q1 Q0 d7 1 12.5 bm25\nq1\tQ0\td3  2 9 bm25\r\n\nq2 Q0 d7 1 -1e3 bm25"
QRELS = b"q1 0 d7 2\nq1 0 d9 0\nq2 0 d1 -1\n"


def test_a_run_is_scores_by_query_and_document():
    expected = {"q1": {"d7": 12.5, "d3": 9.0}, "q2": {"d7": -1000.0}}
    assert load_run(io.BytesIO(RUN)) == expected
    assert list(load_run(io.BytesIO(RUN))["q1"]) == ["d7", "d3"]


def test_qrels_are_labels_by_query_and_document():
    assert load_qrels(io.BytesIO(QRELS)) == {"q1": {"d7": 2.0, "d9": 0.0}, "q2": {"d1": -1.0}}


@pytest.mark.parametrize(("load", "text"), [(load_run, RUN), (load_qrels, QRELS)])
def test_compressed_text_and_json_hold_the_same(tmp_path, load, text):
    expected = load(io.BytesIO(text))
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(text))
    (tmp_path / "a.json").write_text(json.dumps(expected))
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(json.dumps(expected, indent=1).encode()))
    for name in ("a.txt.gz", "a.json", "b.json.gz"):
        assert load(tmp_path / name) == expected


def test_a_run_survives_a_file(tmp_path):
    run = {"q1": {"d1": 0.1, "d2": 1 / 3, "d3": 0.1}, "ü": {"d1": -2.0}}
    dump_run(run, tmp_path / "a.run.gz", tag="mine")
    assert load_run(tmp_path / "a.run.gz") == run
    lines = gzip.decompress((tmp_path / "a.run.gz").read_bytes()).decode().splitlines()
    assert [line.split()[2:4] for line in lines[:3]] == [["d2", "1"], ["d3", "2"], ["d1", "3"]]


@pytest.mark.parametrize(
    ("load", "text", "message"),
    [
        (load_run, b"q1 Q0 d7 1 12.5 a\nq1 Q0 d3 2 nan a\n", r":2: score 'nan'"),
        (load_run, b"q1 Q0 d7 1 inf a\n", r":1: score 'inf'"),
        (load_run, b"q1 Q0 d7 first 1.0 a\n", r":1: rank 'first'"),
        (load_run, b"q1 Q0 d7 1 12.5\n", r":1: 5 columns"),
        (load_run, b"q1 Q0 d7 1 2 a\nq2 Q0 d7 1 2 a\nq1 Q0 d7 2 1 a\n", r":3: document 'd7'.*'q1'"),
        (load_run, b"", r"is empty"),
        (load_run, b"\n\n", r"is empty"),
        (load_qrels, b"q1 0 d7 2 1\n", r":1: 5 columns"),
        (load_qrels, b"q1 0 d7 high\n", r":1: label 'high'"),
        (load_qrels, b"q1 0 d7 1\nq1 0 d7 1\n", r":2: document 'd7'"),
        (load_qrels, b"q1 0 d7 \x1b[31m\xff\n", r":1: label '\\x1b"),
    ],
)
def test_the_first_malformed_line_is_named(load, text, message):
    with pytest.raises(ValueError, match=message):
        load(io.BytesIO(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"q1": {"d1": NaN}}', r"\['q1'\]\['d1'\] is nan"),
        ('{"q1": [1, 2]}', r"\['q1'\] is a list"),
        ('{"q1": {"d1": 1}', r"not valid JSON"),
    ],
)
def test_malformed_json_names_the_file_and_the_place(tmp_path, text, message):
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises((ValueError, TypeError), match=f"run.json.*{message}"):
        load_run(path)


def test_ranks_that_contradict_scores_warn_once_and_scores_win():
    text = b"q1 Q0 a 1 1.0 t\nq1 Q0 b 2 2.0 t\nq2 Q0 a 1 1.0 t\nq2 Q0 b 2 2.0 t\n"
    with pytest.warns(UserWarning, match="ranks contradict scores.*'q1'") as caught:
        run = load_run(io.BytesIO(text))
    assert len(caught) == 1
    assert run["q1"] == {"a": 1.0, "b": 2.0}


@pytest.mark.parametrize("run", [{"a b": {"d": 1.0}}, {"q": {"d\n": 1.0}}, {"q": {"": 1.0}}])
def test_ids_that_text_cannot_hold_are_named(tmp_path, run):
    with pytest.raises(ValueError, match="white space"):
        dump_run(run, tmp_path / "a.run")
    assert not (tmp_path / "a.run").exists()
