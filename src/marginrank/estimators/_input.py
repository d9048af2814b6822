"""What estimators are given: a matrix with all that belongs to it, or a RankingData."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from marginrank import _core
from marginrank.data import RankingData
from marginrank.data.ranking_data import as_ranking_data, columns_of
from marginrank.data.tensors import on_host, refuse_mixed_devices
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
    """Return what a fit was given, checked and grouped; a RankingData as it is.

    Tensors come to the host.
    """
    values = {
        "y": y,
        "qid": qid,
        "group": group,
        "sample_weight": sample_weight,
        "query_weight": query_weight,
    }
    refuse_mixed_devices(X=X, **values)
    X = on_host(X, "X")
    return as_ranking_data(
        X,
        **{name: on_host(value, name) for name, value in values.items()},
        feature_names=None if isinstance(X, RankingData) else column_names(X),
        n_jobs=n_jobs,
    )


def column_names(X: Any) -> Any:
    """Return the names that scikit-learn finds in X, or None."""
    seen = BaseEstimator()
    validate_data(seen, X, skip_check_array=True)
    return getattr(seen, "feature_names_in_", None)


class Features(Protocol):
    """What knows how many features there are, and perhaps their names."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features."""


def features_of(data: Features) -> dict[str, Any]:
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
    X = on_host(X, "X")
    checked = check_features(X)
    refuse_other_features(estimator, X)
    return checked, as_matrix(checked)


def refuse_other_features(estimator: BaseEstimator, X: Any) -> None:
    """Refuse documents that do not have the features of the fit."""
    given = _names_only_we_see(X)
    expected = feature_names_of(estimator)
    if given is None or expected is None:
        matrix = X.X if isinstance(X, RankingData) else X
        validate_data(estimator, matrix, skip_check_array=True, reset=False)
    elif len(given) != len(expected):
        raise ValueError(
            f"the data has {len(given)} features, but the fit had {len(expected)}; give those."
        )
    else:
        refuse_other_names(given, expected, "the data", "the fit")


def _names_only_we_see(X: Any) -> list[str] | None:
    """Return names of features that scikit-learn would not compare, or None.

    Those of a RankingData; before scikit-learn 1.9 also those of frames of polars 2.
    """
    if isinstance(X, RankingData):
        return X.feature_names
    names = columns_of(X)
    return names if names is not None and column_names(X) is None else None
