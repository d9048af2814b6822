"""Conversion of numbers, sums, arrays and JSON to text for exported files, without rounding."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from marginrank._utils.version import __version__

WRITTEN_BY = f"Written by marginrank {__version__}."

# The accuracy that the documentation promises for exports.
FLOAT32_ACCURACY = 1e-5  # largest difference, relative to the range of scores
FLOAT64_ACCURACY = 1e-12  # largest difference, relative to the largest score
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
GROUP = 16  # terms per parenthesis; smaller groups nest too deeply for some parsers


def exact(value: float) -> str:
    """Return a float as text that every language reads back exactly, and not as an integer."""
    return repr(float(value))


def scientific(value: float) -> str:
    """Return a float as text with 17 digits and an exponent, for SQL.

    Some databases read numbers without an exponent as DECIMAL.
    """
    return f"{value:.16e}"


def sum_of(terms: Sequence[str], empty: str, indent: str = "  ") -> str:
    """Return the sum of `terms` as code with nested parentheses, or `empty` if there are none.

    A parenthesis has at most 16 terms, because parsers of some systems fail on longer sums.
    """
    if not terms:
        return empty
    while len(terms) > GROUP:
        groups = [terms[k : k + GROUP] for k in range(0, len(terms), GROUP)]
        terms = ["(" + " + ".join(group) + ")" for group in groups]
    return f"\n{indent}+ ".join(terms)


def entry_lines(entries: Iterable[str], indent: str = "    ") -> str:
    """Return the entries of an array literal as text, one per line, each followed by a comma."""
    return "\n".join(f"{indent}{entry}," for entry in entries)


def json_file(content: Any) -> bytes:
    """Return an object as a JSON file in ASCII; floats are written exactly, never as integers."""
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode("ascii")
