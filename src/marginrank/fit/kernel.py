"""Fits of kernel models: map documents by kernel PCA, then fit a linear model to the result.

The map ψ is defined in section 6.3 of Chapelle and Keerthi (2010). A few training documents z_1 …
z_m are landmarks. With the eigendecomposition K = UΛUᵀ of their kernel matrix and A = UΛ^(−1/2),

    ψ(x) = Aᵀ k(x),   k(x) = (k(x, z_1), …, k(x, z_m)).

Then ψ(x)ᵀψ(x′) = k(x, x′) if x or x′ is in the span of the landmarks. If all training documents are
landmarks, the map is exact; if they are a sample, it is Nyström's approximation.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from marginrank._utils.parameters import Mention, ParameterError, check_integer
from marginrank._utils.threads import effective_threads, serial_blas
from marginrank._utils.types import Floats
from marginrank._utils.user_warnings import warn_caller
from marginrank.data.ranking_data import RankingData
from marginrank.fit.linear import Parameters, fit_linear
from marginrank.fit.positions import check_no_positions
from marginrank.fit.scaling import find_scale, values_of
from marginrank.models.kernel_model import KernelModel
from marginrank.models.kernels import PRECOMPUTED, Kernel, Landmarks, as_float64
from marginrank.models.linear_model import LinearModel
from marginrank.models.parameters import no_scale, recorded_parameters
from marginrank.solvers.result import Callback

EXACT_DOCUMENTS = 3000  # computing this many eigenvectors takes seconds; the time grows cubically
DEFAULT_LANDMARKS = 1000  # "newton" uses the Hessian of the mapped data up to this many dimensions
ASYMMETRY = 1e-5  # relative asymmetry that float32 rounding can cause
NEGATIVE = 1e-6  # relative size above which a negative eigenvalue is not a rounding error


def fit_kernel(
    data: RankingData,
    kernel: Kernel,
    parameters: Parameters,
    *,
    n_components: int | None = None,
    seed: int = 0,
    callback: Callback | None = None,
    on_linear: Callable[[LinearModel], None] | None = None,
) -> KernelModel:
    """Fit a kernel ranking model: map documents by kernel PCA, then fit a linear model.

    Features are divided by their scale before the kernel is computed. `n_components` is the number
    of landmarks (see :func:`choose_landmarks`). `on_linear` is called with the linear model of the
    mapped documents. The other arguments are as in :func:`~marginrank.fit.linear.fit_linear`.
    """
    if kernel.function == PRECOMPUTED and not no_scale(parameters.scale):
        raise ParameterError(
            Mention("scale"),
            " cannot be combined with a precomputed kernel; scale the features before computing "
            "the kernel.",
        )
    check_no_positions(data, "KernelRankSVM")
    kernel = kernel.with_gamma(data.n_features)
    scale = values_of(find_scale(data, parameters.scale))
    landmarks = choose_landmarks(kernel, data.X, n_components, seed, scale)
    map = KernelMap.of(landmarks, data.X)
    features = map.features(data.X, effective_threads(parameters.n_jobs))
    mapped = data.with_features(features, n_jobs=parameters.n_jobs)
    linear = fit_linear(mapped, replace(parameters, scale=None), seed=seed, callback=callback)
    own = recorded_parameters("KernelRankSVM", parameters)
    own |= {"kernel": kernel.function, "gamma": kernel.gamma, "degree": kernel.degree}
    own |= {"coef0": kernel.coef0, "n_components": n_components}
    del own["device"]
    if on_linear is not None:
        on_linear(linear)
    return KernelModel(
        parameters=dict(sorted(own.items())),
        dual_coef=map.expansion(linear.coef),
        landmark_rows=landmarks.rows,
        landmarks=landmarks.documents,
        n_features=data.n_features,
        feature_names=data.feature_names,
        report=linear.report,
        scale=scale,
    )


def choose_landmarks(
    kernel: Kernel, X: Any, n_components: int | None, seed: int, scale: Floats | None = None
) -> Landmarks:
    """Return the training documents (landmarks) with which a kernel model compares documents.

    They are all documents if these are few, else a random sample of `n_components` documents. None
    means a default number.
    """
    n = X.shape[0]
    if n_components is None:
        n_components = n if n <= EXACT_DOCUMENTS else DEFAULT_LANDMARKS
    check_integer("n_components", n_components, at_least=1)
    if kernel.function == PRECOMPUTED and X.shape[1] != n:
        raise ValueError(
            f"X has shape {X.shape}, but kernel='precomputed' requires a square matrix: the kernel "
            "of all pairs of documents."
        )
    rows = np.arange(n)
    if n_components < n:
        rows = np.sort(np.random.RandomState(seed).permutation(n)[:n_components])
    documents = None if kernel.function == PRECOMPUTED else as_float64(X[rows])
    return Landmarks(kernel, rows.astype(np.int64), documents, scale)


@dataclass(frozen=True)
class KernelMap:
    """The kernel PCA map ψ, with ψ(x)ᵀψ(z) = k(x, z), for given landmarks (training documents).

    Examples
    --------
    >>> import numpy as np
    >>> from marginrank.fit.kernel import KernelMap, choose_landmarks
    >>> from marginrank.models.kernels import Kernel
    >>> X = np.array([[0.0], [1.0], [2.0], [2.0]])
    >>> landmarks = choose_landmarks(Kernel("poly", degree=2), X, None, seed=0)
    >>> psi = KernelMap.of(landmarks, X).features(X, threads=1)
    >>> psi.shape  # x², x and 1 span the kernel (xz + 1)²
    (4, 3)
    >>> np.round(psi @ psi.T)[:2]
    array([[1., 1., 1., 1.],
           [1., 4., 9., 9.]])
    """

    landmarks: Landmarks
    vectors: Floats  # (n_landmarks, n_dimensions): eigenvectors U of their kernel matrix
    roots: Floats  # square roots Λ^½ of the eigenvalues, all positive

    @classmethod
    def of(cls, landmarks: Landmarks, X: Any) -> "KernelMap":
        """Return the kernel PCA map ψ for landmarks, which are training documents (rows of X)."""
        with serial_blas():
            values, vectors = _positive_part(landmarks.values(X[landmarks.rows]))
        return cls(landmarks, vectors, np.sqrt(values))

    def features(self, X: Any, threads: int) -> NDArray[Any]:
        """Return the kernel PCA features ψ(x) of each training document, in the dtype of X."""
        if self.landmarks.rows.size == X.shape[0]:
            # For landmarks ψ is a row of U Λ^½.
            return (self.vectors * self.roots).astype(X.dtype, copy=False)
        return self.landmarks.product(X, self.vectors / self.roots, threads, X.dtype)

    def expansion(self, w: Floats) -> Floats:
        """Return the weights β of a kernel model's score for weights w of kernel PCA features ψ(x).

        The score is wᵀψ(x) = Σ β_i k(x, z_i), with the landmarks (training documents) z_i.
        """
        with serial_blas():
            beta: Floats = (self.vectors / self.roots) @ w
        return beta


def _positive_part(K: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return the positive eigenvalues of K and their eigenvectors; warn if some are negative."""
    values, vectors = eigh(_symmetric(K), driver="evd", overwrite_a=True, check_finite=False)
    largest = values[-1]
    rounding = largest * values.size * np.finfo(K.dtype).eps
    keep = values > max(rounding, 0.0)
    if not keep.any():
        raise ValueError(
            "the kernel matrix has no positive eigenvalue; check X, or use another kernel."
        )
    below = values < -max(rounding, NEGATIVE * largest)
    if below.any():
        warn_caller(
            f"The kernel is not positive semidefinite: {np.count_nonzero(below)} of {values.size} "
            f"eigenvalues are negative, down to {values[0] / largest:.1e} of the largest. They are "
            "dropped; use another kernel or other kernel parameters."
        )
    return values[keep], vectors[:, keep]


def _symmetric(K: NDArray[Any]) -> Floats:
    """Return (K + Kᵀ) / 2 in float64; raise ValueError if K is not symmetric up to rounding."""
    K = K.astype(np.float64, order="F")
    apart = np.abs(K - K.T)
    i, j = np.unravel_index(apart.argmax(), K.shape)
    if apart[i, j] > ASYMMETRY * np.abs(K).max():
        raise ValueError(
            f"the kernel is not symmetric: k(x, z) = {K[i, j]:g} but k(z, x) = {K[j, i]:g} for "
            f"documents {min(i, j)} and {max(i, j)}; use a symmetric kernel."
        )
    K += K.T.copy()
    K /= 2
    return K
