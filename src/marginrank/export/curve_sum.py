"""What is exported of an additive model: a sum of curves of named features."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marginrank.export.numbers import exact
from marginrank.export.weighted_sum import Sum
from marginrank.models import AdditiveModel
from marginrank.models.additive_model import Curve

NOTHING = Curve(np.zeros(1), np.zeros(1), 0.0, categorical=False)


@dataclass(frozen=True)
class CurveTerm:
    """A feature with a curve that is not zero everywhere.

    Attributes
    ----------
    place : int
        Where the feature is among all features, from 0 on.
    name : str
        What it is called.
    curve : Curve
        What it adds.
    """

    place: int
    name: str
    curve: Curve


class CurveSum(Sum[CurveTerm]):
    """A score: offset + Σ curve(feature), where a feature that is missing adds what its curve says.

    Targets compute what `predict` does, in its order: of the first knot above x but for the outer
    ones, and the knot before it, ``left + (x - knot) / (next_knot - knot) * (right - left)``.
    """

    def listed(self) -> tuple[CurveTerm, ...]:
        """Return the terms, or one that adds nothing for languages without empty arrays."""
        return self.terms or (CurveTerm(0, self.features[0], NOTHING),)


def curve_terms_of(model: AdditiveModel, names: list[str]) -> tuple[CurveTerm, ...]:
    """Return the features whose curves are not zero everywhere."""
    return tuple(
        CurveTerm(k, names[k], curve)
        for k, curve in enumerate(model.curves)
        if curve.missing or np.any(curve.values)
    )


def check_curves(model: AdditiveModel) -> None:
    """Refuse curves that no text can hold, and pairs of features, which no export has."""
    if model.interactions:
        raise ValueError(
            "the model has pairs of features that act together, which no export holds; score with "
            "marginrank predict, or train with interactions=0."
        )
    for k, curve in enumerate(model.curves):
        with np.errstate(over="ignore", invalid="ignore"):
            numbers = [curve.knots, np.diff(curve.knots), curve.values, np.diff(curve.values)]
        if not np.isfinite(np.concatenate([*numbers, [curve.missing]])).all():
            raise ValueError(
                f"the curve of feature {k} has NaN, infinity, or a step that is infinite; train "
                "the model again on finite features."
            )


def flat(terms: Sequence[CurveTerm]) -> dict[str, list[str]]:
    """Return curves as arrays of numbers; those of curve k are from starts[k] to starts[k + 1]."""
    curves = [term.curve for term in terms]
    starts = np.cumsum([0, *(curve.knots.size for curve in curves)])
    return {
        "places": [str(term.place) for term in terms],
        "starts": [str(start) for start in starts.tolist()],
        "missing": [exact(curve.missing) for curve in curves],
        "categorical": [str(int(curve.categorical)) for curve in curves],
        "knots": [exact(knot) for curve in curves for knot in curve.knots],
        "values": [exact(value) for curve in curves for value in curve.values],
    }
