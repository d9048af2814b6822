"""What targets share: who wrote a file, JSON, and lists in the syntax of Python and JavaScript."""

import json
from collections.abc import Iterable
from typing import Any

from marginrank._utils.types import Floats
from marginrank._utils.version import __version__
from marginrank.export.numbers import exact
from marginrank.export.sums import CurveAxis, CurveTerm, GridTerm

WRITTEN_BY = f"Written by marginrank {__version__}."


def json_file(content: Any) -> bytes:
    """Return JSON in ASCII; numbers read back exactly, and always have a point or an exponent."""
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode("ascii")


def curve_list(term: CurveTerm) -> str:
    """Return a curve: its axis, then what it adds at the nodes of that.

    Examples
    --------
    >>> import numpy as np
    >>> from marginrank.models.additive_model import Curve
    >>> curve = Curve(np.array([0.0, 1.0]), np.array([3.0, 4.0]), 0.5, categorical=False)
    >>> curve_list(CurveTerm(7, "bm25", curve))
    '[[7, 0, [0.0, 1.0]], [0.5, 3.0, 4.0]]'
    """
    return _list([*map(_axis, term.axes), _numbers(term.at_nodes)])


def grid_list(term: GridTerm) -> str:
    """Return a grid: its two axes, then what it adds at their nodes, row by row."""
    return _list([*map(_axis, term.axes), _list(map(_numbers, term.at_nodes))])


def _axis(axis: CurveAxis) -> str:
    """Return the place of a feature, 1 for categories and 0 for numbers, and the knots."""
    return _list([str(axis.place), str(int(axis.categorical)), _numbers(axis.knots)])


def _numbers(values: Floats) -> str:
    return _list(map(exact, values))


def _list(entries: Iterable[str]) -> str:
    return f"[{', '.join(entries)}]"
