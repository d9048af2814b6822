"""Text of numbers, sums, lists and JSON, without loss of digits."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from marginrank._utils.version import __version__

WRITTEN_BY = f"Written by marginrank {__version__}."

# The documented accuracy of exports.
FLOAT32_ACCURACY = 1e-5  # largest difference, relative to the range of scores
FLOAT64_ACCURACY = 1e-12  # largest difference, relative to the largest score
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
GROUP = 16  # terms per parenthesis; smaller groups nest too deeply for some parsers


def exact(value: float) -> str:
    """Return a number as text that every language reads back exactly, as a float."""
    return repr(float(value))


def scientific(value: float) -> str:
    """Return a number with 17 digits and an exponent: SQL systems read others as DECIMAL."""
    return f"{value:.16e}"


def sum_of(terms: Sequence[str], empty: str, indent: str = "  ") -> str:
    """Return the text of a sum, in nested parentheses of at most 16 terms."""
    if not terms:
        return empty
    while len(terms) > GROUP:
        groups = [terms[k : k + GROUP] for k in range(0, len(terms), GROUP)]
        terms = ["(" + " + ".join(group) + ")" for group in groups]
    return f"\n{indent}+ ".join(terms)


def entry_lines(entries: Iterable[str], indent: str = "    ") -> str:
    """Return one line per entry of an array, each with a comma."""
    return "\n".join(f"{indent}{entry}," for entry in entries)


def json_file(content: Any) -> bytes:
    """Return an object as JSON in ASCII; floats have all digits, and a point or exponent."""
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode("ascii")
