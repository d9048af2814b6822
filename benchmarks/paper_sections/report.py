"""Plain aligned tables, and how their figures are written."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Figures = dict[str, Any]  # what goes into the file of --json


def show(
    title: str, header: Sequence[str], rows: Iterable[Sequence[Any]], notes: Sequence[str] = ()
) -> None:
    """Print a table and, below it, what differs from the paper; None is a figure it lacks."""
    lines = [list(header), *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    print(f"\n{title}")
    for first, *others in lines:
        cells = [f"{text:>{width}}" for text, width in zip(others, widths[1:], strict=True)]
        print("  ".join([f"{first:{widths[0]}}", *cells]))
    for note in notes:
        print(f"- {note}")


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def power(C: float) -> str:
    """Return C as a power of two or of ten, as the papers write it."""
    mantissa, exponent = C.hex().split("p")
    return f"2^{int(exponent)}" if mantissa == "0x1.0000000000000" else f"{C:g}"


def percent(share: float | None) -> str | None:
    """Return a share with the digits of paper 1."""
    return None if share is None else f"{100 * share:.2f}"


def digits(value: float | None) -> str | None:
    """Return an NDCG with the digits of paper 1."""
    return None if value is None else f"{value:.4f}"


def times(ratio: float | None) -> str | None:
    """Return a ratio of two times."""
    return None if ratio is None else f"{ratio:.3g} x"


def exponent(sizes: Sequence[int], seconds: Sequence[float | None]) -> float:
    """Return the power of the size that times grow with, as far as they are known."""
    known = [(size, value) for size, value in zip(sizes, seconds, strict=True) if value]
    return float(np.polyfit(*np.log(np.transpose(known)), 1)[0])
