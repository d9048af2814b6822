"""Models of AdditiveRankSVM: a curve a feature, as plain data, and their JSON files."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from marginrank._utils.atomic_files import atomic_write
from marginrank._utils.feature_names import name_of
from marginrank._utils.parameters import declared
from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats
from marginrank._utils.version import __version__
from marginrank.additive.fit import AdditiveFit, AdditiveParameters
from marginrank.data.feature_choice import directions
from marginrank.data.grids import Interaction, scores_of
from marginrank.data.knots import MOST_KNOTS, Knots, are_rising, check_no_infinity
from marginrank.data.validation import check_features
from marginrank.fit.scaling import values_of
from marginrank.models._features import require_features, row_of
from marginrank.models.fit_report import Iteration
from marginrank.models.interactions import read_interactions, to_json
from marginrank.models.json_model import (
    _encode_parameters,
    _Fields,
    _history,
    _is_number,
    _is_weights,
    _read_history,
    _read_scale,
    _read_training,
    _training,
    decode_parameters,
    parse_object,
    read_names,
)
from marginrank.models.linear_model import BATCH_ONLY, Training

FORMAT = "marginrank-additive-model"
VERSION = 1
ESTIMATOR_ONLY = {name: BATCH_ONLY[name] for name in ("random_state", "verbose")}


class Curve(NamedTuple):
    """What one feature adds to a score.

    Attributes
    ----------
    knots : ndarray of shape (n_knots,)
        Values of the feature, ascending; categories, if it is `categorical`.
    values : ndarray of shape (n_knots,)
        What is added there. Between knots the curve is straight, and beyond the outer ones it goes
        on as between the last two; a feature with one knot adds the same for every value.
    missing : float
        What is added where the value is NaN, or a category that is none of the knots.
    categorical : bool
        Whether the feature has categories.
    categories : tuple of str, or None
        Text that the numbers 0, 1, … of a categorical feature stand for, if the fit had text.
    """

    knots: Floats
    values: Floats
    missing: float
    categorical: bool
    categories: tuple[str, ...] | None = None

    @property
    def spread(self) -> float:
        """The largest difference that the feature makes between two values at knots."""
        return float(np.ptp(self.values))


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


@dataclass(frozen=True)
class AdditiveModel:
    """The curves of an additive ranker and where they come from.

    Attributes
    ----------
    curves : list of Curve
        One for each feature; a score is the sum of what they add.
    parameters : dict
        The parameters of the estimator.
    feature_names : list of str or None
        Names of the features.
    training : Training or None
        How the fit ended.
    history : list of Iteration, or None
        A line an iteration.
    interactions : sequence of Interaction
        What pairs of features add beside.
    scale : ndarray of shape (n_features,), or None
        What the fit divided features by; curves are those of features that are not divided.
    """

    curves: list[Curve]
    parameters: dict[str, Any]
    feature_names: list[str] | None = None
    training: Training | None = None
    history: list[Iteration] | None = None
    interactions: Sequence[Interaction] = ()
    scale: Floats | None = None

    def __repr__(self) -> str:
        """Return the numbers of curves and interactions."""
        return f"AdditiveModel({len(self.curves)} curves, {len(self.interactions)} interactions)"

    @property
    def kind(self) -> str:
        """Name of the library and of the estimator's class, as those of other libraries have it."""
        return "marginrank AdditiveRankSVM"

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.curves)

    @classmethod
    def from_fit(
        cls,
        outcome: AdditiveFit,
        parameters: AdditiveParameters,
        random_state: int,
        feature_names: list[str] | None = None,
    ) -> AdditiveModel:
        """Return the outcome of a fit with such parameters."""
        result = outcome.fit.result
        everything = ESTIMATOR_ONLY | asdict(parameters) | {"random_state": random_state}
        return cls(
            curves=curves_of(outcome.knots, outcome.values),
            parameters=dict(sorted(everything.items())),
            feature_names=feature_names,
            training=Training(
                result.objective,
                result.gap,
                result.stop,
                result.n_iter,
                outcome.fit.n_pairs,
                outcome.fit.n_rounds,
                smoothness=outcome.fit.smoothness,
            ),
            history=result.history,
            interactions=outcome.interactions,
            scale=values_of(outcome.fit.scale),
        )

    def scores(self, X: Any) -> Floats:
        """Return the score of each document, the one that the saved estimator gave it."""
        X = check_features(X, missing=True)
        require_features(X, self.n_features)
        threads = effective_threads(self.parameters.get("n_jobs"))
        return scores(self.curves, X, threads, self.interactions)

    def explain(self, preferred: Any, other: Any) -> list[Reason]:
        """Tell why one document is above another, feature by feature, the strongest first.

        Pairs of features that act together are reasons of their own.

        The differences sum to that of the scores.
        """
        documents = {"preferred": preferred, "other": other}
        X = np.vstack(
            [row_of(d, what, self.n_features, self.feature_names) for what, d in documents.items()]
        )
        added = contributions(self.curves, X, self.interactions)
        differences = (added[0] - added[1]).tolist()
        names = self.feature_names
        reasons = [
            Reason(k, name_of(k, names), float(X[0, k]), float(X[1, k]), differences[k])
            for k in range(self.n_features)
        ]
        for one, difference in zip(self.interactions, differences[self.n_features :], strict=True):
            first, second = X[:, one.features].astype(np.float64).tolist()
            values = (first[0], first[1]), (second[0], second[1])
            reasons.append(Reason(one.features, one.name(self.feature_names), *values, difference))
        return sorted(reasons, key=lambda reason: -abs(reason.difference))


def curves_of(knots: Knots, values: Floats) -> list[Curve]:
    """Return the curves that have these values, by column."""
    of_feature = [values[knots.columns(k)] for k in range(knots.n_features)]
    return [
        Curve(knots.of(k).copy(), at[1:].copy(), float(at[0]), bool(knots.categorical[k]))
        for k, at in enumerate(of_feature)
    ]


def scores(
    curves: list[Curve], X: Any, threads: int, interactions: Sequence[Interaction] = ()
) -> Floats:
    """Return the sum of the curves, and of what pairs of features add, at checked features."""
    categorical = [k for k, curve in enumerate(curves) if curve.categorical]
    knots = Knots.of_features([curve.knots for curve in curves], categorical)
    by_column = [part for curve in curves for part in ([curve.missing], curve.values)]
    of_curves = knots.scores(X, np.concatenate(by_column), threads)
    return of_curves + scores_of(interactions, X, threads) if interactions else of_curves


def contributions(curves: list[Curve], X: Any, interactions: Sequence[Interaction] = ()) -> Floats:
    """Return what each feature, then each pair, adds to the scores of checked dense documents."""
    check_no_infinity(X)  # by its own column: below, each is one by itself
    columns = [scores([curve], X[:, [k]], 1) for k, curve in enumerate(curves)]
    return np.stack([*columns, *(scores_of([one], X, 1) for one in interactions)], axis=1)


def write(model: AdditiveModel, path: str | os.PathLike[str]) -> None:
    """Write a model, each field on a line of its own; what could not be read again is refused."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"marginrank {__version__}",
        "parameters": _encode_parameters(_listed_pairs(model.parameters)),
        "n_features": model.n_features,
        "feature_names": model.feature_names,
        "curves": [_curve_to_json(curve) for curve in model.curves],
        **_interactions_to_json(model),
        "training": None if model.training is None else _training(model.training),
        "history": None if model.history is None else _history(model.history, Iteration),
        **({} if model.scale is None else {"scale": model.scale.tolist()}),
    }
    _parse(_Fields.to_write(content))
    lines = [f" {json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in content.items()]
    with atomic_write(path) as file:
        file.write(("{\n" + ",\n".join(lines) + "\n}\n").encode("ascii"))


def _listed_pairs(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters with pairs in the place of a mapping, as keys in JSON are text."""
    signs = parameters.get("monotonic_cst")
    if not isinstance(signs, Mapping):
        return parameters
    return parameters | {"monotonic_cst": [list(pair) for pair in directions(signs).items()]}


def _curve_to_json(curve: Curve) -> dict[str, Any]:
    return {
        "knots": curve.knots.tolist(),
        "values": curve.values.tolist(),
        "missing": curve.missing,
        "categorical": curve.categorical,
        **({} if curve.categories is None else {"categories": list(curve.categories)}),
    }


def _interactions_to_json(model: AdditiveModel) -> dict[str, Any]:
    """Return the field of pairs of features, which files without pairs do not have."""
    stored = [to_json(one) for one in model.interactions]
    return {"interactions": stored} if stored else {}


def is_additive_model(path: str) -> bool:
    """Whether a file begins like one of these."""
    with open(path, "rb") as file:
        return f'"{FORMAT}"'.encode() in file.read(128)


def read(path: str) -> AdditiveModel:
    """Read a model."""
    with open(path, "rb") as file:
        content = parse_object(path, file.read())
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} is no additive model: its format is not {FORMAT!r}.")
    if content.get("version") != VERSION:
        raise ValueError(
            f"{path} has version {content.get('version')!r} and this marginrank reads version "
            f"{VERSION}; update marginrank."
        )
    return _parse(_Fields(path, content))


def _parse(fields: _Fields) -> AdditiveModel:
    curves = fields.get("curves", lambda v: isinstance(v, list) and bool(v), "a list of curves")
    n_features = fields.get("n_features", lambda v: v == len(curves), "the number of curves")
    return AdditiveModel(
        curves=[_read_curve(fields, k, curve) for k, curve in enumerate(curves)],
        parameters=_read_parameters(fields),
        feature_names=read_names(fields, n_features),
        training=_read_training(fields),
        history=_read_history(fields, Iteration),
        interactions=read_interactions(fields, n_features),
        scale=_read_scale(fields, n_features),
    )


def _read_parameters(fields: _Fields) -> dict[str, Any]:
    parameters = decode_parameters(fields)
    known = declared(AdditiveParameters)
    unknown = parameters.keys() - {*known, *ESTIMATOR_ONLY}
    try:
        if unknown:
            raise ValueError(f"unknown: {', '.join(map(repr, sorted(unknown)))}")
        signs = parameters.get("monotonic_cst")
        if isinstance(signs, list) and all(isinstance(one, list) for one in signs):
            parameters["monotonic_cst"] = dict(signs)
        AdditiveParameters(**{n: parameters[n] for n in known if n in parameters}).check()
    except (ValueError, TypeError) as error:
        raise fields.damaged(
            f"'parameters' are not those of an AdditiveRankSVM ({error})"
        ) from error
    return parameters


def _read_curve(fields: _Fields, k: int, stored: Any) -> Curve:
    if not isinstance(stored, dict):
        raise fields.damaged(f"curve {k} is no object")
    inner = fields.inside(stored)
    numbers = f"a list of finite numbers, in curve {k}"
    knots = np.array(inner.get("knots", _is_weights, numbers), dtype=np.float64)
    values = np.array(inner.get("values", _is_weights, numbers), dtype=np.float64)
    categorical = inner.get("categorical", lambda v: isinstance(v, bool), "true or false")
    if not 1 <= knots.size == values.size <= MOST_KNOTS or not are_rising(knots, categorical):
        raise fields.damaged(
            f"curve {k} does not have a value at each of 1 to {MOST_KNOTS} rising knots"
        )
    texts = stored.get("categories")
    if texts is not None:
        texts = tuple(inner.get("categories", _is_texts, f"a list of text, in curve {k}"))
    return Curve(
        knots=knots,
        values=values,
        missing=float(inner.get("missing", _is_finite, f"a finite number, in curve {k}")),
        categorical=categorical,
        categories=texts,
    )


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)
