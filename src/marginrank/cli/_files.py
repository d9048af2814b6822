"""Files of results: scores, one a line, and others."""

import math
import os
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any


def check_writable(path: str | None, *, folder: bool = False) -> None:
    """Refuse what cannot become a file, or a folder, before the work is done and not after."""
    if path is None:
        return
    if path == "-":
        raise ValueError('"-" is standard input; name a file to write to.')
    if not Path(path).parent.is_dir():
        raise ValueError(f"{path}: the folder {Path(path).parent} does not exist.")
    if Path(path).is_dir() and not folder:
        raise ValueError(f"{path} is a folder; name a file to write to.")
    is_device = Path(path).exists() and not Path(path).is_file() and not folder
    place = path if is_device else os.path.dirname(os.path.realpath(path))
    if not os.access(place, os.W_OK):
        raise ValueError(f"{path}: {place} is not writable.")


def check_found(paths: Iterable[str | None]) -> None:
    """Refuse files that do not exist."""
    for path in paths:
        if path not in (None, "-"):
            os.stat(path)


def refuse_stdin_twice(paths: Iterable[str | None]) -> None:
    """Refuse to read standard input for two purposes."""
    if list(paths).count("-") > 1:
        raise ValueError('"-" is given twice, but standard input can be read only once.')


def read_scores(path: str, n_documents: int) -> Any:
    """Read one score a line."""
    import numpy as np

    with _open(path) as lines:
        scores = [_score(path, number, line) for number, line in enumerate(lines, 1)]
    if len(scores) != n_documents:
        raise ValueError(f"{path} has {len(scores)} scores but the data {n_documents} documents.")
    return np.array(scores, dtype=np.float64)


def _open(path: str) -> Any:
    return nullcontext(sys.stdin) if path == "-" else open(path, encoding="utf-8")


def _score(path: str, number: int, line: str) -> float:
    try:
        score = float(line)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise ValueError(f"{path}:{number}:1: {line.strip()!r} is not a finite score.")
    return score


def write_numbers(path: str | None, numbers: Iterable[float]) -> None:
    """Write one number a line, so that it is read back exactly; to stdout without a path."""
    text = "".join(f"{number!r}\n" for number in numbers)
    if path is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    write_text(path, text)


def write_text(path: str, text: str) -> None:
    """Write a file, or nothing at all."""
    from marginrank._atomic import atomic_write

    with atomic_write(path) as file:
        file.write(text.encode())
