"""The standard streams, in whatever state the shell left them."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def prepare() -> None:
    """Make the standard streams safe to use.

    A file that is opened while a standard descriptor is free would get its number, and what a
    library prints there would end up in the file. Characters that a terminal does not have are
    written as escapes. Where the reader of a pipe has seen enough, the process ends as others do.
    """
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    if sys.stdout is None:
        sys.stdout = open(os.devnull)  # noqa: SIM115 (for reading: what is printed must not vanish)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def check_stdout() -> None:
    """Refuse, before the work is done, to print where nothing can be printed."""
    if not sys.stdout.writable():
        raise ValueError("standard output is closed; redirect it, to /dev/null if not wanted.")


def write_out(text: str) -> None:
    """Write to standard output, and notice at once where that fails."""
    with writing_out():
        sys.stdout.write(text)
        sys.stdout.flush()


@contextmanager
def writing_out() -> Iterator[None]:
    """Let errors name standard output."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        silence_stdout()
        raise OSError(error.errno, error.strerror, "standard output") from error


def write_err(line: str) -> None:
    """Write a line to standard error; where that fails, there is nowhere left to say so."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def silence_stdout() -> None:
    """Drop what could not be written, which the interpreter would try again when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def check_piped() -> None:
    """Raise ValueError if standard input is empty: most often another command failed."""
    if not sys.stdin.buffer.peek(1):  # type: ignore[union-attr]
        raise ValueError("standard input is empty; see whether the command before it failed.")
