"""Kernels, and the kernel PCA map: vectors whose inner products are the values of a kernel.

The map ψ of Chapelle and Keerthi (2010), section 6.3. With K = UΛUᵀ the kernel matrix of some
landmarks z_1 … z_m and A = UΛ^(−1/2),

    ψ(x) = Aᵀ k(x),   k(x) = (k(x, z_1), …, k(x, z_m)),

so that ψ(x)ᵀψ(x′) = k(x, x′) wherever x or x′ is spanned by the landmarks. If they are all training
documents, the map is exact; if they are a sample, it is Nyström's approximation.
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
from scipy.linalg import eigh
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from marginrank._utils.cached import cached_property
from marginrank._utils.parameters import (
    Mention,
    ParameterError,
    check_choice,
    check_integer,
    check_number,
)
from marginrank._utils.threads import serial_blas
from marginrank._utils.types import Floats, Integers
from marginrank._utils.user_warnings import warn_caller
from marginrank.models.parameters import no_scale

EXACT_DOCUMENTS = 3000  # the eigenvectors of so many take seconds; the time grows with the cube
DEFAULT_LANDMARKS = 1000  # few enough for "newton" to work with the Hessian of the mapped data
BLOCK_BYTES = 2**24  # of kernel values that a thread holds at a time
ASYMMETRY = 1e-5  # relative; more is no rounding error, not even of float32
NEGATIVE = 1e-6  # likewise for an eigenvalue below zero

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
        """Refuse a wrong value by its name."""
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

    def refuse_scale(self, scale: Any) -> None:
        """Refuse a scale of features where there are none."""
        if self.function == PRECOMPUTED and not no_scale(scale):
            raise ParameterError(
                Mention("scale"),
                " is for features, and a precomputed kernel has none; scale them before the kernel "
                "is computed.",
            )

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

    @classmethod
    def choose(
        cls,
        kernel: Kernel,
        X: Any,
        n_components: int | None,
        seed: int,
        scale: Floats | None = None,
    ) -> "Landmarks":
        """Take all documents if they are few, else a sample of `n_components`."""
        n = X.shape[0]
        if n_components is None:
            n_components = n if n <= EXACT_DOCUMENTS else DEFAULT_LANDMARKS
        check_integer("n_components", n_components, at_least=1)
        if kernel.function == PRECOMPUTED and X.shape[1] != n:
            raise ValueError(
                f"X has shape {X.shape}, but kernel='precomputed' is fitted to a square matrix, "
                "the kernel of all documents with all documents."
            )
        rows = np.arange(n)
        if n_components < n:
            rows = np.sort(np.random.RandomState(seed).permutation(n)[:n_components])
        documents = None if kernel.function == PRECOMPUTED else _as_float64(X[rows])
        return cls(kernel, rows.astype(np.int64), documents, scale)

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
        X = _as_float64(X)
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


@dataclass(frozen=True)
class KernelMap:
    """The kernel PCA map of some landmarks.

    Attributes
    ----------
    landmarks : Landmarks
        What documents are compared with.
    vectors : ndarray of shape (n_landmarks, n_dimensions)
        Eigenvectors U of the landmarks' kernel matrix.
    roots : ndarray of shape (n_dimensions,)
        Square roots Λ^½ of the eigenvalues, all positive.

    Examples
    --------
    >>> import numpy as np
    >>> from marginrank.fit.kernel_map import Kernel, KernelMap, Landmarks
    >>> X = np.array([[0.0], [1.0], [2.0], [2.0]])
    >>> landmarks = Landmarks.choose(Kernel("poly", degree=2), X, None, seed=0)
    >>> psi = KernelMap.of(landmarks, X).features(X, threads=1)
    >>> psi.shape  # x², x and 1 span the kernel (xz + 1)²
    (4, 3)
    >>> np.round(psi @ psi.T)[:2]
    array([[1., 1., 1., 1.],
           [1., 4., 9., 9.]])
    """

    landmarks: Landmarks
    vectors: Floats
    roots: Floats

    @classmethod
    def of(cls, landmarks: Landmarks, X: Any) -> "KernelMap":
        """Make the map from the kernel of the landmarks, which are rows of X."""
        with serial_blas():
            values, vectors = _positive_part(landmarks.values(X[landmarks.rows]))
        return cls(landmarks, vectors, np.sqrt(values))

    def features(self, X: Any, threads: int) -> NDArray[Any]:
        """Return ψ of each document of the training data X, with the precision of X."""
        if self.landmarks.rows.size == X.shape[0]:
            return (self.vectors * self.roots).astype(X.dtype, copy=False)  # K is not needed
        return self.landmarks.product(X, self.vectors / self.roots, threads, X.dtype)

    def expansion(self, w: Floats) -> Floats:
        """Return β with wᵀψ(x) = Σ β_i k(x, z_i)."""
        with serial_blas():
            beta: Floats = (self.vectors / self.roots) @ w
        return beta


def _positive_part(K: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return the eigenvalues of K above zero and their vectors; warn if there are any below."""
    values, vectors = eigh(_symmetric(K), driver="evd", overwrite_a=True, check_finite=False)
    largest = values[-1]
    rounding = largest * values.size * np.finfo(K.dtype).eps
    keep = values > max(rounding, 0.0)
    if not keep.any():
        raise ValueError(
            "the kernel matrix has no positive eigenvalue, so that there is nothing to learn from; "
            "check X, or take another kernel."
        )
    below = values < -max(rounding, NEGATIVE * largest)
    if below.any():
        warn_caller(
            f"the kernel is no inner product on these documents: {np.count_nonzero(below)} of "
            f"{values.size} eigenvalues are negative, down to {values[0] / largest:.1e} of the "
            "largest, and are dropped; take another kernel, or other parameters of it."
        )
    return values[keep], vectors[:, keep]


def _symmetric(K: NDArray[Any]) -> Floats:
    """Return K in float64, with rounding errors averaged out."""
    K = K.astype(np.float64, order="F")
    apart = np.abs(K - K.T)
    i, j = np.unravel_index(apart.argmax(), K.shape)
    if apart[i, j] > ASYMMETRY * np.abs(K).max():
        raise ValueError(
            f"the kernel is not symmetric: k(x, z) = {K[i, j]:g} but k(z, x) = {K[j, i]:g} for "
            f"documents {min(i, j)} and {max(i, j)}."
        )
    K += K.T.copy()
    K /= 2
    return K


def _divide(X: Any, scale: Floats | None) -> Any:
    """Return some documents with features divided by the scale."""
    if scale is None:
        return X
    if not sp.issparse(X):
        return X / scale
    divided = X.copy()
    divided.data /= scale[divided.indices]
    return divided


def _as_float64(X: Any) -> Any:
    return X.astype(np.float64, copy=False)


@contextmanager
def _workers(threads: int) -> Iterator[Callable[..., Any]]:
    """Yield a map that works in threads."""
    if threads == 1:
        yield map
        return
    with ThreadPoolExecutor(threads) as pool:
        yield pool.map
