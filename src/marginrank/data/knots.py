"""Knots of additive models, and scores: the sum of the values of one curve per feature.

A curve is piecewise linear and is given by its values at the *knots* of the feature. The curve of a
categorical feature has one value per category instead. The knots of all features are concatenated
in one array: for each feature, one entry for missing values, then one entry per knot or category.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank import _core
from marginrank._utils.types import Booleans, Floats, Integers

MOST_KNOTS = 255  # per feature, so that knots and the missing value have indices of one byte
LEAST_STEP = float(np.finfo(np.float64).tiny)  # smallest distance between knots
BLOCK_ENTRIES = 1 << 22  # entries of X converted to a dense block at a time


@dataclass(frozen=True)
class Knots:
    """The knots of all features of an additive model, concatenated in one array.

    The curve of a feature is given by its value for missing values and its values at the knots.
    """

    at: Floats  # for each feature: NaN (missing values), then its knots or categories, ascending
    starts: Integers  # index in `at` of each feature's first entry, and the size of `at`
    categorical: NDArray[np.uint8]  # whether a feature is categorical

    @classmethod
    def of_features(cls, knots: list[Floats], categorical: Collection[int] = ()) -> "Knots":
        """Create a Knots object from a list with one array of knots or categories per feature."""
        missing = np.array([np.nan])
        sizes = [1 + of_feature.size for of_feature in knots]
        is_categorical = np.isin(np.arange(len(knots)), list(categorical))
        return cls(
            at=np.concatenate([part for of_feature in knots for part in (missing, of_feature)]),
            starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            categorical=is_categorical.astype(np.uint8),
        )

    @property
    def n_features(self) -> int:
        return self.categorical.size

    @property
    def n_columns(self) -> int:
        return self.at.size

    def columns(self, k: int) -> slice:
        return slice(int(self.starts[k]), int(self.starts[k + 1]))

    def of(self, k: int) -> Floats:
        """Return the knots, or the categories, of feature k, without the missing value."""
        return self.at[self.columns(k)][1:]

    def categories(self) -> list[tuple[int, Floats]]:
        """Return a list of (column number in X, categories), one per categorical feature."""
        return [(k, self.of(k)) for k in np.flatnonzero(self.categorical).tolist()]

    def scores(self, X: Any, values: Floats, threads: int) -> Floats:
        """Return the score of each row of X by an additive model: the sum of the curves' values.

        `values` are the values of the curves at the knots. Curves are extrapolated linearly, and
        an unknown category counts as missing. X must be validated already, except that infinity
        raises ValueError here.
        """
        scores = np.empty(X.shape[0])
        categories = self.categories()
        for rows, block in dense_blocks(X):
            check_no_infinity(block, rows.start)
            block = with_known_categories(block, categories)
            scores[rows] = _core.curve_scores(
                block, self.at, self.starts, self.categorical, values, threads
            )
        return scores


def are_rising(knots: Floats, categorical: bool) -> bool:
    """Return True if the knots of a feature are strictly increasing, far enough apart and finite.

    Knots are far enough apart if one can divide by their differences. Categories need not be.
    """
    with np.errstate(over="ignore"):
        steps = np.diff(knots)
    return bool(np.all(steps > 0 if categorical else (steps >= LEAST_STEP) & np.isfinite(steps)))


def with_known_categories(
    block: NDArray[Any], categories: Iterable[tuple[int, Floats]]
) -> NDArray[Any]:
    """Return rows of X with categorical values replaced by the category that is equal in float32.

    0.1 in float32 and 0.1 in float64 are different numbers, but they must be the same category if
    a model is fitted to one type and predicts on the other. `block` has rows of X; `categories`
    lists (column number, categories of the fit).
    """
    given = block
    for k, known in categories:
        keys, places, any_digits = _rounded_categories(known.tobytes())
        if not keys.size:
            continue
        column = given[:, k].astype(np.float64)
        with np.errstate(over="ignore"):
            rounded = column.astype(np.float32).astype(np.float64)
        at = np.minimum(np.searchsorted(keys, rounded), keys.size - 1)
        meant = known[places[at]]
        found = (keys[at] == rounded) & (any_digits[at] | (rounded == column)) & (meant != column)
        if found.any():
            block = block.astype(np.float64) if block is given else block
            block[found, k] = meant[found]
    return block


@lru_cache(maxsize=1024)
def _rounded_categories(categories: bytes) -> tuple[Floats, Integers, Booleans]:
    """Return three arrays: categories rounded to float32 (sorted), their indices, and a mask.

    The mask is True for categories that are float32 numbers, such as float64(float32(0.1)): every
    value that float32 rounds to such a category matches it. Any other category matches only itself
    and its rounded value. Two kinds of categories are omitted, so they are compared exactly: those
    that are equal in float32, and decimal numbers that float32 holds exactly, such as 0.5.
    """
    known = np.frombuffer(categories, dtype=np.float64)
    with np.errstate(over="ignore"):
        single = known.astype(np.float32)
    rounded, written = single.astype(np.float64), np.array([float(str(one)) for one in single])
    keys, places, counts = np.unique(rounded, return_index=True, return_counts=True)
    # Decimal numbers that both precisions hold exactly, such as 0.5.
    is_same = (rounded == known) & (written == known)
    kept = (counts == 1) & np.isfinite(keys) & ~is_same[places]
    return keys[kept], places[kept].astype(np.int64), (rounded == known)[places[kept]]


def dense_blocks(X: Any) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield (slice, X[slice] as a dense array) for consecutive rows, to limit memory."""
    height = max(BLOCK_ENTRIES // X.shape[1], 1)
    for first in range(0, X.shape[0], height):
        rows = slice(first, min(first + height, X.shape[0]))
        block = X[rows]
        yield rows, block.toarray() if sp.issparse(block) else block


def check_no_infinity(block: NDArray[Any], first: int = 0) -> None:
    """Raise ValueError if a block of rows of X has infinity; `first` is the block's first row."""
    places = np.argwhere(np.isinf(block))
    if places.size:
        row, column = places[0].tolist()
        raise ValueError(
            f"X[{first + row}, {column}] is infinity (inf); replace it, or pass NaN if it is "
            "missing."
        )
