"""The choice of knots, and values of features as codes among them."""

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

MOST_BINS = MOST_KNOTS - 1
WHOLE = 1 << 15  # steps from a column to the next
SAMPLE = 20_000  # documents from which quantiles, means and covariances are computed
SEED = 0  # of the sample
CODE_BYTES = 3  # of a value
FEATURE_BYTES = 1000  # that a fit needs per feature, whatever the documents; about


class HatCodes(NamedTuple):
    """Values of features as ``_core.Matrix.hats`` takes them: three bytes each, dense.

    Attributes
    ----------
    codes : ndarray of uint8, shape (n_documents, n_features)
        The column on the left of each value, inside its feature.
    steps : ndarray of uint16, shape (n_documents, n_features)
        Its distance from there towards the next column, in steps of 2⁻¹⁵.
    """

    codes: NDArray[np.uint8]
    steps: NDArray[np.uint16]

    def take(self, rows: Any) -> "HatCodes":
        """Return the codes of some rows."""
        return HatCodes(self.codes[rows], self.steps[rows])


def encode(knots: Knots, X: Any, threads: int) -> HatCodes:
    """Return checked features as codes; values beyond the outer knots are moved to these."""
    codes = np.empty(X.shape, dtype=np.uint8)
    steps = np.empty(X.shape, dtype=np.uint16)
    categories = knots.categories()
    for rows, block in dense_blocks(X):
        block = with_known_categories(block, categories)
        codes[rows], steps[rows] = _core.encode_hats(
            block, knots.at, knots.starts, knots.categorical, threads
        )
    return HatCodes(codes, steps)


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
    """Raise ValueError if there is no room for codes and sample, which are dense."""
    n_documents, n_features = X.shape
    sampled = min(n_documents, SAMPLE) * X.dtype.itemsize
    require_memory(
        n_features * (CODE_BYTES * n_documents + sampled + FEATURE_BYTES),
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
            check_no_infinity(block, rows.start)
    return low.astype(np.float64), high.astype(np.float64)


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
