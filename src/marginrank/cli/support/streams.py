"""Safe use of stdin, stdout and stderr, which may be closed, and escaping of text for them."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# Replacements for characters in our own output that the encoding of stdout may lack. Other
# characters are escaped.
PLAIN = str.maketrans("▁▂▃▄▅▆▇█░▒▓×−", "_.-=+*%#.:*x-") | {ord("…"): "..."}


def prepare() -> None:
    """Prepare stdin, stdout and stderr for a command.

    Closed streams are opened, broken pipes end the program silently, and characters that cannot be
    encoded are escaped.
    """
    # If the reader of a pipe has ended, end silently like other programs.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    # If a standard descriptor is free, the next file that is opened gets its number, and output of
    # libraries would end up in the file.
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number is `descriptor`
    if sys.stdout is None:
        # Open it for reading: writing must fail, so that check_stdout reports the closed stream.
        sys.stdout = open(os.devnull)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def check_stdout() -> None:
    """Raise ValueError if standard output is closed."""
    if not sys.stdout.writable():
        raise ValueError("standard output is closed; redirect it, to /dev/null if not wanted.")


def check_piped() -> None:
    """Raise ValueError if standard input is empty; most likely, the command before it failed."""
    if not sys.stdin.buffer.peek(1):  # type: ignore[union-attr]
        raise ValueError("standard input is empty; check whether the command before it failed.")


def write_out(text: str) -> None:
    """Write text to standard output, and flush it so that a failure raises OSError at once."""
    with writing_out():
        sys.stdout.write(text)
        sys.stdout.flush()


@contextmanager
def writing_out() -> Iterator[None]:
    """Context manager that adds the file name "standard output" to errors of writing."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        silence_stdout()
        raise OSError(error.errno, error.strerror, "standard output") from error


def write_err(line: str) -> None:
    """Write a line to standard error; ignore failures, which could not be reported anywhere."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def silence_stdout() -> None:
    """Discard output that could not be written, so that Python does not write it again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def printable(text: str) -> str:
    """Return a text with control characters and other invisible characters escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def for_stdout(text: str) -> str:
    """Return a text escaped for standard output, without characters that it cannot encode."""
    text = printable(text)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return text.translate(PLAIN)
    return text
