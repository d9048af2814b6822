"""What is exported of a kernel model: a sum of kernels of features with those of landmarks."""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from marginrank._utils.types import Floats
from marginrank.export.weighted_sum import Sum
from marginrank.models import KernelModel

KERNELS = ("linear", "poly", "polynomial", "rbf", "sigmoid", "cosine")


@dataclass(frozen=True)
class Landmark:
    """A document that others are compared with.

    Attributes
    ----------
    weight : float
        What the kernel with it is multiplied by.
    features : ndarray of shape (n_features,)
        Its features, without the center and divided by the scale.
    """

    weight: float
    features: Floats


@dataclass(frozen=True)
class KernelSum(Sum[Landmark]):
    """A score: offset + Σ weight · kernel((features − center) / scale, landmark).

    A missing feature counts as 0.

    Attributes
    ----------
    kernel : str
        One of :data:`KERNELS`, all of which are functions of inner products.
    gamma, degree, coef0 : float
        Its parameters.
    center, scale : ndarray of shape (n_features,)
        What is subtracted from features, and what they are divided by then.
    """

    kernel: str = "linear"
    gamma: float = 1.0
    degree: float = 3.0
    coef0: float = 1.0
    center: Floats = field(default_factory=lambda: np.zeros(1))
    scale: Floats = field(default_factory=lambda: np.ones(1))

    def listed(self) -> tuple[Landmark, ...]:
        """Return the landmarks, or one of weight 0 for systems without empty matrices."""
        return self.terms or (Landmark(0.0, np.zeros(len(self.features))),)


def landmarks_of(model: KernelModel) -> tuple[Landmark, ...]:
    """Return the landmarks whose weights are not zero."""
    kept = np.flatnonzero(model.dual_coef)
    rows = model.compared().seen[kept]
    documents = rows.toarray() if sp.issparse(rows) else rows
    return tuple(map(Landmark, model.dual_coef[kept].tolist(), documents))


def kernel_of(model: KernelModel) -> dict[str, str | float | Floats]:
    """Return what a KernelSum tells of a kernel."""
    kernel, center = model.kernel(), model.compared().center
    return {
        "kernel": str(kernel.function),
        "gamma": 1.0 / model.n_features if kernel.gamma is None else kernel.gamma,
        "degree": kernel.degree,
        "coef0": kernel.coef0,
        "center": np.zeros(model.n_features) if center is None else center,
        "scale": np.ones(model.n_features) if model.scale is None else model.scale,
    }


def check_kernel(model: KernelModel) -> None:
    """Raise ValueError for kernels that are no functions of inner products."""
    function = model.kernel().function
    if function not in KERNELS:
        called = "a function" if callable(function) else repr(function)
        raise ValueError(
            f"the kernel is {called}, which no target computes from features; score with "
            f"marginrank predict, or train with one of {', '.join(map(repr, KERNELS))}."
        )
    if not np.isfinite(model.dual_coef).all():
        raise ValueError("dual_coef_ holds NaN or infinity; fit the model again.")
