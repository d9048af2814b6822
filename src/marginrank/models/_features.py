"""What models ask of the documents they score."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginrank.data.held_out import check_same_names
from marginrank.data.ranking_data import columns_of
from marginrank.data.validation import check_features


def require_features(X: Any, n_features: int | None) -> None:
    """Raise ValueError if documents do not have the features of a model."""
    if n_features not in (None, X.shape[1]):
        raise ValueError(
            f"the data has {X.shape[1]} features, but the model {n_features}; use data with the "
            "features it was trained on."
        )


def row_of(document: Any, what: str, n_features: int, names: Sequence[str] | None) -> Any:
    """Return one document as a checked row of features, which may be missing.

    It may be a sparse row, or a row of a data frame: other names than those of the features are
    refused, as their order would be lost.
    """
    values = document.toarray() if sp.issparse(document) else document
    if np.ndim(values) == 2 and len(values) != 1:
        raise ValueError(
            f"{what} has {len(values)} rows and must be one document; pass one row, such as X[0]."
        )
    row = check_features(np.ravel(values).reshape(1, -1), missing=True)
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
