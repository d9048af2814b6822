"""Knots of features: where curves may bend, and how values lie among them.

Columns of a feature are those of the native hat functions: one for missing values, then one for
each knot, or for each category of a feature that has no order.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank import _core
from marginrank._utils.memory import require_memory
from marginrank._utils.types import Booleans, Floats, Integers

MOST_BINS = 254  # with their knots and the column of missing values, as many as a byte tells apart
MOST_KNOTS = MOST_BINS + 1  # of a feature
LEAST_STEP = float(np.finfo(np.float64).tiny)  # between knots of a curve: 1 / step is finite
WHOLE = 1 << 15  # steps from a column to the next, in which places count
SAMPLE = 20_000  # documents whose values tell quantiles, means and covariances
SEED = 0  # of the sample
BLOCK_ENTRIES = 1 << 22  # of X that are looked at, or made dense, at a time
PLACE_BYTES = 3  # of a value
FEATURE_BYTES = 1000  # of what a fit makes for a feature, whatever the documents; about


class Places(NamedTuple):
    """Where values lie among the knots of their features, as ``_core.Matrix.hats`` takes it.

    Attributes
    ----------
    codes : ndarray of uint8, shape (n_documents, n_features)
        The column on the left of each value, inside its feature.
    steps : ndarray of uint16, shape (n_documents, n_features)
        How far it is from there to the next one, in steps of 2⁻¹⁵.
    """

    codes: NDArray[np.uint8]
    steps: NDArray[np.uint16]

    def take(self, rows: Any) -> "Places":
        """Return those of some rows."""
        return Places(self.codes[rows], self.steps[rows])


@dataclass(frozen=True)
class Knots:
    """The knots of all features.

    Attributes
    ----------
    at : ndarray of shape (n_columns,)
        For each feature NaN, the column of missing values, and then its knots or categories,
        ascending.
    starts : ndarray of int64, shape (n_features + 1,)
        The first column of each feature.
    categorical : ndarray of uint8, shape (n_features,)
        Which features have categories.
    """

    at: Floats
    starts: Integers
    categorical: NDArray[np.uint8]

    @classmethod
    def of_features(cls, knots: list[Floats], categorical: Collection[int] = ()) -> "Knots":
        """Put together the knots of each feature."""
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
        """Number of features."""
        return self.categorical.size

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.at.size

    def columns(self, k: int) -> slice:
        """Return the columns of a feature."""
        return slice(int(self.starts[k]), int(self.starts[k + 1]))

    def of(self, k: int) -> Floats:
        """Return the knots, or the categories, of a feature."""
        return self.at[self.columns(k)][1:]

    def categories(self) -> list[tuple[int, Floats]]:
        """Return the features that have categories, and these."""
        return [(k, self.of(k)) for k in np.flatnonzero(self.categorical).tolist()]

    def places(self, X: Any, threads: int) -> Places:
        """Return where the values of checked features lie; those beyond the outer knots are there.

        Three bytes a value, dense, whatever X is.
        """
        codes = np.empty(X.shape, dtype=np.uint8)
        steps = np.empty(X.shape, dtype=np.uint16)
        categories = self.categories()
        for rows, block in dense_blocks(X):
            block = with_known_categories(block, categories)
            codes[rows], steps[rows] = _core.encode_hats(
                block, self.at, self.starts, self.categorical, threads
            )
        return Places(codes, steps)

    def scores(self, X: Any, values: Floats, threads: int) -> Floats:
        """Return the sum of the curves that have these values at the knots, for checked features.

        Beyond its outer knots a curve goes on straight. An unknown category has the value of
        missing ones. Infinity is refused.
        """
        scores = np.empty(X.shape[0])
        categories = self.categories()
        for rows, block in dense_blocks(X):
            refuse_infinity(block, rows.start)
            block = with_known_categories(block, categories)
            scores[rows] = _core.curve_scores(
                block, self.at, self.starts, self.categorical, values, threads
            )
        return scores


def are_rising(knots: Floats, categorical: bool) -> bool:
    """Whether knots ascend, those of a curve in steps that float64 can divide by."""
    with np.errstate(over="ignore"):
        steps = np.diff(knots)
    return bool(np.all(steps > 0 if categorical else (steps >= LEAST_STEP) & np.isfinite(steps)))


def with_known_categories(
    block: NDArray[Any], categories: Iterable[tuple[int, Floats]]
) -> NDArray[Any]:
    """Return rows of X whose categories are those learned, whatever precision they are given in.

    0.1 as float32 and 0.1 as float64 are two numbers and one category.
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
    """Return categories in float32, ascending, which they are, and what they are there for.

    A category that float32 holds, though it has not as few digits in float64, was learned from
    float32 and stands for all that is rounded to it. One that float32 does not hold stands for
    what it is rounded to. Two that float32 does not tell apart are compared exactly.
    """
    known = np.frombuffer(categories, dtype=np.float64)
    with np.errstate(over="ignore"):
        single = known.astype(np.float32)
    rounded, written = single.astype(np.float64), np.array([float(str(one)) for one in single])
    keys, places, counts = np.unique(rounded, return_index=True, return_counts=True)
    is_same = (rounded == known) & (written == known)  # in both precisions, such as 0.5
    kept = (counts == 1) & np.isfinite(keys) & ~is_same[places]
    return keys[kept], places[kept].astype(np.int64), (rounded == known)[places[kept]]


def dense_blocks(X: Any) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield rows of X as dense arrays, and which these are."""
    height = max(BLOCK_ENTRIES // X.shape[1], 1)
    for first in range(0, X.shape[0], height):
        rows = slice(first, min(first + height, X.shape[0]))
        block = X[rows]
        yield rows, block.toarray() if sp.issparse(block) else block


def choose_knots(X: Any, max_bins: int = 32, categorical: Collection[int] = ()) -> Knots:
    """Return knots at quantiles of each feature, and the categories of those that have them.

    A feature of at most `max_bins` + 1 values has a knot at each of them. Otherwise a value that
    many documents have is a knot, and the others are at quantiles of the rest. Outer knots are the
    least and the largest value. NaN is no value.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_documents, n_features)
        Checked features; NaN is allowed, infinity is not.
    max_bins : int
        The largest number of bins between knots, up to 254.
    categorical : collection of int
        Features whose values are names.
    """
    _require_memory(X)
    low, high = _ranges(X)
    sample = _sample(X)
    knots = []
    for k in range(X.shape[1]):
        if k in categorical:
            knots.append(_categories(X, k))
        elif low[k] < high[k]:
            values = sample[:, k][~np.isnan(sample[:, k])].astype(np.float64)
            quantiles = _quantiles(np.concatenate([values, [low[k], high[k]]]), max_bins)
            knots.append(_apart(quantiles))
        else:
            knots.append(np.array([0.0 if np.isnan(low[k]) else low[k]]))
    return Knots.of_features(knots, categorical)


def _require_memory(X: Any) -> None:
    """Refuse features whose places and sample cannot be had; sparse ones are dense there."""
    n_documents, n_features = X.shape
    sampled = min(n_documents, SAMPLE) * X.dtype.itemsize
    require_memory(
        n_features * (PLACE_BYTES * n_documents + sampled + FEATURE_BYTES),
        f"X has {n_documents:,} × {n_features:,} values, zeros included, and a fit of curves",
        "curves are for features by the hundred: join or leave out some, or learn a weight for "
        "each with RankSVM",
    )


def _ranges(X: Any) -> tuple[Floats, Floats]:
    """Return the least and the largest value of each feature, NaN where it has none."""
    low, high = np.full((2, X.shape[1]), np.nan)
    for rows, block in dense_blocks(X):
        low, high = np.fmin(low, np.fmin.reduce(block)), np.fmax(high, np.fmax.reduce(block))
        if np.isinf(low).any() or np.isinf(high).any():
            refuse_infinity(block, rows.start)
    return low.astype(np.float64), high.astype(np.float64)


def refuse_infinity(block: NDArray[Any], first: int = 0) -> None:
    """Refuse rows of X, from row `first` on, that have an infinite value."""
    places = np.argwhere(np.isinf(block))
    if places.size:
        row, column = places[0].tolist()
        raise ValueError(
            f"X[{first + row}, {column}] is infinity (inf); replace it, or let NaN stand for a "
            "missing value."
        )


def _sample(X: Any) -> NDArray[Any]:
    """Return some rows as a dense array, by columns."""
    rows = np.arange(X.shape[0])
    if rows.size > SAMPLE:
        rows = np.sort(np.random.default_rng(SEED).choice(rows.size, SAMPLE, replace=False))
    taken = X[rows]
    return taken.toarray(order="F") if sp.issparse(taken) else np.asfortranarray(taken)


def _categories(X: Any, k: int) -> Floats:
    column = X[:, [k]]
    values = np.unique(column.toarray() if sp.issparse(column) else column).astype(np.float64)
    values = values[~np.isnan(values)]
    if values.size > MOST_BINS:
        raise ValueError(
            f"X[:, {k}] has {values.size} categories and may have {MOST_BINS}; join rare ones, or "
            "take the feature as a number."
        )
    return values if values.size else np.zeros(1)


def _quantiles(values: Floats, max_bins: int) -> Floats:
    """Return the distinct values, or frequent ones and quantiles of the others."""
    distinct, counts = np.unique(values, return_counts=True)
    if distinct.size <= max_bins + 1:
        return distinct
    frequent = counts * max_bins > values.size
    rare = np.repeat(distinct[~frequent], counts[~frequent])
    n_inner = max_bins - 1 - int(frequent.sum())
    # Between a frequent value and the others a curve may jump, so that these begin with a knot.
    shares = np.linspace(0, 1, n_inner) if frequent.any() else np.linspace(0, 1, n_inner + 2)[1:-1]
    # The least value with that share of them at or below it.
    inner = rare[np.maximum(np.ceil(shares * rare.size - 1.0), 0.0).astype(np.int64)]
    return np.unique(np.concatenate([distinct[frequent], distinct[[0, -1]], inner]))


def _apart(knots: Floats) -> Floats:
    """Return ascending knots without those that are too close to the one before to divide by."""
    if np.all(np.diff(knots) >= LEAST_STEP) or knots[-1] - knots[0] < LEAST_STEP:
        return knots  # the latter are refused as too small
    kept = [knots[0]]
    for knot in knots[1:]:
        if knot - kept[-1] >= LEAST_STEP:
            kept.append(knot)
    return np.array(kept)
