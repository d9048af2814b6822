"""Sums of products, read from text and computed in float64 in the order in which they stand."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from marginrank._utils.types import Floats

NUMBER = r"(?P<number>-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)"
SIGN = r"(?P<sign>[+*()])"


def evaluate(text: str, variable: str, value_of: Callable[[re.Match[str]], Floats]) -> Floats:
    """Return the value of a text of numbers, variables, ``+``, ``*`` and parentheses.

    Parameters
    ----------
    text : str
        What to compute.
    variable : str
        A regular expression of variables.
    value_of : callable
        The value of a variable, from its match.
    """
    tokens = re.compile(rf"\s*(?:(?P<variable>{variable})|{NUMBER}|{SIGN})\s*")
    found: list[Any] = []
    end = 0
    for match in tokens.finditer(text):
        if match.start() != end:
            break
        end = match.end()
        if match["variable"] is not None:
            found.append(value_of(match))
        else:
            found.append(match["sign"] or np.float64(match["number"]))
    if end != len(text):
        raise ValueError(f"{text[end : end + 40]!r} is no sum of products.")
    found.reverse()
    return _sum(found)


def _sum(tokens: list[Any]) -> Floats:
    total = _product(tokens)
    while tokens and _takes(tokens, "+"):
        total = total + _product(tokens)
    return total


def _product(tokens: list[Any]) -> Floats:
    product = _factor(tokens)
    while tokens and _takes(tokens, "*"):
        product = product * _factor(tokens)
    return product


def _factor(tokens: list[Any]) -> Floats:
    if _takes(tokens, "("):
        inner = _sum(tokens)
        if not _takes(tokens, ")"):
            raise ValueError("a parenthesis is not closed.")
        return inner
    value: Floats = tokens.pop()
    if isinstance(value, str):
        raise ValueError(f"{value!r} stands where a value should be.")
    return value


def _takes(tokens: list[Any], sign: str) -> bool:
    if isinstance(tokens[-1], str) and tokens[-1] == sign:
        tokens.pop()
        return True
    return False
