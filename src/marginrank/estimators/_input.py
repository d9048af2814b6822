"""What estimators are given: a matrix with all that belongs to it, or a RankingData."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from marginrank import _core
from marginrank.data import RankingData
from marginrank.data.ranking_data import as_ranking_data
from marginrank.data.validation import as_matrix, check_features
from marginrank.training.held_out import refuse_other_names


def training_data(
    X: Any,
    y: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    query_weight: ArrayLike | None = None,
    *,
    n_jobs: int | None,
) -> RankingData:
    """Return what a fit was given, checked and grouped; a RankingData as it is."""
    return as_ranking_data(
        X,
        y,
        qid,
        group,
        sample_weight=sample_weight,
        query_weight=query_weight,
        feature_names=None if isinstance(X, RankingData) else _column_names(X),
        n_jobs=n_jobs,
    )


def _column_names(X: Any) -> Any:
    """Return the names that scikit-learn finds in X, or None."""
    seen = BaseEstimator()
    validate_data(seen, X, skip_check_array=True)
    return getattr(seen, "feature_names_in_", None)


def features_of(data: RankingData) -> dict[str, Any]:
    """Return the attributes in which scikit-learn keeps number and names of the features.

    An estimator gets them together with its weights, by :func:`set_features`: if a fit fails, both
    are still those of the last one.
    """
    features: dict[str, Any] = {"n_features_in_": data.n_features}
    if data.feature_names is not None:
        features["feature_names_in_"] = np.array(data.feature_names, dtype=object)
    return features


def set_features(estimator: BaseEstimator, features: dict[str, Any]) -> None:
    """Replace the features of an estimator, and forget names if there are none now."""
    estimator.__dict__.pop("feature_names_in_", None)
    estimator.__dict__.update(features)


def feature_names_of(estimator: BaseEstimator) -> list[str] | None:
    """Return the names of the features as plain strings."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def documents_to_score(estimator: BaseEstimator, X: Any) -> tuple[Any, _core.Matrix]:
    """Return checked documents, also as the kernels take them.

    Other features than those of the fit are refused, by number and by name.
    """
    if isinstance(X, RankingData):
        refuse_other_features(estimator, X)
        return X.X, X.matrix
    checked = check_features(X)
    refuse_other_features(estimator, X)
    return checked, as_matrix(checked)


def refuse_other_features(estimator: BaseEstimator, X: Any) -> None:
    """Refuse documents that do not have the features of the fit."""
    named = isinstance(X, RankingData) and X.feature_names is not None
    expected = feature_names_of(estimator)
    if not named or expected is None:
        matrix = X.X if isinstance(X, RankingData) else X
        validate_data(estimator, matrix, skip_check_array=True, reset=False)
    elif len(X.feature_names) != len(expected):
        raise ValueError(
            f"the data has {len(X.feature_names)} features, but the fit had {len(expected)}; give "
            "those."
        )
    else:
        refuse_other_names(X.feature_names, expected, "the data", "the fit")
