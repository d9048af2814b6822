"""Models in the form that export writes: a score is a sum of terms plus an offset.

A term is a weighted feature, the curve of a feature, a grid (a function of two features), or a
kernel value. Curves and grids are given by their values at *nodes*: for each feature, one node for
missing values, then one node per knot or category. A *place* is the column number of a feature.
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
# A curve that is 0 everywhere. It is categorical, because interpolation would turn an infinite
# feature value into NaN.
NOTHING = Curve(np.zeros(1), np.zeros(1), 0.0, categorical=True)

Model = LinearModel | AdditiveModel | KernelModel
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Sum(Generic[Entry]):
    """Base class of models for export: a score is the offset plus a sum of terms.

    A term is the contribution of a feature or, in a kernel model, of a training document. Terms are
    in the order of the features.
    """

    name: str  # name of the model: letters, digits and _
    features: tuple[str, ...]  # names of all features
    terms: tuple[Entry, ...]
    offset: float = 0.0
    dialect: str | None = None  # "mysql" for the target "sql:mysql"

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of nonzero parts of the model, such as {"weights": 12} for a linear model."""
        raise NotImplementedError

    @property
    def places(self) -> tuple[int, ...]:
        """Column numbers of the features that the model uses, ascending."""
        return tuple(range(len(self.features)))

    @property
    def used(self) -> tuple[str, ...]:
        return tuple(self.features[place] for place in self.places)


@dataclass(frozen=True)
class Term:
    """A term of a linear model: a feature and its nonzero weight."""

    place: int  # column number of the feature
    name: str
    weight: float


class WeightedSum(Sum[Term]):
    """A linear model for export: offset + Σ weight · feature. A missing feature counts as 0."""

    @property
    def counts(self) -> dict[str, int]:
        return {"weights": len(self.terms)}

    @property
    def places(self) -> tuple[int, ...]:
        return tuple(term.place for term in self.terms)

    def listed(self) -> tuple[Term, ...]:
        """Return the terms of the model or, if all weights are zero, the first feature's term.

        Some systems that a model is exported to require at least one feature.
        """
        return self.terms or (Term(0, self.features[0], 0.0),)

    def flat(self) -> dict[str, list[str]]:
        return {
            "places": [str(term.place) for term in self.listed()],
            "weights": [exact(term.weight) for term in self.listed()],
        }


@dataclass(frozen=True)
class CurveAxis:
    """A feature of a curve or grid, with its knots, or its categories if it is categorical."""

    place: int  # column number of the feature
    name: str
    knots: Floats  # ascending; the categories, if it is categorical
    categorical: bool


@dataclass(frozen=True)
class CurveTerm:
    """A term of an additive model: a feature and its curve, which is not zero everywhere."""

    place: int  # column number of the feature
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
    """An interaction of an additive model: two features and a function of both.

    The function is given by its values on a grid, the nodes of the first feature × the nodes of
    the second feature. A node is a knot, a category, or stands for missing values.
    """

    axes: tuple[CurveAxis, CurveAxis]
    at_nodes: Floats  # rows of the first feature, columns of the second

    # The curves of a grid are constant beyond their outer knots, unlike curves of features, which
    # continue as straight lines.

    @property
    def columns(self) -> list[Curve]:
        """Curves of the first feature that together make up this function of two features.

        There is one curve for missing values of the second feature, then one for each of its knots.
        """
        return _curves_on(self.axes[0], self.at_nodes.T)

    @property
    def rows(self) -> list[Curve]:
        """Curves of the second feature that together make up this function of two features.

        There is one curve for missing values of the first feature, then one for each of its knots.
        """
        return _curves_on(self.axes[1], self.at_nodes)

    @property
    def hats(self) -> list[Curve]:
        """Hat functions of the first feature: curve k is 1 at node k and 0 at all other nodes.

        Node 0, and so curve 0, is for missing values.
        """
        return _curves_on(self.axes[0], np.eye(self.axes[0].knots.size + 1))


def _curves_on(axis: CurveAxis, rows: Floats) -> list[Curve]:
    return [Curve(axis.knots, row[1:], float(row[0]), axis.categorical) for row in rows]


@dataclass(frozen=True)
class CurveSum(Sum[CurveTerm]):
    """An additive model for export: offset + Σ curve(feature) + Σ grid(feature, other feature).

    A grid is a function of two features, an interaction. Curves and grids have values for missing
    features. Exported code must use the operations of `predict` in the same order. If x is between
    `knot` and `next_knot`, and a curve has the values `left` and `right` there, its value is
    ``left + (x - knot) / (next_knot - knot) * (right - left)``. A grid is interpolated along the
    second feature in the two rows around the first, then between these rows. Beyond the outer
    knots, a grid is constant and a curve continues as a straight line.
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
        """Return the curves or, if there are none, one curve that is 0 everywhere.

        Some languages that a model is exported to have no empty arrays.
        """
        return self.terms or (CurveTerm(0, self.features[0], NOTHING),)

    def flat(self) -> dict[str, list[str]]:
        """Return all curves and grids as flat arrays for exported code: {array name: entries}.

        An axis is a feature with its knots; a curve has one axis, a grid has two. Axis k has the
        knots ``knots[starts[k]:starts[k + 1]]``. `values` has the values of all curves at their
        nodes (missing values, then knots), then the values of all grids, row by row.
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
    """A training document with a nonzero weight in a kernel model, after centering and scaling."""

    weight: float  # weight of its kernel values in the score
    features: Floats


@dataclass(frozen=True, kw_only=True)
class KernelSum(Sum[Landmark]):
    """A kernel model for export: offset + Σ weight · kernel((features − center) / scale, landmark).

    Landmarks are training documents. The kernel is one of :data:`KERNELS`, all of which can be
    computed from inner products. A missing feature counts as 0.
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
        """Return the landmarks, or one landmark of weight 0 if there are none.

        Some systems that a model is exported to do not support empty matrices.
        """
        return self.terms or (Landmark(0.0, np.zeros(len(self.features))),)


def term_list(term: CurveTerm | GridTerm) -> str:
    """Return a curve or a grid as a list in the syntax of Python and JavaScript.

    The list has one entry [column number, 1 if categorical (else 0), knots] per feature, then the
    values at the nodes.
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
    """Return a model as a sum of its nonzero terms, the form in which it is exported."""
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
    """Raise ValueError if a model has NaN or infinity, or a kernel that export does not support."""
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
    """Return True if knots, values and the differences between adjacent ones are finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        steps = [
            *(np.diff(knots) for knots in axes),
            *(np.diff(values, axis=k) for k in range(values.ndim)),
        ]
    return all(np.isfinite(numbers).all() for numbers in (*axes, values, *steps))
