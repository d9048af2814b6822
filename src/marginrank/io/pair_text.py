"""Reading of text files with one preference pair per line."""

import re
from collections.abc import Iterator

import numpy as np

from marginrank._utils.types import Floats
from marginrank.data.pair_lists import PairList
from marginrank.io.text_sources import Source, printable, source_name, texts_of

# Patterns of lines. Quantifiers are possessive (a + at the end), because backtracking could not
# find another match and would take long for a malformed line.
_GAP = rb"(?:[ \t]*+,[ \t]*+|[ \t]++)"
_ROW = rb"\d{1,15}+"
_WEIGHT = rb"\+?+(?:\d++\.?+\d*+|\.\d++)(?:[eE][+-]?+\d++)?+"
_PAIR = rb"[ \t]*+" + _ROW + _GAP + _ROW
_END = rb"[ \t]*+\r?+(?:\n|\Z)"
LINE = {width: _PAIR + (width - 2) * (_GAP + _WEIGHT) + _END for width in (2, 3, 4)}
LINES = {width: re.compile(rb"(?:" + line + rb")*+") for width, line in LINE.items()}
EMPTY = "the line is empty; drop it"
SPACES = bytes.maketrans(b",\t\r\n", b"    ")


def load_pairs(source: Source) -> PairList:
    r"""Read preference pairs from text: two row numbers per line, perhaps with weight and margin.

    Parameters
    ----------
    source : path or binary file object
        Columns are separated by tabs, spaces or commas: the preferred row, the other row and, in
        all lines or in none, a weight, or a weight and a margin. Rows are numbered from 0. There is
        no header. Files that end in .gz, .bz2, .xz or .zst are decompressed; "-" is standard input.

    Returns
    -------
    PairList
        The pairs, with the attributes `pairs`, `weight` and `margin`. Pass it as `pairs` to
        :meth:`marginrank.RankSVM.fit`.

    Raises
    ------
    ValueError
        ``file:line: what is wrong``, for the first malformed line.

    Examples
    --------
    >>> import io
    >>> from marginrank import load_pairs
    >>> listed = load_pairs(io.BytesIO(b"4\t0\t1.5\n2\t0\t1\n"))
    >>> listed.pairs
    array([[4, 0],
           [2, 0]])
    >>> listed.weight
    array([1.5, 1. ])
    """
    name = source_name(source)
    tables = [table for table in _tables(source, name) if len(table)]
    if not tables:
        raise ValueError(f"{name} has no pairs: it is empty.")
    table = np.concatenate(tables)
    weight, margin = (
        np.ascontiguousarray(table[:, k]) if k < table.shape[1] else None for k in (2, 3)
    )
    return PairList(table[:, :2].astype(np.int64), weight, name, margin)


def _tables(source: Source, name: str) -> Iterator[Floats]:
    n_lines = n_pairs = width = 0
    for chunk, first, last in texts_of(source, None):
        text = chunk[first:last]
        lines = text.rstrip()  # empty lines are allowed only at the end of the file
        if lines and n_lines > n_pairs:
            raise ValueError(f"{name}:{n_pairs + 1}: {EMPTY}.")
        width = width or min(max(len(_columns(lines.partition(b"\n")[0])), 2), 4)
        table = _parse(lines, width)
        if table is None:
            raise ValueError(f"{name}:{_first_fault(lines, width, n_lines + 1)}.")
        yield table
        n_pairs += len(table)
        n_lines += text.count(b"\n")


def _columns(line: bytes) -> list[bytes]:
    return re.split(_GAP, line.strip())


def _parse(lines: bytes, width: int) -> Floats | None:
    """Parse lines to an array with `width` columns; return None if a line is malformed."""
    match = LINES[width].match(lines)
    if match is None or match.end() < len(lines):
        return None
    table = np.fromstring(lines.translate(SPACES), dtype=np.float64, sep=" ").reshape(-1, width)
    return table if np.isfinite(table).all() else None


def _first_fault(lines: bytes, width: int, number: int) -> str:
    for line in lines.split(b"\n"):
        if _parse(line, width) is None or not line.strip():
            break
        number += 1
    return f"{number}: {_fault(line, width)}"


def _fault(line: bytes, width: int) -> str:
    fields = _columns(line)
    if fields == [b""]:
        return EMPTY
    if len(fields) not in LINE:
        return f"{len(fields)} columns; write two row numbers and optionally a weight and a margin"
    for field in fields[:2]:
        if not re.fullmatch(_ROW, field):
            return (
                f"'{printable(field[:40])}' is not a row number; write integers from 0 on, "
                "without a header"
            )
    if len(fields) != width:
        return f"{len(fields)} columns, but the first line has {width}; write as many in all lines"
    what, field = next(
        named
        for named in zip(("weight", "margin"), fields[2:], strict=False)
        if not (re.fullmatch(_WEIGHT, named[1]) and np.isfinite(float(named[1])))
    )
    return f"'{printable(field[:40])}' is not a {what}; write a finite, non-negative number"
