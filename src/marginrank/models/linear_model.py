"""Linear models as plain data, which fits return and files store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats
from marginrank.data.validation import as_matrix, check_features, check_finite
from marginrank.models.features import Reason, check_rows, reasons_by_feature, require_features
from marginrank.models.fit_report import FitReport


@dataclass(frozen=True)
class LostFunction:
    """Placeholder for a parameter that was a Python function when the model was saved.

    A call raises ValueError, because files store only the name of a function.
    """

    parameter: str
    name: str

    def __call__(self, *_: Any) -> NoReturn:
        """Raise ValueError, because the function is not available."""
        raise ValueError(
            f"{self.parameter} was a callable ({self.name}) and is not stored in model files; set "
            f"it with set_params({self.parameter}=...) before a fit."
        )


@dataclass(frozen=True)
class LinearModel:
    """A fitted linear model as plain data: weights, parameters and fit report.

    Attributes
    ----------
    coef : ndarray of shape (n_features,)
        The weights.
    parameters : dict
        The parameters of the estimator; empty if the weights come from another system.
    feature_names : list of str or None
        Names of the features.
    report : FitReport or None
        How the fit ended; None if the weights come from another system.
    estimator : str
        Name of the estimator's class.
    counts : dict of str to int, or None
        Progress of a :class:`~marginrank.SGDRankSVM` over fits and partial fits: passes "n_iter",
        pairs "n_pairs" and steps "t".
    scale : ndarray of shape (n_features,), or None
        Divisors of the features during the fit. `coef` applies to the original features.
    """

    coef: Floats
    parameters: dict[str, Any]
    feature_names: list[str] | None = None
    report: FitReport | None = None
    estimator: str = "RankSVM"
    counts: dict[str, int] | None = None
    scale: Floats | None = None

    def __repr__(self) -> str:
        """Return the class name with the estimator and the number of features."""
        return f"LinearModel({self.estimator}, {self.coef.size} features)"

    @property
    def n_features(self) -> int:
        """Number of features of the model."""
        return self.coef.size

    def scores(self, X: Any) -> Floats:
        """Return the score of each document, the weighted sum of its features."""
        X = check_features(X)
        require_features(X, self.n_features)
        matrix, threads = as_matrix(X), effective_threads(self.parameters.get("n_jobs"))
        scores: Floats = matrix.dot(self.coef, None, threads)
        if not np.isfinite(scores.sum()):
            check_finite(X, matrix, threads)
        return scores

    def explain(self, preferred: Any, other: Any) -> list[Reason]:
        """Return the contribution of each feature to the difference of two documents' scores.

        The largest contribution is first. The contributions sum to the difference, up to rounding.
        """
        X = check_rows(preferred, other, self.n_features, self.feature_names, missing=False)
        differences = X[0].astype(np.float64) * self.coef - X[1].astype(np.float64) * self.coef
        return reasons_by_feature(X, differences.tolist(), self.feature_names)


def check_weights(model: LinearModel) -> None:
    """Raise ValueError unless the weights of a model are a vector of finite numbers."""
    if model.coef.ndim != 1 or model.coef.size == 0:
        raise ValueError(f"coef_ has shape {model.coef.shape} and must be a vector of weights.")
    if not np.isfinite(model.coef).all():
        raise ValueError("coef_ contains NaN or infinity; fit the model again.")
