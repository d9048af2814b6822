"""What is exported: a sum over named features, of weights, of curves and grids, or of kernels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
import scipy.sparse as sp

from marginrank._utils.feature_names import name_of
from marginrank._utils.types import Floats
from marginrank.export.numbers import exact
from marginrank.models import AdditiveModel, KernelModel, LinearModel
from marginrank.models.additive_model import Curve
from marginrank.models.linear_model import check_weights

KERNELS = ("linear", "poly", "polynomial", "rbf", "sigmoid", "cosine")
# Of categories, as arithmetic on the values of numbers would make NaN of infinity.
NOTHING = Curve(np.zeros(1), np.zeros(1), 0.0, categorical=True)

Model = LinearModel | AdditiveModel | KernelModel
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Sum(Generic[Entry]):
    """A score: offset + what each term adds. Terms are in the order of the features."""

    name: str  # of the model: letters, digits and _
    features: tuple[str, ...]  # names of all features
    terms: tuple[Entry, ...]
    offset: float = 0.0
    dialect: str | None = None  # that the target was asked for

    @property
    def counts(self) -> dict[str, int]:
        """Number of terms of each kind that add to scores."""
        raise NotImplementedError

    @property
    def places(self) -> tuple[int, ...]:
        """Positions of the features that add to scores, ascending."""
        return tuple(range(len(self.features)))

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the features that add to scores."""
        return tuple(self.features[place] for place in self.places)


@dataclass(frozen=True)
class Term:
    """A feature with a weight that is not zero."""

    place: int  # among all features, from 0 on
    name: str
    weight: float


class WeightedSum(Sum[Term]):
    """A score: offset + Σ weight · feature, where a feature that is missing counts as 0."""

    @property
    def counts(self) -> dict[str, int]:
        return {"weights": len(self.terms)}

    @property
    def places(self) -> tuple[int, ...]:
        return tuple(term.place for term in self.terms)

    def listed(self) -> tuple[Term, ...]:
        """Return the terms, or one of weight 0 for systems that refuse to have none."""
        return self.terms or (Term(0, self.features[0], 0.0),)


@dataclass(frozen=True)
class CurveAxis:
    """A feature, and its nodes: the first is for missing values, the others are its knots."""

    place: int  # among all features, from 0 on
    name: str
    knots: Floats  # ascending; categories, if it is categorical
    categorical: bool


@dataclass(frozen=True)
class CurveTerm:
    """A feature with a curve that is not zero everywhere."""

    place: int  # among all features, from 0 on
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
    """Two features with a function of both that is not zero everywhere."""

    axes: tuple[CurveAxis, CurveAxis]
    at_nodes: Floats  # rows of the first feature, columns of the second

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
        """Return the curves, or one that adds nothing for languages without empty arrays."""
        return self.terms or (CurveTerm(0, self.features[0], NOTHING),)

    def flat(self) -> dict[str, list[str]]:
        """Return curves and grids as arrays of numbers, for languages that have little else.

        Each curve has an axis, then each grid has two. The knots of axis k are from starts[k] to
        starts[k + 1]. Values at the nodes of a curve follow those of the one before; then come
        those of grids, row by row.
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
    """A document that others are compared with, without the center and divided by the scale."""

    weight: float  # of the kernel with it
    features: Floats


@dataclass(frozen=True)
class KernelSum(Sum[Landmark]):
    """A score: offset + Σ weight · kernel((features − center) / scale, landmark).

    The kernel is one of :data:`KERNELS`, which are functions of inner products. A missing feature
    counts as 0.
    """

    kernel: str = "linear"
    gamma: float = 1.0
    degree: float = 3.0
    coef0: float = 1.0
    center: Floats = field(default_factory=lambda: np.zeros(1))
    scale: Floats = field(default_factory=lambda: np.ones(1))

    @property
    def counts(self) -> dict[str, int]:
        return {"landmarks": len(self.terms)}

    def listed(self) -> tuple[Landmark, ...]:
        """Return the landmarks, or one of weight 0 for systems without empty matrices."""
        return self.terms or (Landmark(0.0, np.zeros(len(self.features))),)


def sum_over(
    model: Model,
    features: Sequence[str],
    name: str = "marginrank",
    offset: float = 0.0,
    dialect: str | None = None,
) -> Sum[Any]:
    """Return the terms of a model that are not zero."""
    names = tuple(features)
    if isinstance(model, AdditiveModel):
        curves = tuple(
            CurveTerm(k, names[k], curve)
            for k, curve in enumerate(model.curves)
            if curve.missing or np.any(curve.values)
        )
        return CurveSum(name, names, curves, offset, dialect, tuple(_grids_of(model, names)))
    if isinstance(model, KernelModel):
        return _kernel_sum(model, names, name, offset, dialect)
    kept = np.flatnonzero(model.coef).tolist()
    weights = tuple(Term(k, names[k], float(model.coef[k])) for k in kept)
    return WeightedSum(name, names, weights, offset, dialect)


def _grids_of(model: AdditiveModel, names: Sequence[str]) -> Iterable[GridTerm]:
    for one in model.interactions:
        if np.any(one.values):
            (a, b), (first, second), (in_a, in_b) = one.features, one.knots, one.categorical
            axes = (CurveAxis(a, names[a], first, in_a), CurveAxis(b, names[b], second, in_b))
            yield GridTerm(axes, one.values)


def _kernel_sum(
    model: KernelModel, names: tuple[str, ...], name: str, offset: float, dialect: str | None
) -> KernelSum:
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


def check_numbers(model: Model) -> None:
    """Raise ValueError if a model has numbers or a kernel that no target can hold."""
    if isinstance(model, AdditiveModel):
        _check_curves(model)
    elif isinstance(model, KernelModel):
        _check_kernel(model)
    else:
        check_weights(model)


def _check_curves(model: AdditiveModel) -> None:
    names = model.feature_names
    for k, curve in enumerate(model.curves):
        if not _has_finite_steps([curve.knots], np.append(curve.missing, curve.values)):
            raise _infinite(f"the curve of {name_of(k, names)}")
    for one in model.interactions:
        if not _has_finite_steps(one.knots, one.values):
            raise _infinite(f"the pair {one.name(names)}")


def _infinite(what: str) -> ValueError:
    return ValueError(
        f"{what} has NaN, infinity, or a step that is infinite; train the model again on finite "
        "features."
    )


def _has_finite_steps(axes: Sequence[Floats], values: Floats) -> bool:
    """Whether numbers are finite, and the differences of neighbours as well."""
    with np.errstate(over="ignore", invalid="ignore"):
        steps = [
            *(np.diff(knots) for knots in axes),
            *(np.diff(values, axis=k) for k in range(values.ndim)),
        ]
    return all(np.isfinite(numbers).all() for numbers in (*axes, values, *steps))


def _check_kernel(model: KernelModel) -> None:
    function = model.kernel().function
    if function not in KERNELS:
        called = "a function" if callable(function) else repr(function)
        raise ValueError(
            f"the kernel is {called}, which no target computes from features; score with "
            f"marginrank predict, or train with one of {', '.join(map(repr, KERNELS))}."
        )
    if not np.isfinite(model.dual_coef).all():
        raise ValueError("dual_coef_ holds NaN or infinity; fit the model again.")
