"""Files of results: scores, one a line, and others."""

import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any


def check_writable(path: str | None) -> None:
    """Refuse a file in a folder that does not exist, before the work is done and not after."""
    if path is not None and not Path(path).parent.is_dir():
        raise ValueError(f"{path}: the folder {Path(path).parent} does not exist.")


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
        return float(line)
    except ValueError:
        raise ValueError(f"{path}:{number}:1: {line.strip()!r} is not a score.") from None


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
