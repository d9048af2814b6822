"""Sums over parts, in their order."""

from typing import Any

import numpy as np

from marginrank._utils.types import Floats


class OrderedSum:
    """Adds up numbers or arrays, as if with twice the digits.

    However many parts there are, the sum is as good as that of one.
    """

    def __init__(self) -> None:
        self._sum: Floats | None = None
        self._rest: Any = 0.0

    def add(self, values: Any) -> None:
        """Add one more."""
        values = np.asarray(values, dtype=np.float64)
        if self._sum is None:
            self._sum = values.copy()
            return
        total = self._sum + values
        with np.errstate(invalid="ignore"):  # infinity less infinity: looked at in the end
            share = total - self._sum
            self._rest = self._rest + ((self._sum - (total - share)) + (values - share))
        self._sum = total

    @property
    def total(self) -> Floats:
        """The sum."""
        assert self._sum is not None
        # Where the sum is not finite, what is left of it is nothing to add.
        return np.where(np.isfinite(self._sum), self._sum + self._rest, self._sum)
