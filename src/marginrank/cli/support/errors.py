"""From exceptions to exit codes: 1 for a failed check, 2 for bad input, 130 for Ctrl-C."""

import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from marginrank._utils.parameters import Message, ParameterError
from marginrank.cli.support.flags import as_flag
from marginrank.cli.support.streams import write_err
from marginrank.cli.support.text import printable

DEFECT = 1
CHECK_FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130


class CheckFailed(Exception):
    """A check that the user asked for has failed."""


@contextmanager
def exit_codes() -> Iterator[None]:
    """End the process as the shell expects, without a traceback."""
    try:
        with _plain_warnings():
            yield
    except KeyboardInterrupt as error:
        complain("interrupted; no file is half-written")
        raise typer.Exit(INTERRUPTED) from error
    except (BrokenPipeError, typer.Exit):
        raise
    except CheckFailed as error:
        complain(str(error))
        raise typer.Exit(CHECK_FAILED) from error
    except (ValueError, OSError, ImportError, MemoryError, RecursionError) as error:
        complain(_sentence(error))
        raise typer.Exit(BAD_INPUT) from error
    except Exception as error:
        complain(_defect(error))
        raise typer.Exit(DEFECT) from error


def complain(sentence: str) -> None:
    """Print one line on stderr."""
    write_err(f"marginrank: {printable(sentence)}")


def message_of(told: Exception | str) -> str:
    """Return the message of an error or a warning, with parameters as flags."""
    match told:
        case ParameterError(message=message) | Warning(args=(Message() as message,)):
            return message.spelled(as_flag)
    return str(told)


def _sentence(error: Exception) -> str:
    told = _one_line(message_of(error))
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename or 'a file without a name'}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "there is not enough memory for this" + (f": {told}" if told else ".")
    if isinstance(error, RecursionError):
        return "the input is nested too deeply to be read."
    return told or type(error).__name__


def _defect(error: Exception) -> str:
    """Say what nobody foresaw, and where, so that it can be reported."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"this is a defect of marginrank, please report it: {type(error).__name__} in "
        f"{Path(frame.filename).name}:{frame.lineno}: {_one_line(error)}"
    )


def _one_line(message: object) -> str:
    return " ".join(str(message).split())


@contextmanager
def _plain_warnings() -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        complain(f"warning: {_one_line(message_of(message))}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
