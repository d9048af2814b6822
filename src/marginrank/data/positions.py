"""Position bias of clicks: positions of shown documents, encoded as a categorical feature."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginrank._utils.types import Floats, Integers
from marginrank.data.validation import check_vector, is_missing

POOLED = 20  # positions from the 20th on share one effect, because few users examine them
MOST_CELLS = 2**16 - 2  # largest product contexts × positions that the kernels can count


class PositionCodes(NamedTuple):
    """The position at which each document was shown, encoded as a categorical feature.

    A category is a position, or a pair (context, position) if there are contexts such as layouts.
    A fit to clicks learns one effect per category.
    """

    codes: NDArray[np.uint16]
    n_positions: int  # number of positions; all later positions count as the last one
    contexts: NDArray[Any] | None

    @property
    def width(self) -> int:
        return self.n_positions * (1 if self.contexts is None else self.contexts.size)

    def effects(self, values: Floats) -> Floats:
        """Return estimated effects of positions as a table with one row per context.

        Without contexts, return a vector. Effects of positions without documents are NaN.
        """
        is_empty = np.bincount(self.codes, minlength=self.width) == 0
        table = np.where(is_empty, np.nan, values)
        return table if self.contexts is None else table.reshape(-1, self.n_positions)


def check_positions(
    position: ArrayLike | None, context: ArrayLike | None, n: int
) -> tuple[Integers | None, NDArray[Any] | None]:
    """Return the validated positions and contexts (such as layouts) of n documents, or None."""
    if position is None:
        if context is not None:
            raise ValueError("context requires position; pass both or neither.")
        return None, None
    return whole_positions(position, n), None if context is None else _contexts(context, n)


def whole_positions(position: ArrayLike, n: int) -> Integers:
    """Return the positions of n documents as int64; raise ValueError unless they are 1, 2, …."""
    values = check_vector(position, "position", n, "one position per document")
    bad = np.flatnonzero((values < 1) | (values != np.floor(values)))
    if bad.size:
        raise ValueError(
            f"position[{bad[0]}] is {values[bad[0]]:g}; positions are whole numbers, 1 for the top."
        )
    return np.minimum(values, np.iinfo(np.int64).max // 2).astype(np.int64)


def _contexts(context: ArrayLike, n: int) -> NDArray[Any]:
    values = np.asarray(context)
    if values.ndim != 1 or values.size != n:
        raise ValueError(
            f"context has shape {values.shape} and needs {n} entries, one per document."
        )
    if values.dtype.kind == "O":
        missing = [k for k, value in enumerate(values.tolist()) if is_missing(value)]
        if missing:
            raise ValueError(f"context[{missing[0]}] is missing; every document needs a context.")
        values = values.astype(str)
    if values.dtype.kind not in "biuSU":
        raise ValueError(
            f"context has dtype {values.dtype}; pass integers or strings, such as names of layouts."
        )
    return values


def position_codes(
    position: Integers, context: NDArray[Any] | None, n_positions: int | None = None
) -> PositionCodes:
    """Encode validated positions, and contexts if given, as a categorical feature.

    Position 20 and all later ones share a category, because few users examine them. By default,
    `n_positions` is the largest position in the data, at most 20.
    """
    pooled = np.minimum(position, POOLED) - 1
    n_positions = n_positions or int(pooled.max()) + 1
    contexts = None
    if context is not None:
        contexts, of_document = np.unique(context, return_inverse=True)
        if contexts.size * n_positions > MOST_CELLS:
            raise ValueError(
                f"context has {contexts.size} distinct values, too many to estimate the effects of "
                "positions in each; pass layouts or devices, not sessions."
            )
        pooled = of_document.ravel() * n_positions + pooled
    return PositionCodes(pooled.astype(np.uint16), n_positions, contexts)
