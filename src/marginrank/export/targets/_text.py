"""Helpers of several targets: the author line, JSON, and lists of numbers as source code."""

import json
from collections.abc import Iterable
from typing import Any

from marginrank._utils.types import Floats
from marginrank._utils.version import __version__
from marginrank.export.numbers import exact
from marginrank.export.sums import CurveTerm, GridTerm

WRITTEN_BY = f"Written by marginrank {__version__}."


def json_file(content: Any) -> bytes:
    """Return JSON in ASCII; numbers read back exactly, and always have a point or an exponent."""
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode("ascii")


def entry_lines(entries: Iterable[str], indent: str = "    ") -> str:
    """Return one line per entry of an array, each with a comma."""
    return "\n".join(f"{indent}{entry}," for entry in entries)


def term_list(term: CurveTerm | GridTerm) -> str:
    """Return a curve or a grid as a list in the syntax of Python and JavaScript.

    It holds each axis (feature position, 1 if categorical, knots), then the values at the nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from marginrank.models.additive_model import Curve
    >>> curve = Curve(np.array([0.0, 1.0]), np.array([3.0, 4.0]), 0.5, categorical=False)
    >>> term_list(CurveTerm(7, "bm25", curve))
    '[[7, 0, [0.0, 1.0]], [0.5, 3.0, 4.0]]'
    """
    axes = [f"[{a.place}, {int(a.categorical)}, {_numbers(a.knots)}]" for a in term.axes]
    return f"[{', '.join([*axes, _numbers(term.at_nodes)])}]"


def _numbers(values: Floats) -> str:
    entries = map(exact if values.ndim == 1 else _numbers, values)
    return f"[{', '.join(entries)}]"
