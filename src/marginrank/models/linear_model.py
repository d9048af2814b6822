"""What a model file holds, as plain data: it does not know scikit-learn."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NoReturn

import numpy as np

from marginrank._utils.parameters import declared
from marginrank._utils.types import Floats
from marginrank.fit.linear import Parameters
from marginrank.fit.minimisation import Fit
from marginrank.fit.online import OnlineParameters, Outcome
from marginrank.fit.scaling import values_of
from marginrank.fit.sparse import SparseParameters
from marginrank.models.fit_report import Iteration, Pass, StopReason

# What estimators take beside the parameters of a fit, with their defaults.
BATCH_ONLY = {"random_state": 0, "verbose": 0, "warm_start": False}
ESTIMATOR_ONLY: dict[str, dict[str, Any]] = {
    "RankSVM": BATCH_ONLY,
    "SparseRankSVM": BATCH_ONLY,
    "SGDRankSVM": {"random_state": 0, "verbose": 0},
}
AnyParameters = Parameters | SparseParameters | OnlineParameters
PARAMETERS: dict[str, type[AnyParameters]] = {
    "RankSVM": Parameters,
    "SparseRankSVM": SparseParameters,
    "SGDRankSVM": OnlineParameters,
}


@dataclass(frozen=True)
class LostFunction:
    """Stands for a function that was a parameter of a saved model, as no file holds functions.

    Predictions do not need it; a fit calls it and is told what to do.
    """

    parameter: str
    name: str

    def __call__(self, *_: Any) -> NoReturn:
        """Ask for the function."""
        raise ValueError(
            f"{self.parameter} was the function {self.name} when the model was saved, and files "
            f"hold no functions; give it again with set_params({self.parameter}=...) before a fit."
        )


@dataclass(frozen=True)
class Training:
    """How a fit ended.

    `n_rounds` is the number of problems that were solved, if one was weighted by the rankings of
    others. `C` is the weight of the loss and `smoothness` that of the roughness of curves, where
    the parameters may leave them to the data.
    """

    objective: float
    gap: float
    stop_reason: StopReason
    n_iter: int
    n_pairs: int
    n_rounds: int | None = None
    C: float | None = None
    smoothness: float | None = None


@dataclass(frozen=True)
class LinearModel:
    """The weights of a linear ranker and where they come from.

    Attributes
    ----------
    coef : ndarray of shape (n_features,)
        The weights.
    parameters : dict
        The parameters of the estimator; empty if the weights come from another system.
    feature_names : list of str or None
        Names of the features.
    training : Training or None
        How the fit ended; None if the weights come from another system.
    history : list of Iteration, list of Pass, or None
        A line an iteration.
    estimator : str
        Name of the estimator's class.
    counts : dict of str to int, or None
        How far a :class:`~marginrank.SGDRankSVM` has come, in fits and partial fits: passes
        "n_iter", pairs "n_pairs" and steps "t".
    scale : ndarray of shape (n_features,), or None
        What the fit divided features by; `coef` are the weights of features that are not divided.
    """

    coef: Floats
    parameters: dict[str, Any]
    feature_names: list[str] | None = None
    training: Training | None = None
    history: list[Iteration] | list[Pass] | None = None
    estimator: str = "RankSVM"
    counts: dict[str, int] | None = None
    scale: Floats | None = None

    def __repr__(self) -> str:
        """Return the estimator and the number of features."""
        return f"LinearModel({self.estimator}, {self.coef.size} features)"

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.coef.size

    @classmethod
    def from_fit(
        cls,
        fit: Fit,
        parameters: Parameters | SparseParameters,
        random_state: int,
        feature_names: list[str] | None = None,
    ) -> LinearModel:
        """Return the outcome of a fit with such parameters."""
        result = fit.result
        return cls(
            coef=result.w,
            parameters=_all_parameters(parameters, random_state),
            feature_names=feature_names,
            training=Training(
                result.objective,
                result.gap,
                result.stop,
                result.n_iter,
                fit.n_pairs,
                fit.n_rounds,
                fit.C,
            ),
            history=result.history,
            estimator=_estimator_with(parameters),
            scale=values_of(fit.scale),
        )

    @classmethod
    def from_online(
        cls,
        outcome: Outcome,
        parameters: OnlineParameters,
        random_state: int,
        feature_names: list[str] | None = None,
    ) -> LinearModel:
        """Return the outcome of :func:`~marginrank.fit.online.fit_online`."""
        return cls(
            coef=outcome.w,
            parameters=_all_parameters(parameters, random_state),
            feature_names=feature_names,
            training=Training(
                outcome.objective, outcome.gap, outcome.stop, outcome.n_iter, outcome.found.n_pairs
            ),
            history=outcome.history,
            estimator=_estimator_with(parameters),
            scale=values_of(outcome.found.scale),
            counts={
                "n_iter": outcome.n_iter,
                "n_pairs": outcome.found.n_pairs,
                "t": outcome.learner.sgd.steps,
            },
        )


def _estimator_with(parameters: AnyParameters) -> str:
    """Return the name of the estimator that takes such parameters."""
    return next(name for name, kind in PARAMETERS.items() if isinstance(parameters, kind))


def _all_parameters(parameters: AnyParameters, random_state: int) -> dict[str, Any]:
    """Return the parameters of the estimator, by name."""
    only = ESTIMATOR_ONLY[_estimator_with(parameters)]
    everything = only | asdict(parameters) | {"random_state": random_state}
    return dict(sorted(everything.items()))


def check_parameters(estimator: str, parameters: dict[str, Any]) -> None:
    """Raise ValueError for unknown parameters of an estimator, or wrong values."""
    kind = PARAMETERS[estimator]
    known = declared(kind)
    unknown = set(parameters) - {*known, *ESTIMATOR_ONLY[estimator]}
    if unknown:
        raise ValueError(f"unknown: {', '.join(map(repr, sorted(unknown)))}")
    kind(**{name: parameters[name] for name in known if name in parameters}).check()


def check_weights(model: LinearModel) -> None:
    """Raise ValueError for weights that no format holds."""
    if model.coef.ndim != 1 or model.coef.size == 0:
        raise ValueError(f"coef_ has shape {model.coef.shape} and must be a vector of weights.")
    if not np.isfinite(model.coef).all():
        raise ValueError("coef_ holds NaN or infinity; fit the model again before it is saved.")
