"""Scores of fitted models of other libraries, to be evaluated like our own."""

import sys
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank._utils.types import Floats
from marginrank.models.features import require_features


def foreign_scores(model: Any, X: Any) -> Floats:
    """Return the scores that a fitted model of any library gives to documents.

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
        A fitted estimator of scikit-learn, or one with its methods, as those of LightGBM, XGBoost
        and marginrank; or a ``Booster`` of LightGBM or XGBoost.
    X : array-like or sparse matrix of shape (n_documents, n_features)
        The documents, as the model takes them.

    Returns
    -------
    ndarray of shape (n_documents,)
        A higher score ranks higher.

    Raises
    ------
    ValueError
        If the number of features differs, classes are not numbers, or the model gives anything but
        one finite number per document.

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
    X = _readable(X)
    name = f"{type(model).__module__.partition('.')[0]} {type(model).__name__}"
    require_features(X, _n_features(model))
    try:
        with warnings.catch_warnings():
            # LightGBM's estimators cause it even if they were fitted to arrays.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            scores = _raw_scores(model, X)
    except TypeError as error:
        hint = "; it may need dense data" if sp.issparse(X) else ""
        raise ValueError(f"{name} cannot score the documents ({error}){hint}.") from error
    return _check_scores(scores, X.shape[0], name)


def _n_features(model: Any) -> int | None:
    """Return the number of features, if the model knows it."""
    if _is_booster(model, "lightgbm"):
        return int(model.num_feature())
    if _is_booster(model, "xgboost"):
        return int(model.num_features())
    return getattr(model, "n_features_in_", None)


def _is_booster(model: Any, library: str) -> bool:
    """Whether this is the model class of a library, which is then loaded already."""
    module = sys.modules.get(library)
    return module is not None and isinstance(model, module.Booster)


def _readable(X: Any) -> Any:
    """Return X as every library takes it: some do not know sparse arrays, only matrices."""
    if sp.issparse(X):
        return sp.csr_matrix(X)
    return X if hasattr(X, "shape") else np.asarray(X)


def _raw_scores(model: Any, X: Any) -> Any:
    if _is_booster(model, "lightgbm"):
        return _expected_label(model.predict(X))
    if _is_booster(model, "xgboost"):
        # Training may have stopped early; the estimators of XGBoost look for that by themselves.
        best = model.attr("best_iteration")
        rounds = (0, 0 if best is None else int(best) + 1)
        values = model.inplace_predict(X, iteration_range=rounds, validate_features=False)
        return _expected_label(values)
    classes = getattr(model, "classes_", None)
    if classes is None:
        return model.predict(X)
    return _classifier_scores(model, X, np.asarray(classes))


def _classifier_scores(model: Any, X: Any, classes: NDArray[Any]) -> Any:
    if classes.dtype.kind not in "biuf" or classes.ndim != 1:
        raise ValueError(
            f"the classes of {type(model).__name__} are not numbers: {classes.tolist()}; train it "
            "on numeric labels, higher ones for better documents."
        )
    if classes.size == 2 and hasattr(model, "decision_function"):
        return model.decision_function(X)
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"{type(model).__name__} has {classes.size} classes and no predict_proba; take a "
            "classifier that has, or a regressor."
        )
    probabilities = model.predict_proba(X)
    return probabilities[:, 1] if classes.size == 2 else _expected_label(probabilities, classes)


def _expected_label(values: Any, classes: Any = None) -> Any:
    """Return Σ p(c) · c if `values` are probabilities, one column per class."""
    if np.ndim(values) != 2 or values.shape[1] == 1:
        return values
    return values @ (np.arange(values.shape[1]) if classes is None else classes.astype(float))


def _check_scores(scores: Any, n: int, name: str) -> Floats:
    values: Floats = np.asarray(scores, dtype=np.float64)
    if values.shape == (n, 1):
        values = values.ravel()
    if values.shape != (n,):
        raise ValueError(
            f"{name} gives an array of shape {values.shape} and must give one score per document."
        )
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(f"{name} gives document {bad[0]} the score {values[bad[0]]}.")
    return values
