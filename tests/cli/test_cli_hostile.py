"""No input ends in a traceback: exit code 2 and one sentence, whatever the file or the number."""

import gzip
import os
import random
import threading

import pytest

JUNK = random.Random(0).randbytes(4096)
CUT = gzip.compress(b"1 qid:1 1:1\n0 qid:1 1:2\n" * 1000)[:60]
CONTENTS = {
    "junk.txt": JUNK,
    "junk.csv": JUNK,
    "junk.parquet": JUNK,
    "junk.gz": JUNK,
    "empty.txt": b"",
    "empty.csv": b"",
    "empty.parquet": b"",
    "cut.txt.gz": CUT,
    "cut.csv.gz": CUT,
    "object.json": b"{}",
    "list.json": b"[]",
    "deep.json": b"[" * 100_000,
    "deep_object.json": b'{"format":' * 100_000,
    "version.json": b'{"format":"marginrank-model","version":' + b"9" * 5000 + b"}",
    "half.json": b'{"format":"marginrank-model","version":1}',
    "learner.json": b'{"learner":{}}',
    "utf8.csv": b"label,qid,\xff\n1,1,2\n0,1,1\n",
    "utf16.txt": "1 qid:1 1:1\n".encode("utf-16"),
    "zeros.txt": bytes(100),
    "zeros.csv": bytes(100),
    "index.txt": b"1 qid:1 99999999999999999999:1\n",
    "label.txt": b"1e400 qid:1 1:1\n",
    "label.csv": b"label,qid,a\n1e400,1,1\n",
    "twice.csv": b"label,qid,a,a\n1,1,2,3\n",
    "columns.csv": b"x,y\n1,2\n",
    "ragged.csv": b"label,qid,a\n1,1\n1,2,3,4,5\n",
    "header.csv": b"label,qid,a\n",
    "nan.csv": b"label,qid,a\n1,1,nan\n",
    "model.pkl": b"\x80\x04K\x01.",
    "model.zip": b"PK\x03\x04" + JUNK,
    "svmrank.txt": b"SVM-light Version V6.20\n" + JUNK,
    "liblinear.txt": b"solver_type L2R_L2LOSS_RANKSVM\n" + JUNK,
}
OTHERS = ("folder", "store", "deep_store", "no.txt", "no.csv", "[/red]\x1b[2J.txt", "label.txt/x")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, train_txt, model_json):
    """Return a folder of bad files, and good ones to go with them."""
    folder = tmp_path_factory.mktemp("hostile")
    for name, content in CONTENTS.items():
        (folder / name).write_bytes(content)
    for name, manifest in (("folder", None), ("store", "{}"), ("deep_store", "[" * 100_000)):
        (folder / name).mkdir()
        if manifest is not None:
            (folder / name / "manifest.json").write_text(manifest)
    (folder / "good.txt").write_bytes(train_txt.read_bytes())
    (folder / "ungrouped.txt").write_text("1 1:1\n0 1:2\n")
    (folder / "good.json").write_bytes(model_json.read_bytes())
    return folder


# One command for each way in which a file is read: at once, in chunks, into a store, as a model, as
# a list of pairs, of query sizes or of scores, and where anything may come.
READERS = (
    "features BAD",
    "train-online BAD --model out.json",
    "convert BAD out.store",
    "predict BAD good.txt",
    "train good.txt --model out.json --pairs BAD",
    "train ungrouped.txt --model out.json --group BAD",
    "evaluate --scores BAD good.txt",
    "inspect BAD",
)
COMMANDS = (
    "train BAD --model out.json",
    "train good.txt --model out.json --valid BAD",
    "train-sparse BAD --model out.json",
    "train-additive BAD --model out.json",
    "tune BAD --model out.json",
    "tune good.txt --model out.json --valid BAD",
    "tune good.txt --model out.json --test BAD",
    "predict good.json BAD",
    "evaluate good.json BAD",
    "evaluate BAD good.txt",
    "compare BAD --model-a good.json --model-b good.json",
    "compare good.txt --model-a BAD --model-b good.json",
    "compare good.txt --model-a good.json --scores-b BAD",
    "convert BAD out.csv",
    "convert BAD out.txt",
    "convert BAD out.parquet",
)


def check_refusal(done, command=""):
    shown = done.stderr
    assert done.returncode == 2, (command, shown)
    assert done.stdout == "", command
    assert "Traceback" not in shown, command
    assert "\x1b" not in shown, command
    assert [line for line in shown.splitlines() if line.startswith("marginrank: ")][-1:] or (
        "Error: " in shown
    ), command


def check_bad_file(invoke, command, bad):
    before = sorted(os.listdir())
    words = [bad if word == "BAD" else word for word in command.split()]
    check_refusal(invoke(*words), command)
    assert sorted(os.listdir()) == before, command


@pytest.mark.parametrize("bad", [*CONTENTS, *OTHERS], ids=ascii)
def test_every_reader_rejects_bad_files(invoke, hostile, monkeypatch, bad):
    monkeypatch.chdir(hostile)
    for command in READERS:
        check_bad_file(invoke, command, bad)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_rejects_bad_files(invoke, hostile, monkeypatch, command):
    monkeypatch.chdir(hostile)
    for bad in ("junk.txt", "junk.parquet", "half.json", "store", "no.csv"):
        check_bad_file(invoke, command, bad)


# Commands that end in a flag, and the numbers that it takes.
NUMBERS = ("nan", "inf", "-1", "0", "1e400", "9" * 23, "-" + "9" * 23, "x", "")
INTEGERS = {
    "train good.txt --model out.json --max-iter": ("9" * 23,),
    "train good.txt --model out.json --random-state": ("0",),
    "train good.txt --model out.json --n-features": (),
    "train good.txt --model out.json --n-jobs": ("-1", "-" + "9" * 23),
    "train-sparse good.txt --model out.json --valid good.txt --path": (),
    "train-online good.txt --model out.json --chunk-documents": ("9" * 23,),
    "tune good.txt --model out.json --folds": (),
    "tune good.txt --model out.json --points": (),
    "predict good.json good.txt --n-features": (),
    "inspect good.json --top": ("9" * 23,),
    "features good.txt --top": ("9" * 23,),
    "demo --n-queries": (),
}
POSITIVES = {
    "train good.txt --model out.json --C": ("9" * 23,),
    "train good.txt --model out.json --lam": ("9" * 23,),
    "train good.txt --model out.json --tol": ("9" * 23,),
    "train-sparse good.txt --model out.json --radius": ("9" * 23,),
    "tune good.txt --model out.json --C": ("9" * 23,),
    "tune good.txt --model out.json --budget": ("9" * 23,),
    "train-sparse good.txt --model out.json --l1-ratio": ("0",),
    "predict good.json good.txt --missing": ("nan", "-1", "0", "9" * 23, "-" + "9" * 23),
}
NAMES = {
    "train good.txt --model out.json --loss": (),
    "train good.txt --model out.json --solver": (),
    "train good.txt --model out.json --margin": (),
    "train good.txt --model out.json --pair-cost": (),
    "train good.txt --model out.json --pair-selection": (),
    "train good.txt --model out.json --normalization": (),
    "train-online good.txt --model out.json --method": (),
    "train good.txt --model out.json --valid good.txt --metrics": (),
    "tune good.txt --model out.json --loss": (),
    "tune good.txt --model out.json --pair-cost": (),
    "tune good.txt --model out.json --scale": (),
    "tune good.txt --model out.json --normalization": (),
    "tune good.txt --model out.json --rule": (),
    "tune good.txt --model out.json --metric": (),
    "tune good.txt --model out.json --plot": (),
    "predict good.json good.txt --layout": (),
    "predict good.json good.txt --dtype": (),
    "evaluate good.json good.txt --gain": (),
    "evaluate good.json good.txt --discount": (),
    "evaluate good.json good.txt --metrics": (),
    "compare good.txt --model-a good.json --model-b good.json --metric": (),
    "features good.txt --plot": (),
    "convert good.txt out --to": (),
}


NAMED_BY_THEIR_VALUE = ("--metrics", "--metric", "--plot")
VALUES = INTEGERS | POSITIVES | NAMES


@pytest.mark.parametrize("command", VALUES)
def test_bad_values(invoke, hostile, monkeypatch, command):
    monkeypatch.chdir(hostile)
    *words, flag = command.split()
    for value in NUMBERS:
        if value not in VALUES[command]:
            done = invoke(*words, f"{flag}={value}")
            check_refusal(done, value)
            assert flag in done.stderr or flag in NAMED_BY_THEIR_VALUE, value


@pytest.mark.parametrize("flag", ["label", "qid", "features", "sample-weight", "comments"])
def test_unknown_columns(invoke, tmp_path, flag):
    table = tmp_path / "t.csv"
    table.write_text("label,qid,a\n1,1,2\n0,1,1\n")
    for command in (("features", table), ("convert", table, tmp_path / "out.store")):
        done = invoke(*command, f"--{flag}", "no\x1b[2Jsuch")
        check_refusal(done)
        assert "no\\x1b[2Jsuch" in done.stderr
        assert f"{table}: " in done.stderr


@pytest.mark.parametrize("error", [MemoryError(), RecursionError("maximum depth")], ids=repr)
def test_too_large_and_too_deep(invoke, train_txt, monkeypatch, error):
    from marginrank.cli.support import data

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(data, "read_letor", fail)
    done = invoke("inspect", train_txt)
    check_refusal(done)
    assert "enough memory" in done.stderr or "nested too deeply" in done.stderr


def test_a_defect_is_told_in_a_sentence_too(invoke, train_txt, monkeypatch):
    from marginrank.cli.support import data

    def fail(*_, **__):
        raise KeyError("nobody foresaw")

    monkeypatch.setattr(data, "read_letor", fail)
    done = invoke("inspect", train_txt)
    assert done.returncode == 1
    assert "bug in marginrank; please report it: KeyError in test_cli_hostile.py:" in done.stderr


@pytest.fixture
def fifo(tmp_path):
    """Return a function that makes a FIFO into which something is written."""

    def fifo(content):
        path = tmp_path / "fifo"
        os.mkfifo(path)
        threading.Thread(target=path.write_bytes, args=(content,), daemon=True).start()
        return path

    return fifo


@pytest.mark.parametrize(
    ("command", "content"),
    [("predict BAD good.txt", b"{"), ("features BAD", b""), ("inspect BAD", JUNK)],
    ids=["model", "data", "any"],
)
def test_bad_pipes(invoke, hostile, monkeypatch, fifo, command, content):
    monkeypatch.chdir(hostile)
    path = fifo(content)
    done = invoke(*[path if word == "BAD" else word for word in command.split()])
    check_refusal(done)
    assert str(path) in done.stderr


def test_usage_errors(invoke):
    for arguments in ((), ("train",), ("train", "x", "--no-such-flag"), ("predict", "m.json")):
        done = invoke(*arguments)
        assert done.returncode == 2
        assert "Usage: marginrank" in done.stderr
        assert "Traceback" not in done.stderr
