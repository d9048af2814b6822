"""What models ask of the documents they score."""

from typing import Any


def require_features(X: Any, n_features: int | None) -> None:
    """Refuse documents that have not the features of a model, if it knows how many it has."""
    if n_features not in (None, X.shape[1]):
        raise ValueError(
            f"the data has {X.shape[1]} features, but the model {n_features}; use data with the "
            "features it was trained on."
        )
