"""Files to work on, and the command as a user runs it."""

import io
import os
import pty
import signal
import subprocess
import sys
import threading
import warnings
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from marginrank import make_ranking

PATIENCE = 600  # seconds; a command that takes longer hangs, even on a busy machine
PAUSED = [sys.executable, str(Path(__file__).with_name("paused_command.py"))]


def write_letor(path, X, y, qid):
    lines = [
        f"{label!r} qid:{query} " + " ".join(f"{j}:{v!r}" for j, v in enumerate(row, 1))
        for row, label, query in zip(X.tolist(), y.tolist(), qid.tolist(), strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")


class Done(NamedTuple):
    """What a command printed and returned."""

    returncode: int
    stdout: str
    stderr: str


class Output(io.StringIO):
    """What a command prints, as on a terminal with this encoding."""

    encoding = None  # read-only in the base class

    def __init__(self, encoding, *, closed):
        super().__init__()
        self.encoding = encoding
        self._closed = closed

    def writable(self):
        return not self._closed

    def write(self, text):
        return super().write(text.encode(self.encoding, "backslashreplace").decode(self.encoding))


@contextmanager
def standard_input(text):
    """Connect standard input, the stream and the descriptor, to a pipe with this text."""
    reader, writer = os.pipe()

    def feed():
        with suppress(BrokenPipeError), open(writer, "w", encoding="utf-8") as pipe:
            pipe.write(text)

    before, descriptor, thread = sys.stdin, os.dup(0), threading.Thread(target=feed)
    os.dup2(reader, 0)
    os.close(reader)
    thread.start()
    try:
        with open(0, encoding="utf-8", closefd=False) as sys.stdin:
            yield
    finally:
        sys.stdin = before
        os.dup2(descriptor, 0)  # closes the pipe, if the command has not read all of it
        os.close(descriptor)
        thread.join()


@pytest.fixture(scope="session")
def invoke():
    """Return a function that runs ``marginrank`` without a process, which takes a second."""
    from marginrank.cli.app import app

    def invoke(*arguments, input=None, encoding="utf-8", closed=False):
        out, err = Output(encoding, closed=closed), Output(encoding, closed=False)
        with (
            nullcontext() if input is None else standard_input(input),
            redirect_stdout(out),
            redirect_stderr(err),
            warnings.catch_warnings(action="default"),  # as in a process of its own
            pytest.raises(SystemExit) as exit,
        ):
            app([str(a) for a in arguments], prog_name="marginrank")
        return Done(exit.value.code or 0, out.getvalue(), err.getvalue())

    return invoke


@pytest.fixture(scope="session")
def run(invoke):
    """Return a function that runs ``marginrank``, and checks its exit code."""

    def run(*arguments, code=0, input=None):
        done = invoke(*arguments, input=input)
        assert done.returncode == code, done.stderr
        return done

    return run


@pytest.fixture(scope="session")
def run_process():
    """Return a function like `run` that starts a process, for tests of imports and of pipes."""

    def run_process(*arguments, code=0, input=None):
        command = [sys.executable, "-m", "marginrank", *map(str, arguments)]
        done = subprocess.run(
            command, capture_output=True, text=True, input=input, timeout=PATIENCE
        )
        assert done.returncode == code, done.stderr
        return done

    return run_process


@pytest.fixture(scope="session")
def run_on_terminal():
    """Return a function that runs a command, and returns what it prints and what a person sees."""

    def run_on_terminal(*arguments):
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "marginrank", *map(str, arguments)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs)
        shown = os.read(ours, 1 << 16).decode()
        os.close(ours)
        os.close(theirs)
        return done.stdout, shown

    return run_on_terminal


class PausedProcess:
    """A command that waits for the test after some lines of its progress, given by their begin.

    Its standard error is in `lines`, as far as it was read.
    """

    def __init__(self, beginnings, *arguments):
        self._beginnings = iter(beginnings)
        self._process = subprocess.Popen(
            [*PAUSED, "|".join(beginnings), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.lines = []

    def read_to_pause(self):
        """Read up to the next line with a pause, and check that there is one."""
        beginning = next(self._beginnings)
        for line in self._process.stderr:
            self.lines.append(line.rstrip("\n"))
            if line.startswith(beginning):
                return
        raise AssertionError(self.lines)

    def interrupt(self):
        """Send Ctrl-C to all processes of the command, as a terminal does."""
        os.killpg(self._process.pid, signal.SIGINT)

    def stop_reading(self):
        """Close the end of the pipe that progress is read from."""
        self._process.stderr.close()

    def end(self):
        """Return the exit code and what the command printed."""
        if self._process.stderr.closed:
            out = self._process.stdout.read()
        else:
            out, err = self._process.communicate(timeout=PATIENCE)
            self.lines += err.splitlines()
        return self._process.wait(timeout=PATIENCE), out


@pytest.fixture
def paused():
    """Return a function that starts a command which pauses, as a PausedProcess."""
    started = []

    def paused(beginnings, *arguments):
        started.append(PausedProcess(beginnings, *arguments))
        return started[-1]

    yield paused
    for process in started:
        process._process.kill()
        process._process.wait()


@pytest.fixture
def interrupted(paused):
    """Return a function that ends a fit with Ctrl-C, and returns what it says after that."""

    def interrupted(*arguments):
        process = paused(["iter "], *arguments, "--verbose")
        process.read_to_pause()
        n_before = len(process.lines)
        process.interrupt()
        code, _ = process.end()
        assert code == 130
        rest = process.lines[n_before:]
        return [line for line in rest if not line.startswith(("iter ", "solve: "))]

    return interrupted


@pytest.fixture(scope="session")
def error_of(run):
    """Return a function that runs a command with bad input and returns its error message."""

    def error_of(*arguments):
        done = run(*arguments, code=2)
        assert done.stdout == ""
        *progress, sentence = done.stderr.splitlines()
        assert all(line.startswith(("read ", "group ")) for line in progress)
        assert sentence.startswith("marginrank: ")
        return sentence.removeprefix("marginrank: ")

    return error_of


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Return a folder with train.txt and test.txt, 6 features each."""
    folder = tmp_path_factory.mktemp("cli")
    X, y, qid = make_ranking(60, (2, 12), 6, dtype=np.float32, random_state=0)
    for name, rows in (("train.txt", qid < 30), ("test.txt", qid >= 30)):
        write_letor(folder / name, X[rows], y[rows], qid[rows])
    return folder


@pytest.fixture(scope="session")
def train_txt(files):
    return files / "train.txt"


@pytest.fixture(scope="session")
def test_txt(files):
    return files / "test.txt"


@pytest.fixture(scope="session")
def trained(run, files, train_txt):
    """Return the process that trained files/model.json."""
    return run("train", train_txt, "--model", files / "model.json", "-C", "0.1", "--json")


@pytest.fixture(scope="session")
def model_json(files, trained):
    return files / "model.json"
