"""From exceptions to exit codes: 2 and one sentence for bad input, 130 for Ctrl-C."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

BAD_INPUT = 2
INTERRUPTED = 130


@contextmanager
def exit_codes() -> Iterator[None]:
    """End the process as the shell expects, without a traceback."""
    try:
        with _plain_warnings():
            yield
    except KeyboardInterrupt as error:
        complain("interrupted; no file is half-written")
        raise typer.Exit(INTERRUPTED) from error
    except BrokenPipeError:  # `| head` has seen enough; typer ends quietly
        raise
    except (ValueError, OSError, ImportError) as error:
        complain(_sentence(error))
        raise typer.Exit(BAD_INPUT) from error


def complain(sentence: str) -> None:
    """Print one line on stderr."""
    print(f"marginrank: {sentence}", file=sys.stderr)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def _plain_warnings() -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        complain(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
