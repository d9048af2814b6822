"""Printing of a command's errors and warnings, and exit codes.

The exit codes are 1 for a failed check or a bug, 2 for bad input, 3 for findings of
``marginrank check``, and 130 for Ctrl-C.
"""

import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from marginrank._utils.parameters import Message, ParameterError
from marginrank.cli.flags.declaration import as_flag
from marginrank.cli.support.streams import printable, write_err

FAILED = 1
BAD_INPUT = 2
FOUND = 3
INTERRUPTED = 130


class CheckFailed(Exception):
    """Error for a check that the user has requested and that failed, as in ``export --verify``."""


@contextmanager
def exit_codes() -> Iterator[None]:
    """Context manager that prints errors and warnings as one line each, and sets the exit code."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            yield
    except KeyboardInterrupt as error:
        complain("interrupted; no file is half-written")
        raise typer.Exit(INTERRUPTED) from error
    except (BrokenPipeError, typer.Exit):
        raise
    except CheckFailed as error:
        complain(str(error))
        raise typer.Exit(FAILED) from error
    except (ValueError, OSError, ImportError, MemoryError, RecursionError) as error:
        complain(_sentence(error))
        raise typer.Exit(BAD_INPUT) from error
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        complain(
            f"this is a bug in marginrank; please report it: {type(error).__name__} in "
            f"{Path(frame.filename).name}:{frame.lineno}: {_one_line(error)}"
        )
        raise typer.Exit(FAILED) from error


def complain(sentence: str) -> None:
    """Print "marginrank: " and a sentence as one line on stderr."""
    write_err(f"marginrank: {printable(sentence)}")


def warn_of(message: Message | str | None) -> None:
    """Emit `message` as a warning, if not None."""
    if message is not None:
        warnings.warn(message, stacklevel=2)


def message_of(source: Exception | str) -> str:
    """Return the message of an error or a warning, with parameters spelled as flags."""
    match source:
        case ParameterError(message=message) | Warning(args=(Message() as message,)):
            return message.spelled(as_flag)
    return str(source)


def _sentence(error: Exception) -> str:
    message = _one_line(message_of(error))
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename or 'a file without a name'}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "not enough memory" + (f": {message}" if message else ".")
    if isinstance(error, RecursionError):
        return "the input is nested too deeply."
    return message or type(error).__name__


def _one_line(message: object) -> str:
    return " ".join(str(message).split())


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    complain(f"warning: {_one_line(message_of(message))}")
