"""Reading of score files and pipes, and writing of text files and plots."""

import math
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

import numpy as np

from marginrank._utils.atomic_files import atomic_write
from marginrank._utils.parameters import ParameterError, Part
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.streams import check_piped

LONGEST = 40  # largest number of characters that a message quotes


@contextmanager
def regular_file(path: str) -> Iterator[str]:
    """Yield a path that can be read several times: `path`, or a temporary copy if it is a pipe."""
    if not is_pipe(path):
        yield path
        return
    name = name_of(path)
    with tempfile.NamedTemporaryFile(prefix="marginrank-") as copy:
        with _open(path) as stream:
            shutil.copyfileobj(stream, copy)
        copy.flush()
        try:
            yield copy.name
        except ValueError as error:
            parts = [p.replace(copy.name, name) if isinstance(p, str) else p for p in _parts(error)]
            raise ParameterError(*parts) from error


def is_pipe(path: str) -> bool:
    """Return True if `path` is standard input, or another stream that can be read only once."""
    if path == "-":
        return True
    mode = os.stat(path).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def name_of(path: str) -> str:
    """Return the name of an input file for messages: its path, or "standard input"."""
    return "standard input" if path == "-" else path


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Context manager that puts `path` at the beginning of error messages that lack it there."""
    try:
        yield
    except UnicodeError as error:
        raise ValueError(f"{path}: a name or an id is not UTF-8; rename it.") from error
    except ValueError as error:
        place = "" if str(error).startswith(path) else f"{path}: "
        raise ParameterError(place, *_parts(error)) from error
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, path) from error


def _parts(error: ValueError) -> tuple[Part, ...]:
    """Return the parts of an error's message, in which mentions of parameters are kept."""
    return error.parts if isinstance(error, ParameterError) else (str(error),)


def read_scores(path: str, n_documents: int) -> Any:
    """Read a file with one score per line; raise ValueError unless it has n_documents lines."""
    name = name_of(path)
    with _open(path) as lines:
        scores = [_score(name, number, line) for number, line in enumerate(lines, 1)]
    if len(scores) != n_documents:
        raise ValueError(
            f"{name} has {len(scores)} scores, but the data have {n_documents} documents; write "
            "one score per document."
        )
    return np.array(scores, dtype=np.float64)


def _open(path: str) -> AbstractContextManager[IO[bytes]]:
    if path != "-":
        return open(path, "rb")
    check_piped()
    return nullcontext(sys.stdin.buffer)


def _score(name: str, number: int, line: bytes) -> float:
    text = line.decode("utf-8", "replace").strip()
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise ValueError(f"{name}:{number}:1: {text[:LONGEST]!r} is not a finite number.")
    return score


def write_text(path: str, text: str) -> None:
    """Write text to a file atomically: it appears only when it is complete."""
    with naming(path), atomic_write(path) as file:
        file.write(text.encode())


def save_plot(path: str | None, phases: Phases, plot: Callable[[], Any]) -> None:
    """Draw a plot and save it to a file; do nothing if `path` is None.

    `plot` is a function that draws the plot and returns its axes.
    """
    if path is None:
        return
    with phases.phase("plot", path), naming(path), atomic_write(path) as file:
        plot().figure.savefig(file, format=plot_format(path))


def plot_format(path: str) -> str:
    """Return the image format of a plot, such as "png", from the ending of its path."""
    return Path(path).suffix.lower().removeprefix(".")
