"""What the line-based formats share."""

import math
import re
from typing import NoReturn

import numpy as np

from marginrank._utils.memory import require_memory
from marginrank._utils.types import Floats

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
MOST_FEATURES = 2**31 - 1  # that LETOR text can have
INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)


class Lines:
    """The lines of a file, one after the other; :meth:`fail` names the last one given.

    Parameters
    ----------
    path : str
        The file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.number = 0
        with open(path, "rb") as file:
            text = file.read().decode("utf-8", "replace").removeprefix("\ufeff")
        self._lines = text.rstrip().split("\n")

    def next(self, expected: str) -> str:
        """Return the next line, or fail saying what was expected there."""
        self.number += 1
        if self.number > len(self._lines):
            self.fail(f"the file ends where {expected} should follow")
        return self._lines[self.number - 1].strip()

    def more(self) -> bool:
        """Whether there is another line."""
        return self.number < len(self._lines)

    def end(self, what: str) -> None:
        """Fail if there are more lines."""
        if self.more():
            self.number += 1
            self.fail(f"{self._shown()} comes after {what}")

    def fail(self, what: str) -> NoReturn:
        """Raise, naming the file and the line."""
        raise ValueError(f"{self.path}:{self.number}: {what}.")

    def number_of(self, text: str, what: str) -> float:
        """Return a finite number."""
        value = float(text) if NUMBER.fullmatch(text) else math.nan
        if not math.isfinite(value):
            self.fail(f"{what} is {shorten(text)} and must be a finite number")
        return value

    def integer_of(self, text: str, what: str, at_least: int, at_most: int | None = None) -> int:
        """Return an integer between bounds."""
        value = int(text) if INTEGER.fullmatch(text) else None
        if value is None or value < at_least:
            self.fail(f"{what} is {shorten(text)} and must be an integer of at least {at_least}")
        if at_most is not None and value > at_most:
            self.fail(f"{what} is {value} and must be at most {at_most:,}")
        return value

    def weights_of(self, weights: dict[int, float], n_features: int) -> Floats:
        """Return a vector of weights that are given by index, from 1 on."""
        require_memory(
            8 * n_features,
            f"{self.path}: the highest feature index is {n_features}, and a vector of weights",
            "check it",
        )
        coef = np.zeros(n_features)
        coef[np.fromiter(weights, np.int64) - 1] = np.fromiter(weights.values(), np.float64)
        return coef

    def _shown(self) -> str:
        return shorten(self._lines[self.number - 1].strip())


def shorten(text: str) -> str:
    """Quote the beginning of a text."""
    return repr(text if len(text) <= 40 else text[:40] + "…")


def format_weight(value: float) -> str:
    """Write a number with 16 digits as LIBLINEAR does, or 17 where 16 would not read back."""
    text = f"{value:.16g}"
    return text if float(text) == value else f"{value:.17g}"
