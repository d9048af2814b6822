"""Kernel functions, computed by scikit-learn, and weighted sums of kernel values."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from marginrank._utils.parameters import check_choice, check_number
from marginrank._utils.threads import cached_property, serial_blas
from marginrank._utils.types import Floats, Integers

BLOCK_BYTES = 2**24  # memory of the kernel values that a thread computes at a time
PRECOMPUTED = "precomputed"
AUTO = "auto"
AUTO_GAMMA = 0.1  # gamma="auto" of "rbf" is this number divided by the number of features


@dataclass(frozen=True)
class Kernel:
    """A kernel function with its parameters, as described in :class:`~marginrank.KernelRankSVM`."""

    function: str | Callable[[Any, Any], Any]
    gamma: float | str | None = None
    degree: float = 3
    coef0: float = 1

    def check(self) -> None:
        """Raise ParameterError if a parameter of the kernel is invalid."""
        if not callable(self.function):
            check_choice("kernel", self.function, [*sorted(PAIRWISE_KERNEL_FUNCTIONS), PRECOMPUTED])
        if self.gamma is not None and self.gamma != AUTO:
            check_number("gamma", self.gamma)
        check_number("degree", self.degree)
        check_number("coef0", self.coef0, above=-math.inf)

    def with_gamma(self, n_features: int) -> "Kernel":
        """Return the kernel with gamma="auto" replaced by its value for `n_features` features."""
        if self.gamma != AUTO:
            return self
        return replace(self, gamma=AUTO_GAMMA / n_features if self.function == "rbf" else None)

    def __call__(self, X: Any, Z: Any) -> NDArray[Any]:
        """Return the matrix of kernel values k(x, z), for each row x of X and each row z of Z."""
        if callable(self.function):
            values = np.asarray(self.function(X, Z))
            if values.shape != (X.shape[0], Z.shape[0]):
                raise ValueError(
                    f"kernel returned shape {values.shape} for matrices of {X.shape[0]} and "
                    f"{Z.shape[0]} rows; it must return one value per pair of rows."
                )
            return values
        parameters: dict[str, Any] = {"degree": self.degree, "coef0": self.coef0}
        if self.gamma is not None:
            parameters["gamma"] = self.gamma
        values = pairwise_kernels(X, Z, metric=self.function, filter_params=True, **parameters)
        return np.asarray(values)


@dataclass(frozen=True)
class Landmarks:
    """The training documents z_i (landmarks) in a kernel model's score, Σ_i β_i k(x, z_i)."""

    kernel: Kernel
    rows: Integers  # row numbers of the landmarks in the training data
    documents: Any  # dense or CSR; None for a precomputed kernel, where rows are columns of X
    scale: Floats | None = None  # divisors of the features, applied before the kernel

    @cached_property
    def center(self) -> Floats | None:
        """Mean of the landmark documents, subtracted before kernels are computed, or None."""
        # The squared distances of "rbf" are differences of squared norms, in which large offsets
        # would cancel all digits. A common offset does not change any distance.
        if self.kernel.function != "rbf" or sp.issparse(self.documents):
            return None
        center: Floats = self.documents.mean(axis=0)
        return center

    @cached_property
    def seen(self) -> Any:
        """The landmark documents as passed to the kernel: centered and divided by `scale`."""
        return self._as_seen(self.documents)

    def _as_seen(self, X: Any) -> Any:
        X = as_float64(X)
        if self.center is not None:
            X = (X.toarray() if sp.issparse(X) else X) - self.center
        if self.scale is None:
            return X
        if not sp.issparse(X):
            return X / self.scale
        divided = X.copy()
        divided.data /= self.scale[divided.indices]
        return divided

    def values(self, X: Any) -> NDArray[Any]:
        """Return the kernel of each document in X (row) with each landmark document (column)."""
        if self.documents is None:
            columns = X[:, self.rows]
            values: NDArray[Any] = columns.toarray() if sp.issparse(columns) else columns
        else:
            with np.errstate(over="ignore", invalid="ignore"):  # an overflow is reported below
                values = self.kernel(self._as_seen(X), self.seen)
        if not np.isfinite(values).all():
            raise ValueError(
                "the kernel is NaN or infinite for some documents; scale the features or change "
                "gamma, degree or coef0."
            )
        return values

    def product(
        self, X: Any, B: Floats, threads: int, dtype: DTypeLike = np.float64
    ) -> NDArray[Any]:
        """Return K B, with the kernel matrix K of the documents X and the landmark documents.

        K is computed in blocks of rows that do not depend on the number of threads, so neither do
        the rounding errors.
        """
        out = np.empty((X.shape[0], *B.shape[1:]), dtype)
        step = max(1, BLOCK_BYTES // (8 * self.rows.size))

        def fill(first: int) -> None:
            rows = slice(first, first + step)
            with serial_blas():  # set in each thread, because some limits hold per thread
                out[rows] = self.values(X[rows]) @ B

        starts = range(0, X.shape[0], step)
        if threads == 1:
            for first in starts:
                fill(first)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(fill, starts))
        return out


def as_float64(X: Any) -> Any:
    """Return X as float64, without a copy if it has this type already."""
    return X.astype(np.float64, copy=False)
