"""What is exported of an additive model: a sum of curves of named features, and of grids of two."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from marginrank._utils.feature_names import name_of
from marginrank._utils.types import Floats
from marginrank.export.numbers import exact
from marginrank.export.weighted_sum import Sum
from marginrank.models import AdditiveModel
from marginrank.models.additive_model import Curve

# Of categories, as arithmetic on the values of numbers would make NaN of infinity.
NOTHING = Curve(np.zeros(1), np.zeros(1), 0.0, categorical=True)


@dataclass(frozen=True)
class CurveAxis:
    """A feature, and its nodes: the first is for missing values, the others are its knots.

    Attributes
    ----------
    place : int
        Where the feature is among all features, from 0 on.
    name : str
        What it is called.
    knots : ndarray
        Its values at the nodes after the first, ascending; categories, if it is `categorical`.
    categorical : bool
        Whether the feature has categories.
    """

    place: int
    name: str
    knots: Floats
    categorical: bool


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

    @property
    def axes(self) -> tuple[CurveAxis]:
        """The feature and its nodes."""
        return (CurveAxis(self.place, self.name, self.curve.knots, self.curve.categorical),)

    @property
    def at_nodes(self) -> Floats:
        """What is added at the nodes."""
        return np.concatenate([[self.curve.missing], self.curve.values])


@dataclass(frozen=True)
class GridTerm:
    """Two features with a function of both that is not zero everywhere.

    Attributes
    ----------
    axes : tuple of CurveAxis
        The two features and their nodes.
    at_nodes : ndarray
        What is added at each two nodes, in rows of the first feature and columns of the second.
    """

    axes: tuple[CurveAxis, CurveAxis]
    at_nodes: Floats

    @property
    def rows(self) -> list[Curve]:
        """What is added at the nodes of the first feature, as curves of the second.

        Unlike other curves, these are flat beyond their outer knots.
        """
        knots, categorical = self.axes[1].knots, self.axes[1].categorical
        return [Curve(knots, row[1:], float(row[0]), categorical) for row in self.at_nodes]

    @property
    def hats(self) -> list[Curve]:
        """Curves of the first feature that are one at one node and zero at the others.

        The grid is the sum of the products of these and of `rows`. They are flat beyond their outer
        knots, too.
        """
        knots, categorical = self.axes[0].knots, self.axes[0].categorical
        return [Curve(knots, hat[1:], float(hat[0]), categorical) for hat in np.eye(knots.size + 1)]

    @property
    def transposed(self) -> "GridTerm":
        """The same function, with the features in the other order."""
        return GridTerm(self.axes[::-1], self.at_nodes.T)


@dataclass(frozen=True)
class CurveSum(Sum[CurveTerm]):
    """A score: offset + Σ curve(feature) + Σ grid(feature, other feature).

    A feature that is missing adds what its curve and its grids say. Targets compute what `predict`
    does, in its order: of the first knot above x but for the outer ones, and the knot before it,
    ``left + (x - knot) / (next_knot - knot) * (right - left)``. A grid does so in the two rows
    around x, along the other feature, and then from one row to the next; beyond its outer knots it
    stays what it is there, while curves go on straight.

    Attributes
    ----------
    grids : tuple of GridTerm
        What pairs of features add beside their curves.
    """

    grids: tuple[GridTerm, ...] = ()

    def listed(self) -> tuple[CurveTerm, ...]:
        """Return the curves, or one that adds nothing for languages without empty arrays."""
        return self.terms or (CurveTerm(0, self.features[0], NOTHING),)

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the features that have a curve or are in a grid."""
        return tuple(self.features[place] for place in places_of([*self.terms, *self.grids]))


def curve_terms_of(model: AdditiveModel, names: list[str]) -> tuple[CurveTerm, ...]:
    """Return the features whose curves are not zero everywhere."""
    return tuple(
        CurveTerm(k, names[k], curve)
        for k, curve in enumerate(model.curves)
        if curve.missing or np.any(curve.values)
    )


def grid_terms_of(model: AdditiveModel, names: list[str]) -> tuple[GridTerm, ...]:
    """Return the pairs of features that add something."""
    return tuple(
        GridTerm(
            (
                CurveAxis(a, names[a], one.knots[0], one.categorical[0]),
                CurveAxis(b, names[b], one.knots[1], one.categorical[1]),
            ),
            one.values,
        )
        for one in model.interactions
        for a, b in [one.features]
        if np.any(one.values)
    )


def places_of(terms: Iterable[CurveTerm | GridTerm]) -> tuple[int, ...]:
    """Return where the features of some terms are, each of them once."""
    return tuple(sorted({axis.place for term in terms for axis in term.axes}))


def check_curves(model: AdditiveModel) -> None:
    """Raise ValueError for curves and pairs of features that no text can hold."""
    for k, curve in enumerate(model.curves):
        if not _has_finite_steps([curve.knots], np.append(curve.missing, curve.values)):
            raise ValueError(
                f"the curve of {name_of(k, model.feature_names)} has NaN, infinity, or a step that "
                "is infinite; train the model again on finite features."
            )
    for one in model.interactions:
        if not _has_finite_steps(one.knots, one.values):
            raise ValueError(
                f"the pair {one.name(model.feature_names)} has NaN, infinity, or a step that is "
                "infinite; train the model again on finite features."
            )


def _has_finite_steps(axes: Sequence[Floats], values: Floats) -> bool:
    """Whether numbers are finite, and the differences of neighbours as well."""
    with np.errstate(over="ignore", invalid="ignore"):
        steps = [
            *(np.diff(knots) for knots in axes),
            *(np.diff(values, axis=k) for k in range(values.ndim)),
        ]
    return all(np.isfinite(numbers).all() for numbers in (*axes, values, *steps))


def flat(model: CurveSum) -> dict[str, list[str]]:
    """Return curves and grids as arrays of numbers, for languages that have little else.

    Each curve has an axis, then each grid has two. The knots of axis k are from starts[k] to
    starts[k + 1]. Values at the nodes of a curve follow those of the one before; then come those of
    grids, row by row.
    """
    terms: list[CurveTerm | GridTerm] = [*model.listed(), *model.grids]
    axes = [axis for term in terms for axis in term.axes]
    starts = np.cumsum([0, *(axis.knots.size for axis in axes)])
    return {
        "places": [str(axis.place) for axis in axes],
        "starts": [str(start) for start in starts.tolist()],
        "categorical": [str(int(axis.categorical)) for axis in axes],
        "knots": [exact(knot) for axis in axes for knot in axis.knots],
        "values": [exact(value) for term in terms for value in term.at_nodes.flat],
    }
