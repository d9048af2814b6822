"""Standard streams that are closed, full, no longer read, or of another encoding."""

import os
import shlex
import signal
import subprocess
import sys

import pytest


@pytest.fixture
def shell():
    """Return a function that runs a command with redirections by the shell."""

    def shell(*arguments, to="", encoding="utf-8"):
        command = shlex.join([sys.executable, "-m", "marginrank", *map(str, arguments)])
        environment = os.environ | {"PYTHONIOENCODING": encoding}
        done = subprocess.run(
            ["sh", "-c", f"{command} {to}"],
            capture_output=True,
            encoding=encoding.split(":")[0],
            env=environment,
        )
        assert "Traceback" not in done.stderr
        return done

    return shell


CLOSED = "marginrank: standard output is closed; redirect it, to /dev/null if not wanted.\n"


def test_closed_output_is_rejected_before_the_work(
    shell, invoke, train_txt, test_txt, model_json, tmp_path
):
    model = tmp_path / "m.json"
    train = ("train", train_txt, "--model", model)
    for command in (train, ("predict", model_json, test_txt, "--json")):
        done = shell(*command, to=">&-")
        assert (done.returncode, done.stderr) == (2, CLOSED), command
    for command in (
        train,
        ("inspect", train_txt),
        ("evaluate", model_json, test_txt),
        ("compare", test_txt, "--model-a", model_json, "--model-b", model_json),
        ("features", train_txt),
        ("convert", train_txt, tmp_path / "out.store"),
        ("predict", model_json, test_txt),
        ("demo",),
    ):
        for flags in ((), ("--json",)):
            done = invoke(*command, *flags, closed=True)
            assert (done.returncode, done.stderr) == (2, CLOSED), command
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_prints_nothing_needs_no_output(shell, model_json, test_txt, tmp_path):
    out = tmp_path / "scores.txt"
    assert shell("predict", model_json, test_txt, "--out", out, to=">&-").returncode == 0
    assert len(out.read_text().splitlines()) == len(test_txt.read_text().splitlines())


@pytest.mark.parametrize(
    ("arguments", "to"),
    [(("--help",), ">&-"), (("train", "--help"), ">/dev/full"), (("--version",), ">/dev/full")],
)
def test_help_that_cannot_be_written(shell, arguments, to):
    done = shell(*arguments, to=to)
    assert done.returncode == 2
    assert done.stderr.startswith("marginrank: standard output: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("flags", [(), ("--json",)], ids=" ".join)
def test_a_full_disk(shell, train_txt, flags):
    done = shell("inspect", train_txt, *flags, to=">/dev/full")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "marginrank: standard output: No space left on device"


@pytest.mark.parametrize(
    "command",
    [
        "predict MODEL DATA --out",
        "evaluate MODEL DATA --per-query",
        "train DATA --model",
        "convert DATA --overwrite --to text",
    ],
)
def test_a_full_disk_under_a_file_is_named(invoke, model_json, train_txt, command):
    places = {"MODEL": model_json, "DATA": train_txt}
    done = invoke(*[places.get(word, word) for word in command.split()], "/dev/full")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "marginrank: /dev/full: No space left on device"


@pytest.mark.parametrize("to", ["2>&-", "2>/dev/full"])
def test_errors_that_cannot_be_written(shell, train_txt, to):
    done = shell("inspect", train_txt, "--json", to=to)
    assert done.returncode == 0
    assert done.stdout.startswith("{")
    failed = shell("inspect", "no.txt", to=to)
    assert (failed.returncode, failed.stdout) == (2, "")


def test_closed_input(shell, model_json):
    for command in (("inspect", "-"), ("predict", model_json, "-"), ("predict", "-", model_json)):
        done = shell(*command, to="<&-")
        assert done.returncode == 2
        assert done.stderr == "marginrank: standard input is closed; name a file to read.\n"


def test_a_closed_descriptor_is_not_given_to_a_file(shell, train_txt, model_json, test_txt):
    before = test_txt.read_bytes()
    shell("predict", model_json, test_txt, to="<&- >&- 2>&-")
    assert test_txt.read_bytes() == before


@pytest.mark.parametrize(
    "command", ["predict {model} {data}", "inspect {data}", "train --help", "--help"]
)
def test_a_reader_that_went_away_is_no_error(shell, command, model_json, train_txt):
    words = command.format(model=model_json, data=train_txt).split()
    done = shell(*words, to="| head -0; :")
    assert "marginrank:" not in done.stderr
    assert done.stdout == ""


def test_a_reader_that_went_away_ends_the_process_as_any_other(model_json, train_txt):
    command = [sys.executable, "-m", "marginrank", "predict", model_json, train_txt]
    reader, writer = os.pipe()
    os.close(reader)  # before the command starts
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert done.returncode == -signal.SIGPIPE
    assert "marginrank:" not in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_terminals_without_unicode(invoke, train_txt, test_txt, model_json, encoding, tmp_path):
    (tmp_path / "real.txt").write_text("".join(f"{k / 7} qid:1 1:1\n" for k in range(50)))
    for command in (
        ("inspect", train_txt),
        ("inspect", tmp_path / "real.txt"),
        ("compare", test_txt, "--model-a", model_json, "--model-b", model_json),
        ("train", "--help"),
        ("demo", "--n-queries", "5"),
    ):
        done = invoke(*command, encoding=encoding)
        assert done.returncode == 0, done.stderr
        assert done.stdout
        assert "\\u" not in done.stdout  # no character of ours is written as an escape


def test_a_process_on_a_terminal_without_unicode(shell, train_txt):
    done = shell("inspect", train_txt, encoding="ascii:strict")
    assert done.returncode == 0
    assert "####" in done.stdout
    assert done.stdout.isascii()


def test_names_that_a_terminal_does_not_have(shell, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("label,qid,größe\n1,1,2\n0,1,1\n", encoding="utf-8")
    done = shell("features", table, encoding="ascii:strict")
    assert done.returncode == 0
    assert "gr\\xf6\\xdfe" in done.stdout


def test_help_is_ascii(invoke):
    from marginrank.cli.app import COMMANDS

    for name in COMMANDS:
        assert invoke(name, "--help").stdout.isascii()


ESCAPE = "\x1b[2Jred\u202e"
ESCAPED = "\\x1b[2Jred\\u202e"


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """Return a table with a hostile name of a feature, in a file of such a name."""
    path = tmp_path_factory.mktemp("names") / f"{ESCAPE}.csv"
    path.write_text(f"label,qid,{ESCAPE}\n1,1,2\n0,1,1\n", encoding="utf-8")
    return path


def test_names_are_shown_escaped(run, named):
    model = named.with_suffix(".json")
    for command in (
        ("train", named, "--model", model),
        ("inspect", model),
        ("features", named),
        ("convert", named, named.with_suffix(".store")),
        ("evaluate", model, named),
        ("compare", named, "--model-a", model, "--model-b", model, "--metric", "ndcg"),
    ):
        code = 2 if command[0] == "compare" else 0  # one query is too few to compare
        done = run(*command, code=code)
        shown = done.stdout + done.stderr
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert ESCAPED in shown.replace("\n", ""), command


def test_markup_in_names_is_text(named, tmp_path):
    import pty

    path = tmp_path / "[" / "red].csv"
    path.parent.mkdir()
    path.write_bytes(named.read_bytes())
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "marginrank", "inspect", path]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0
    assert "Traceback" not in shown


def test_a_full_disk_after_a_pipe(shell, train_txt):
    done = shell("inspect", "-", to=f"<{train_txt} >/dev/full")
    assert done.stderr.splitlines()[-1] == "marginrank: standard output: No space left on device"
