"""Models of other libraries: their scores, and explanations of LightGBM and XGBoost models."""

import sys
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginrank._utils.types import Floats
from marginrank.models.features import (
    Reason,
    check_rows,
    reasons_by_feature,
    require_features,
)


def foreign_scores(model: Any, X: Any) -> Floats:
    """Return one score per document, computed by a fitted model of any library.

    =====================================  ==================================================
    model                                  score
    =====================================  ==================================================
    ranker, regressor                      ``predict(X)``
    classifier of two classes              ``decision_function(X)``, or ``predict_proba(X)[:, 1]``
                                           if there is none
    classifier of more classes             the expected label Σ_c p(c) · c of ``predict_proba(X)``
    ``Booster`` of LightGBM or XGBoost     ``predict(X)``, or the expected label if it gives the
                                           probabilities of the classes 0, 1, …
    =====================================  ==================================================

    Parameters
    ----------
    model : object
        A fitted estimator with scikit-learn's interface, or a ``Booster`` of LightGBM or XGBoost.
    X : array-like or sparse matrix of shape (n_documents, n_features)
        The documents, in a form that the model accepts.

    Returns
    -------
    ndarray of shape (n_documents,)
        A higher score ranks higher.

    Raises
    ------
    ValueError
        If the number of features differs, classes are not numeric, or the scores are not one finite
        number per document.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression, Ridge
    >>> from marginrank import make_ranking, metrics
    >>> from marginrank.models import foreign_scores
    >>> X, y, qid = make_ranking(random_state=0)
    >>> for model in Ridge(), LogisticRegression():
    ...     scores = foreign_scores(model.fit(X, y), X)
    ...     print(metrics.pairwise_accuracy(y, scores, qid=qid) > 0.8)
    True
    True
    """
    if sp.issparse(X):
        X = sp.csr_matrix(X)  # some libraries do not support sparse arrays
    elif not hasattr(X, "shape"):
        X = np.asarray(X)
    name = f"{type(model).__module__.partition('.')[0]} {type(model).__name__}"
    require_features(X, _n_features(model))
    try:
        with warnings.catch_warnings():
            # LightGBM's estimators cause this warning even if they were fitted to arrays.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            scores = _raw_scores(model, X)
    except TypeError as error:
        hint = "; it may need dense data" if sp.issparse(X) else ""
        raise ValueError(f"{name} cannot score the documents ({error}){hint}.") from error
    values: Floats = np.asarray(scores, dtype=np.float64)
    if values.shape == (X.shape[0], 1):
        values = values.ravel()
    if values.shape != (X.shape[0],):
        raise ValueError(f"{name} must return one score per document, got shape {values.shape}.")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(f"{name} gives document {bad[0]} the score {values[bad[0]]}; check X.")
    return values


def foreign_reasons(model: Any, preferred: Any, other: Any) -> list[Reason]:
    """Return the contributions of features to the difference of two LightGBM or XGBoost scores.

    Contributions are the Shapley values of the trees, as LightGBM and XGBoost compute them. They
    sum to the difference of the raw scores. Rankers and most regressors predict raw scores;
    classifiers predict a function of them.

    Parameters
    ----------
    model : object
        A fitted ranker, regressor or classifier of two classes of LightGBM or XGBoost, or its
        ``Booster``.
    preferred, other : array-like of shape (n_features,)
        The two documents: arrays, sparse rows, or rows of a data frame.

    Returns
    -------
    list of Reason
        One per feature, the largest contribution first, as returned by the method ``explain`` of a
        model of marginrank.

    Raises
    ------
    ValueError
        If the model is from another library, or has more than two classes.

    Notes
    -----
    The sum is exact up to rounding: to about 15 digits with LightGBM, and to about 6 digits with
    XGBoost, which computes in single precision.

    Examples
    --------
    >>> from lightgbm import LGBMRanker
    >>> from marginrank import make_ranking
    >>> from marginrank.models import foreign_reasons
    >>> X, y, qid = make_ranking(n_features=5, random_state=0)
    >>> model = LGBMRanker(n_estimators=10, verbose=-1).fit(X, y.astype(int), group=[20] * 100)
    >>> reasons = foreign_reasons(model, X[0], X[1])
    >>> difference = model.predict(X[:1]) - model.predict(X[1:2])
    >>> bool(abs(sum(reason.difference for reason in reasons) - difference[0]) < 1e-12)
    True
    """
    booster = _booster_of(model)
    n_features = _n_features(booster)
    assert n_features is not None
    names = _names_of(booster)
    X = check_rows(preferred, other, n_features, names)
    parts: list[Floats] = []
    for document in (preferred, other):
        row = X[len(parts)][None]
        if sp.issparse(document):
            row = sp.csr_matrix(document.reshape((1, -1)))
        parts.append(_contributions(booster, row, getattr(model, "missing", np.nan)))
    first, second = parts
    if first.shape != (n_features + 1,):
        raise ValueError(
            f"the model has {first.size // (n_features + 1)} scores per document, one per class; "
            "explain a ranker, a regressor or a classifier of two classes."
        )
    return reasons_by_feature(X, (first - second)[:-1].tolist(), names)


def _booster_of(model: Any) -> Any:
    """Return the Booster of a model of LightGBM or XGBoost; raise ValueError for other models."""
    if hasattr(model, "get_booster"):
        model = model.get_booster()
    model = getattr(model, "booster_", model)
    if not (_is_booster(model, "lightgbm") or _is_booster(model, "xgboost")):
        raise ValueError(
            f"{type(model).__name__} is not a model of LightGBM or XGBoost; call the "
            "method explain of a ranker of marginrank, or explain of as_linear_model(pipeline)."
        )
    return model


def _names_of(booster: Any) -> list[str] | None:
    """Return the feature names of a Booster, or None if they are defaults of its library."""
    if _is_booster(booster, "xgboost"):
        return booster.feature_names  # type: ignore[no-any-return]
    names: list[str] = booster.feature_name()
    return None if names == [f"Column_{k}" for k in range(len(names))] else names


def _contributions(booster: Any, row: Any, missing: float) -> Floats:
    """Return the contribution of each feature to the raw score of a row, then the constant.

    `missing` is the value that XGBoost's estimators replace by NaN.
    """
    if _is_booster(booster, "xgboost"):
        rows = sys.modules["xgboost"].DMatrix(row, missing=missing)
        found = booster.predict(
            rows, pred_contribs=True, iteration_range=_rounds(booster), validate_features=False
        )
    else:
        try:
            found = booster.predict(row, pred_contrib=True)
        except sys.modules["lightgbm"].basic.LightGBMError as error:
            raise ValueError(f"the model cannot be explained by LightGBM: {error}") from error
    dense = found.toarray() if sp.issparse(found) else found
    return np.ravel(dense).astype(np.float64)


def _rounds(booster: Any) -> tuple[int, int]:
    """Return XGBoost's `iteration_range` up to the best round of early stopping; (0, 0) is all."""
    best = booster.attr("best_iteration")
    return 0, 0 if best is None else int(best) + 1


def _n_features(model: Any) -> int | None:
    if _is_booster(model, "lightgbm"):
        return int(model.num_feature())
    if _is_booster(model, "xgboost"):
        return int(model.num_features())
    return getattr(model, "n_features_in_", None)


def _is_booster(model: Any, library: str) -> bool:
    module = sys.modules.get(library)  # the library of a fitted model is imported already
    return module is not None and isinstance(model, module.Booster)


def _raw_scores(model: Any, X: Any) -> Any:
    if _is_booster(model, "lightgbm"):
        return _expected_label(model.predict(X))
    if _is_booster(model, "xgboost"):
        # Use the best iteration of early stopping; XGBoost's estimators do this themselves.
        values = model.inplace_predict(X, iteration_range=_rounds(model), validate_features=False)
        return _expected_label(values)
    classes = getattr(model, "classes_", None)
    if classes is None:
        return model.predict(X)
    classes = np.asarray(classes)
    if classes.dtype.kind not in "biuf" or classes.ndim != 1:
        raise ValueError(
            f"the classes of {type(model).__name__} are not numbers: {classes.tolist()}; train it "
            "on numeric labels, with higher labels for better documents."
        )
    if classes.size == 2 and hasattr(model, "decision_function"):
        return model.decision_function(X)
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"{type(model).__name__} has {classes.size} classes and no predict_proba; use a "
            "classifier with predict_proba, or a regressor."
        )
    probabilities = model.predict_proba(X)
    return probabilities[:, 1] if classes.size == 2 else _expected_label(probabilities, classes)


def _expected_label(values: Any, classes: Any = None) -> Any:
    """Return Σ p(c) · c for probabilities with one column per class, other values unchanged."""
    if np.ndim(values) != 2 or values.shape[1] == 1:
        return values
    return values @ (np.arange(values.shape[1]) if classes is None else classes.astype(float))
