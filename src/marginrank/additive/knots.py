"""Choice of knots for the curves of an additive model, and encoding of feature values by them.

Each feature has one column for missing values, then one *hat function* per knot: a piecewise linear
function that is one at this knot and zero at all others. A value is stored as a *code* (the number
of the column to its left) and its distance from there, so its two nonzero hat functions can be
computed.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank import _core
from marginrank._utils.memory import require_memory
from marginrank._utils.types import Floats
from marginrank.data.knots import (
    LEAST_STEP,
    MOST_KNOTS,
    Knots,
    check_no_infinity,
    dense_blocks,
    with_known_categories,
)
from marginrank.data.ranking_data import RankingData

MOST_BINS = MOST_KNOTS - 1
WHOLE = 1 << 15  # steps from one column to the next
SAMPLE = 20_000  # size of the document sample for quantiles, means and covariances
SEED = 0  # random seed of the document sample
CODE_BYTES = 3  # memory of an encoded value
FEATURE_BYTES = 1000  # estimated memory of a fit per feature, besides its values


class HatCodes(NamedTuple):
    """Encoded feature values, three bytes each: one row per document, one column per feature.

    A value is stored as the knot to its left and its distance from there, the format of
    ``_core.Matrix.hats``.
    """

    codes: NDArray[np.uint8]  # the column to the left of each value, within its feature
    steps: NDArray[np.uint16]  # distance from there towards the next column, in steps of 2⁻¹⁵

    def take(self, rows: Any) -> "HatCodes":
        return HatCodes(self.codes[rows], self.steps[rows])


def encode(knots: Knots, X: Any, threads: int) -> HatCodes:
    """Return each value of X in three bytes: the knot to its left and its distance from there.

    Values beyond the outer knots are clipped. X must be validated already.
    """
    codes = np.empty(X.shape, dtype=np.uint8)
    steps = np.empty(X.shape, dtype=np.uint16)
    categories = knots.categories()
    for rows, block in dense_blocks(X):
        block = with_known_categories(block, categories)
        codes[rows], steps[rows] = _core.encode_hats(
            block, knots.at, knots.starts, knots.categorical, threads
        )
    return HatCodes(codes, steps)


def with_category(
    knots: Knots, codes: HatCodes, of_row: NDArray[Any], name: str
) -> tuple[Knots, HatCodes]:
    """Return knots and encoded values with one more categorical feature.

    `of_row` has its category in each row; `name` is its name in messages.
    """
    categories = np.unique(of_row).astype(np.float64)
    if categories.size > MOST_BINS:
        raise ValueError(
            f"{name} has {categories.size} distinct values (counted in each context), but "
            f"additive models support at most {MOST_BINS}; merge some."
        )
    own = Knots.of_features([categories], [0])
    column = encode(own, of_row.astype(np.float64)[:, None], threads=1)
    joined = Knots(
        np.concatenate([knots.at, own.at]),
        np.append(knots.starts, knots.n_columns + own.n_columns),
        np.append(knots.categorical, own.categorical),
    )
    both = HatCodes(np.hstack([codes.codes, column.codes]), np.hstack([codes.steps, column.steps]))
    return joined, both


def choose_knots(X: Any, max_bins: int = 32, categorical: Collection[int] = ()) -> Knots:
    """Return the knots of all features: quantiles of numeric features, values of categorical ones.

    A feature with at most `max_bins` + 1 distinct values has a knot at each of them. Otherwise
    frequent values are knots, and the other knots are at quantiles of the rest. The outer knots are
    the minimum and the maximum. NaN is ignored; infinity raises ValueError. `max_bins` is the
    largest number of bins between knots, up to 254.
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
    """Raise ValueError if memory is too small for the codes and the sample, which are dense."""
    n_documents, n_features = X.shape
    sampled = min(n_documents, SAMPLE) * X.dtype.itemsize
    require_memory(
        n_features * (CODE_BYTES * n_documents + sampled + FEATURE_BYTES),
        f"an additive fit to X ({n_documents:,} × {n_features:,}, including zeros)",
        "additive models suit hundreds of features; drop some, or use RankSVM",
    )


def _ranges(X: Any) -> tuple[Floats, Floats]:
    """Return the minimum and maximum of each feature, NaN if all its values are missing."""
    low, high = np.full((2, X.shape[1]), np.nan)
    for rows, block in dense_blocks(X):
        low, high = np.fmin(low, np.fmin.reduce(block)), np.fmax(high, np.fmax.reduce(block))
        if np.isinf(low).any() or np.isinf(high).any():
            check_no_infinity(block, rows.start)
    return low.astype(np.float64), high.astype(np.float64)


def _sample(X: Any) -> NDArray[Any]:
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
            f"X[:, {k}] has {values.size} categories, but at most {MOST_BINS} are supported. Merge "
            "rare categories, or do not list the feature as categorical."
        )
    return values if values.size else np.zeros(1)


def _quantiles(values: Floats, max_bins: int) -> Floats:
    """Return the knots of a feature: all distinct values, or frequent values and quantiles."""
    distinct, counts = np.unique(values, return_counts=True)
    if distinct.size <= max_bins + 1:
        return distinct
    frequent = counts * max_bins > values.size
    rare = np.repeat(distinct[~frequent], counts[~frequent])
    n_inner = max_bins - 1 - int(frequent.sum())
    # A curve may jump between a frequent value and the others, so the others start and end with a
    # knot.
    shares = np.linspace(0, 1, n_inner) if frequent.any() else np.linspace(0, 1, n_inner + 2)[1:-1]
    # The smallest value with at least that share of values at or below it.
    inner = rare[np.maximum(np.ceil(shares * rare.size - 1.0), 0.0).astype(np.int64)]
    return np.unique(np.concatenate([distinct[frequent], distinct[[0, -1]], inner]))


def _apart(knots: Floats) -> Floats:
    """Return `knots` without each that is so close to the one before that dividing overflows."""
    if np.all(np.diff(knots) >= LEAST_STEP) or knots[-1] - knots[0] < LEAST_STEP:
        return knots  # a range this small raises an error later
    kept = [knots[0]]
    for knot in knots[1:]:
        if knot - kept[-1] >= LEAST_STEP:
            kept.append(knot)
    return np.array(kept)


class FilledRows:
    """View of X that replaces NaN by the middle knot of the feature when rows are read."""

    def __init__(self, X: Any, knots: Knots) -> None:
        self._X = X
        self._middle: Floats = np.array(
            [knots.of(k)[knots.of(k).size // 2] for k in range(knots.n_features)]
        )

    @property
    def shape(self) -> tuple[int, int]:
        n_rows, n_features = self._X.shape
        return n_rows, n_features

    def __getitem__(self, rows: Any) -> Any:
        block = self._X[rows]
        values = block.data if sp.issparse(block) else block
        missing = np.isnan(values)
        if not missing.any():
            return block
        filled = block.copy()
        if sp.issparse(block):
            filled.data[missing] = self._middle[block.indices[missing]]
        else:
            filled[missing] = self._middle[np.nonzero(missing)[1]]
        return filled


def with_filled(data: RankingData, knots: Knots) -> RankingData:
    """Return `data` with NaN replaced by the middle knot of each feature, without a copy of X."""
    filled = FilledRows(data.X, knots)
    return data._from_parts(
        data._parts()._replace(X=filled, feature_names=None, stored=None, has_nan=False)
    )
