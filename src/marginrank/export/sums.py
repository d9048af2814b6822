"""Models as sums of terms for export: weighted features, curves, grids or kernel values.

A curve or grid is given by its values at *nodes*: for each of its features, one node for missing
values, then one per knot or category. A *place* is the position of a feature, from 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import scipy.sparse as sp

from marginrank._utils.feature_names import name_of
from marginrank._utils.types import Floats
from marginrank.export.text import exact
from marginrank.models import AdditiveModel, KernelModel, LinearModel
from marginrank.models.additive_model import Curve
from marginrank.models.linear_model import check_weights

KERNELS = ("linear", "poly", "polynomial", "rbf", "sigmoid", "cosine")
# Categorical, because interpolation would turn an infinite feature value into NaN.
NOTHING = Curve(np.zeros(1), np.zeros(1), 0.0, categorical=True)

Model = LinearModel | AdditiveModel | KernelModel
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Sum(Generic[Entry]):
    """A score: the offset and the sum of all terms, which are in the order of the features."""

    name: str  # name of the model: letters, digits and _
    features: tuple[str, ...]  # names of all features
    terms: tuple[Entry, ...]
    offset: float = 0.0
    dialect: str | None = None  # the dialect in the target's name

    @property
    def counts(self) -> dict[str, int]:
        """Number of nonzero terms of each kind."""
        raise NotImplementedError

    @property
    def places(self) -> tuple[int, ...]:
        """Positions of the features that the terms use, ascending."""
        return tuple(range(len(self.features)))

    @property
    def used(self) -> tuple[str, ...]:
        return tuple(self.features[place] for place in self.places)


@dataclass(frozen=True)
class Term:
    """A feature and its nonzero weight."""

    place: int  # among all features, from 0
    name: str
    weight: float


class WeightedSum(Sum[Term]):
    """A score: offset + Σ weight · feature. A missing feature counts as 0."""

    @property
    def counts(self) -> dict[str, int]:
        return {"weights": len(self.terms)}

    @property
    def places(self) -> tuple[int, ...]:
        return tuple(term.place for term in self.terms)

    def listed(self) -> tuple[Term, ...]:
        """Return the terms, or one term of weight 0 for systems that require at least one."""
        return self.terms or (Term(0, self.features[0], 0.0),)

    def flat(self) -> dict[str, list[str]]:
        return {
            "places": [str(term.place) for term in self.listed()],
            "weights": [exact(term.weight) for term in self.listed()],
        }


@dataclass(frozen=True)
class CurveAxis:
    """A feature and its nodes: one for missing values, then the knots."""

    place: int  # among all features, from 0
    name: str
    knots: Floats  # ascending; the categories, if it is categorical
    categorical: bool


@dataclass(frozen=True)
class CurveTerm:
    """A feature and its curve, which is not zero everywhere."""

    place: int  # among all features, from 0
    name: str
    curve: Curve

    @property
    def axes(self) -> tuple[CurveAxis]:
        return (CurveAxis(self.place, self.name, self.curve.knots, self.curve.categorical),)

    @property
    def at_nodes(self) -> Floats:
        return np.concatenate([[self.curve.missing], self.curve.values])


@dataclass(frozen=True)
class GridTerm:
    """Two features and a function of both, which is not zero everywhere."""

    axes: tuple[CurveAxis, CurveAxis]
    at_nodes: Floats  # rows of the first feature, columns of the second

    # The curves returned below are constant beyond their outer knots, unlike curves of features.

    @property
    def columns(self) -> list[Curve]:
        """One curve of the first feature per node of the second feature."""
        return _curves_on(self.axes[0], self.at_nodes.T)

    @property
    def rows(self) -> list[Curve]:
        """One curve of the second feature per node of the first feature."""
        return _curves_on(self.axes[1], self.at_nodes)

    @property
    def hats(self) -> list[Curve]:
        """Hat functions: one curve per node of the first feature, 1 there and 0 at other nodes."""
        return _curves_on(self.axes[0], np.eye(self.axes[0].knots.size + 1))


def _curves_on(axis: CurveAxis, rows: Floats) -> list[Curve]:
    return [Curve(axis.knots, row[1:], float(row[0]), axis.categorical) for row in rows]


@dataclass(frozen=True)
class CurveSum(Sum[CurveTerm]):
    """A score: offset + Σ curve(feature) + Σ grid(feature, other feature).

    Curves and grids have values for missing features. Targets use the operations of `predict` in
    the same order. Let x be between `knot` and `next_knot`, and `left` and `right` the values of a
    curve there: its value at x is ``left + (x - knot) / (next_knot - knot) * (right - left)``. A
    grid is interpolated along the other feature in the two rows around x, and then between the
    rows. Beyond the outer knots a grid is constant, and a curve continues as a straight line.
    """

    grids: tuple[GridTerm, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        return {"curves": len(self.terms), "interactions": len(self.grids)}

    @property
    def places(self) -> tuple[int, ...]:
        terms: list[CurveTerm | GridTerm] = [*self.terms, *self.grids]
        return tuple(sorted({axis.place for term in terms for axis in term.axes}))

    def listed(self) -> tuple[CurveTerm, ...]:
        """Return the curves, or one zero curve for languages without empty arrays."""
        return self.terms or (CurveTerm(0, self.features[0], NOTHING),)

    def flat(self) -> dict[str, list[str]]:
        """Return all curves and grids as flat arrays of numbers, by array name.

        Each curve has one axis, then each grid has two. The knots of axis k are from starts[k] to
        starts[k + 1]. The values at the nodes of all curves come first, then the values of grids,
        row by row.
        """
        terms: list[CurveTerm | GridTerm] = [*self.listed(), *self.grids]
        axes = [axis for term in terms for axis in term.axes]
        starts = np.cumsum([0, *(axis.knots.size for axis in axes)])
        return {
            "places": [str(axis.place) for axis in axes],
            "starts": [str(start) for start in starts.tolist()],
            "categorical": [str(int(axis.categorical)) for axis in axes],
            "knots": [exact(knot) for axis in axes for knot in axis.knots],
            "values": [exact(value) for term in terms for value in term.at_nodes.flat],
        }


@dataclass(frozen=True)
class Landmark:
    """A training document at which the kernel is evaluated, after centering and scaling."""

    weight: float  # weight of its kernel values in the score
    features: Floats


@dataclass(frozen=True, kw_only=True)
class KernelSum(Sum[Landmark]):
    """A score: offset + Σ weight · kernel((features − center) / scale, landmark).

    The kernel is one of :data:`KERNELS`, which are functions of inner products. A missing feature
    counts as 0.
    """

    kernel: str
    gamma: float
    degree: float
    coef0: float
    center: Floats
    scale: Floats

    @property
    def counts(self) -> dict[str, int]:
        return {"landmarks": len(self.terms)}

    def listed(self) -> tuple[Landmark, ...]:
        """Return the landmarks, or one landmark of weight 0 for systems without empty matrices."""
        return self.terms or (Landmark(0.0, np.zeros(len(self.features))),)


def term_list(term: CurveTerm | GridTerm) -> str:
    """Return a curve or a grid as a list in the syntax of Python and JavaScript.

    It holds each axis (feature position, 1 if categorical, knots), then the values at the nodes.
    """
    axes = [[axis.place, int(axis.categorical), axis.knots.tolist()] for axis in term.axes]
    return repr([*axes, term.at_nodes.tolist()])


def sum_over(
    model: Model,
    features: Sequence[str],
    name: str = "marginrank",
    offset: float = 0.0,
    dialect: str | None = None,
) -> Sum[Any]:
    """Return a model as a Sum of its nonzero terms."""
    names = tuple(features)
    if isinstance(model, AdditiveModel):
        curves = tuple(
            CurveTerm(k, names[k], curve)
            for k, curve in enumerate(model.curves)
            if curve.missing or np.any(curve.values)
        )
        grids = []
        for one in model.interactions:
            if np.any(one.values):
                (a, b), (first, second), (in_a, in_b) = one.features, one.knots, one.categorical
                axes = (CurveAxis(a, names[a], first, in_a), CurveAxis(b, names[b], second, in_b))
                grids.append(GridTerm(axes, one.values))
        return CurveSum(name, names, curves, offset, dialect, tuple(grids))
    if isinstance(model, KernelModel):
        kept = np.flatnonzero(model.dual_coef)
        compared, kernel = model.compared(), model.kernel().with_gamma(model.n_features)
        rows = compared.seen[kept]
        documents = rows.toarray() if sp.issparse(rows) else rows
        return KernelSum(
            name,
            names,
            tuple(map(Landmark, model.dual_coef[kept].tolist(), documents)),
            offset,
            dialect,
            kernel=str(kernel.function),
            gamma=1.0 / model.n_features if kernel.gamma is None else float(kernel.gamma),
            degree=kernel.degree,
            coef0=kernel.coef0,
            center=np.zeros(model.n_features) if compared.center is None else compared.center,
            scale=np.ones(model.n_features) if model.scale is None else model.scale,
        )
    weights = np.flatnonzero(model.coef).tolist()
    terms = tuple(Term(k, names[k], float(model.coef[k])) for k in weights)
    return WeightedSum(name, names, terms, offset, dialect)


def check_numbers(model: Model) -> None:
    """Raise ValueError if a model has numbers or a kernel that targets cannot compute with."""
    if isinstance(model, AdditiveModel):
        names = model.feature_names
        parts: list[tuple[str, Sequence[Floats], Floats]] = [
            (f"the curve of {name_of(k, names)}", [c.knots], np.append(c.missing, c.values))
            for k, c in enumerate(model.curves)
        ]
        parts += [(f"the pair {i.name(names)}", i.knots, i.values) for i in model.interactions]
        for called, axes, values in parts:
            if not _has_finite_steps(axes, values):
                raise ValueError(
                    f"{called} contains NaN or infinity, or a difference of its values overflows; "
                    "train the model on finite features."
                )
    elif isinstance(model, KernelModel):
        function = model.kernel().function
        if function not in KERNELS:
            called = "a function" if callable(function) else repr(function)
            raise ValueError(
                f"no target computes the kernel {called} from features; score with marginrank "
                f"predict, or train with one of {', '.join(map(repr, KERNELS))}."
            )
        if not np.isfinite(model.dual_coef).all():
            raise ValueError("dual_coef_ contains NaN or infinity; fit the model again.")
    else:
        check_weights(model)


def _has_finite_steps(axes: Sequence[Floats], values: Floats) -> bool:
    """Return True if knots, values and the differences between neighbors are finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        steps = [
            *(np.diff(knots) for knots in axes),
            *(np.diff(values, axis=k) for k in range(values.ndim)),
        ]
    return all(np.isfinite(numbers).all() for numbers in (*axes, values, *steps))
