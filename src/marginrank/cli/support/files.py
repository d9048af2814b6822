"""Files of scores, one a line, and of results; pipes."""

import math
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import IO, Any

from marginrank._utils.parameters import ParameterError, Part
from marginrank.cli.support.streams import check_piped, write_out

LONGEST = 40  # characters of a file that a message quotes


@contextmanager
def regular_file(path: str) -> Iterator[str]:
    """Yield a file that can be read more than once: of a pipe, a copy."""
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
    """Whether `path` is standard input, or another stream that can be read only once."""
    if path == "-":
        return True
    mode = os.stat(path).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def name_of(path: str) -> str:
    """Return what to call an input in messages."""
    return "standard input" if path == "-" else path


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Let errors name the file, unless they do."""
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
    """Return the text of an error, with the parameters that it mentions still to be spelled."""
    return error.parts if isinstance(error, ParameterError) else (str(error),)


def read_scores(path: str, n_documents: int) -> Any:
    """Read one score a line."""
    import numpy as np

    name = name_of(path)
    with _open(path) as lines:
        scores = [_score(name, number, line) for number, line in enumerate(lines, 1)]
    if len(scores) != n_documents:
        raise ValueError(f"{name} has {len(scores)} scores but the data {n_documents} documents.")
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
        raise ValueError(f"{name}:{number}:1: {text[:LONGEST]!r} is not a finite score.")
    return score


def write_numbers(path: str | None, numbers: Iterable[float]) -> None:
    """Write one number a line, so that it is read back exactly; to stdout without a path."""
    text = "".join(f"{number!r}\n" for number in numbers)
    if path is None:
        write_out(text)
        return
    write_text(path, text)


def write_text(path: str, text: str) -> None:
    """Write a file, or nothing at all."""
    from marginrank._utils.atomic_files import atomic_write

    with naming(path), atomic_write(path) as file:
        file.write(text.encode())
