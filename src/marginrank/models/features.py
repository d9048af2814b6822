"""Checks of the documents that a model scores, and explanations of score differences."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank._utils.feature_names import name_of
from marginrank.data.held_out import check_same_names
from marginrank.data.validation import check_features, columns_of


class Reason(NamedTuple):
    """Contribution of a feature, or of a pair of features, to the difference of two scores.

    Attributes
    ----------
    feature : int or tuple of int
        Column of the feature, from 0; both columns of a pair.
    name : str
        Name of the feature, by default f1 for column 0; the names of a pair are joined by ×.
    preferred, other : float or tuple of float
        Values of the feature in the first and in the second document.
    difference : float
        Contribution of the feature to the first score minus the second score.
    """

    feature: int | tuple[int, int]
    name: str
    preferred: float | tuple[float, float]
    other: float | tuple[float, float]
    difference: float


def require_features(X: Any, n_features: int | None) -> None:
    """Raise ValueError if X does not have `n_features` features, as the model does."""
    if n_features not in (None, X.shape[1]):
        raise ValueError(
            f"the data has {X.shape[1]} features, but the model has {n_features}; pass data with "
            "the features it was trained on."
        )


def check_rows(
    preferred: Any, other: Any, n_features: int, names: Sequence[str] | None, missing: bool = True
) -> NDArray[Any]:
    """Validate two documents and return them as a matrix with two rows; `missing` allows NaN."""
    rows = []
    for what, document in (("preferred", preferred), ("other", other)):
        values = document.toarray() if sp.issparse(document) else document
        if np.ndim(values) == 2 and len(values) != 1:
            raise ValueError(f"{what} has {len(values)} rows; pass one document, such as X[0].")
        rows.append(check_features(np.ravel(values).reshape(1, -1), missing=missing))
        require_features(rows[-1], n_features)
        labels = _labels_of(document)
        if labels is not None and names is not None:
            check_same_names(labels, names, what, "the model")
    return np.vstack(rows)


def reasons_by_feature(
    X: NDArray[Any], differences: Sequence[float], names: Sequence[str] | None
) -> list[Reason]:
    """Return a Reason per feature for the difference of two scores, largest contribution first."""
    reasons = [
        Reason(k, name_of(k, names), float(X[0, k]), float(X[1, k]), difference)
        for k, difference in enumerate(differences)
    ]
    return sorted(reasons, key=lambda reason: -abs(reason.difference))


def largest_reasons(reasons: Sequence[Reason], top: int) -> tuple[list[Reason], int, float]:
    """Return the `top` largest contributions, and the count and sum of the other nonzero ones."""
    used = sorted((r for r in reasons if r.difference), key=lambda r: -abs(r.difference))
    others = used[top:]
    return used[:top], len(others), math.fsum(reason.difference for reason in others)


def values_text(value: float | tuple[float, ...]) -> str:
    """Return the value of a feature, or the values of a pair of features, as a short text.

    Examples
    --------
    >>> from marginrank.models.features import values_text
    >>> values_text(1234.5678), values_text(float("nan")), values_text((0.5, 2.0))
    ('1235', 'missing', '(0.5, 2)')
    """
    if isinstance(value, tuple):
        return f"({', '.join(map(values_text, value))})"
    return "missing" if math.isnan(value) else f"{value:.4g}"


def _labels_of(document: Any) -> list[str] | None:
    """Return the feature names of a row of a data frame, if all are strings."""
    if hasattr(document, "columns"):
        return columns_of(document)
    index = getattr(document, "index", None)
    labels = [] if index is None or callable(index) else list(index)  # list.index is a method
    return labels if labels and all(isinstance(label, str) for label in labels) else None
