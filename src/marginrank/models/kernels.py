"""Kernels, and sums of them over landmarks: how a kernel model scores documents.

It imports scikit-learn, which computes the kernels.
"""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from marginrank._utils.parameters import check_choice, check_number
from marginrank._utils.threads import cached_property, serial_blas
from marginrank._utils.types import Floats, Integers

BLOCK_BYTES = 2**24  # of kernel values that a thread holds at a time
PRECOMPUTED = "precomputed"
AUTO = "auto"
AUTO_GAMMA = 0.1  # of "rbf", times the number of features


@dataclass(frozen=True)
class Kernel:
    """A kernel function and its parameters; see :class:`~marginrank.KernelRankSVM`."""

    function: str | Callable[[Any, Any], Any]
    gamma: float | str | None = None
    degree: float = 3
    coef0: float = 1

    def check(self) -> None:
        """Raise ParameterError for a wrong value."""
        if not callable(self.function):
            check_choice("kernel", self.function, [*sorted(PAIRWISE_KERNEL_FUNCTIONS), PRECOMPUTED])
        if self.gamma is not None and self.gamma != AUTO:
            check_number("gamma", self.gamma)
        check_number("degree", self.degree)
        check_number("coef0", self.coef0, above=-math.inf)

    def with_gamma(self, n_features: int) -> "Kernel":
        """Return the kernel with the gamma that "auto" stands for."""
        if self.gamma != AUTO:
            return self
        return replace(self, gamma=AUTO_GAMMA / n_features if self.function == "rbf" else None)

    def __call__(self, X: Any, Z: Any) -> NDArray[Any]:
        """Return k(x, z) for each row x of X and z of Z."""
        if callable(self.function):
            values = np.asarray(self.function(X, Z))
            if values.shape != (X.shape[0], Z.shape[0]):
                raise ValueError(
                    f"kernel returned shape {values.shape} for matrices of {X.shape[0]} and "
                    f"{Z.shape[0]} rows; it must return one value for each pair of rows."
                )
            return values
        parameters: dict[str, Any] = {"degree": self.degree, "coef0": self.coef0}
        if self.gamma is not None:
            parameters["gamma"] = self.gamma
        values = pairwise_kernels(X, Z, metric=self.function, filter_params=True, **parameters)
        return np.asarray(values)


@dataclass(frozen=True)
class Landmarks:
    """The documents that a kernel compares others with.

    Attributes
    ----------
    kernel : Kernel
        The kernel.
    rows : ndarray of int64, shape (n_landmarks,)
        Their rows in the training data.
    documents : ndarray or CSR of shape (n_landmarks, n_features), or None
        Their features; None for a precomputed kernel, where `rows` are columns of X.
    scale : ndarray of shape (n_features,), optional
        What features are divided by before the kernel sees them.
    """

    kernel: Kernel
    rows: Integers
    documents: Any
    scale: Floats | None = None

    @cached_property
    def center(self) -> Floats | None:
        """What is subtracted from features before the kernel sees them, or None.

        The squared distances of "rbf" are differences of squared norms, which large offsets would
        leave no digits of. The offsets themselves drop out of every distance.
        """
        if self.kernel.function != "rbf" or sp.issparse(self.documents):
            return None
        center: Floats = self.documents.mean(axis=0)
        return center

    @cached_property
    def seen(self) -> Any:
        """The documents as the kernel sees them."""
        return self._as_seen(self.documents)

    def _as_seen(self, X: Any) -> Any:
        """Return documents as the kernel sees them: centered and divided by the scale."""
        X = as_float64(X)
        if self.center is not None:
            X = (X.toarray() if sp.issparse(X) else X) - self.center
        return _divide(X, self.scale)

    def values(self, X: Any) -> NDArray[Any]:
        """Return the kernel of each row of X with each landmark."""
        if self.documents is None:
            columns = X[:, self.rows]
            values: NDArray[Any] = columns.toarray() if sp.issparse(columns) else columns
        else:
            with np.errstate(over="ignore", invalid="ignore"):  # said better below
                values = self.kernel(self._as_seen(X), self.seen)
        if not np.isfinite(values).all():
            raise ValueError(
                "the kernel is NaN or infinity for some documents; scale the features or change "
                "gamma, degree or coef0."
            )
        return values

    def product(
        self, X: Any, B: Floats, threads: int, dtype: DTypeLike = np.float64
    ) -> NDArray[Any]:
        """Return K B, where K is the kernel of X with the landmarks, in blocks of a few rows.

        The blocks do not depend on the number of threads, so neither does the result.
        """
        out = np.empty((X.shape[0], *B.shape[1:]), dtype)
        step = max(1, BLOCK_BYTES // (8 * self.rows.size))

        def fill(first: int) -> None:
            rows = slice(first, first + step)
            with serial_blas():  # here, because some libraries are limited thread by thread
                out[rows] = self.values(X[rows]) @ B

        with _workers(threads) as each:
            for _ in each(fill, range(0, X.shape[0], step)):
                pass
        return out


def _divide(X: Any, scale: Floats | None) -> Any:
    """Return some documents with features divided by the scale."""
    if scale is None:
        return X
    if not sp.issparse(X):
        return X / scale
    divided = X.copy()
    divided.data /= scale[divided.indices]
    return divided


def as_float64(X: Any) -> Any:
    """Return X in double precision, not copied if it is."""
    return X.astype(np.float64, copy=False)


@contextmanager
def _workers(threads: int) -> Iterator[Callable[..., Any]]:
    """Yield a map that works in threads."""
    if threads == 1:
        yield map
        return
    with ThreadPoolExecutor(threads) as pool:
        yield pool.map
