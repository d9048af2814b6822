"""The documents that models score and explain."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank._utils.feature_names import name_of
from marginrank.data.held_out import check_same_names
from marginrank.data.ranking_data import columns_of
from marginrank.data.validation import check_features


class Reason(NamedTuple):
    """What one feature, or pair of features, adds to a document's score, more than to another's.

    Attributes
    ----------
    feature : int or tuple of int
        Column of the feature, from 0; both columns of a pair.
    name : str
        Its name, f1 for column 0 if it was given none; the names of a pair with × between them.
    preferred, other : float or tuple of float
        Its values in the two documents.
    difference : float
        What the first gains over the second by it.
    """

    feature: int | tuple[int, int]
    name: str
    preferred: float | tuple[float, float]
    other: float | tuple[float, float]
    difference: float


def require_features(X: Any, n_features: int | None) -> None:
    """Raise ValueError if documents do not have as many features as a model."""
    if n_features not in (None, X.shape[1]):
        raise ValueError(
            f"the data has {X.shape[1]} features, but the model {n_features}; use data with the "
            "features it was trained on."
        )


def check_rows(
    preferred: Any,
    other: Any,
    n_features: int,
    names: Sequence[str] | None,
    *,
    missing: bool = True,
) -> NDArray[Any]:
    """Return two documents as checked rows of features, which may be `missing`."""
    rows = {"preferred": preferred, "other": other}
    return np.vstack([_row_of(row, what, n_features, names, missing) for what, row in rows.items()])


def reasons_by_feature(
    X: NDArray[Any], differences: Sequence[float], names: Sequence[str] | None
) -> list[Reason]:
    """Return what each feature adds to the score of the first of two rows, the strongest first."""
    reasons = [
        Reason(k, name_of(k, names), float(X[0, k]), float(X[1, k]), difference)
        for k, difference in enumerate(differences)
    ]
    return sorted(reasons, key=lambda reason: -abs(reason.difference))


def _row_of(
    document: Any, what: str, n_features: int, names: Sequence[str] | None, missing: bool
) -> Any:
    """Return one document as a checked row of features.

    It may be a sparse row, or a row of a data frame, whose names must be those of the features.
    """
    values = document.toarray() if sp.issparse(document) else document
    if np.ndim(values) == 2 and len(values) != 1:
        raise ValueError(
            f"{what} has {len(values)} rows and must be one document; pass one row, such as X[0]."
        )
    row = check_features(np.ravel(values).reshape(1, -1), missing=missing)
    require_features(row, n_features)
    labels = _labels_of(document)
    if labels is not None and names is not None:
        check_same_names(labels, names, what, "the model")
    return row


def _labels_of(document: Any) -> list[str] | None:
    """Return the names that a row of a data frame has for its values, if all are strings."""
    if hasattr(document, "columns"):
        return columns_of(document)
    index = getattr(document, "index", None)
    labels = [] if index is None or callable(index) else list(index)  # lists have a method
    return labels if labels and all(isinstance(label, str) for label in labels) else None
