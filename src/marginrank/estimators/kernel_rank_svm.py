"""KernelRankSVM, the ranking SVM with a kernel, for non-linear ranking functions."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.utils import Tags

from marginrank._utils.parameters import declared
from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats
from marginrank.data.validation import check_finite
from marginrank.estimators.base import BaseRanker, check_seed
from marginrank.estimators.input import documents_to_score, feature_names_of, features_of
from marginrank.estimators.rank_svm import RankSVM
from marginrank.fit.kernel import fit_kernel
from marginrank.fit.linear import Parameters
from marginrank.models.fit_report import print_iteration
from marginrank.models.kernel_model import KernelModel
from marginrank.models.kernels import AUTO, PRECOMPUTED, Kernel, Landmarks
from marginrank.models.linear_model import LinearModel
from marginrank.models.parameters import LinearDeclaration


class KernelRankSVM(BaseRanker):
    """Ranking SVM with a kernel: learns a non-linear ranking function.

    Minimizes ½‖f‖² + C · Σ ℓ(f(x_i) − f(x_j)) with a loss ℓ, summed over the pairs (i, j) of
    documents of one query with labels y_i > y_j. The score f(x) = Σ_i β_i k(x, x_i) lies in the
    reproducing kernel Hilbert space of the kernel k. Documents are mapped to vectors ψ(x) with
    ψ(x)ᵀψ(z) = k(x, z), the kernel PCA map, and a linear :class:`~marginrank.RankSVM` is fitted to
    these (Chapelle and Keerthi, 2010, section 6.3).

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        "linear", "poly", "rbf", "laplacian", "sigmoid", "cosine", "chi2" or any other name that
        ``sklearn.metrics.pairwise.pairwise_kernels`` takes; a function of two matrices that returns
        the kernel of each row of the first with each row of the second; or "precomputed". Then X
        holds kernel values: in `fit` between all training documents, in `predict` between the
        documents (rows) and the training documents (columns).
    gamma : float, None or "auto", default="auto"
        Parameter of "rbf", exp(−γ‖x − z‖²), "laplacian", "poly", "sigmoid" and "chi2". None means
        1 / n_features, or 1 for "chi2"; "auto" is 0.1 / n_features for "rbf", and None for others.
    degree, coef0 : float, default=3 and 1
        "poly" is (γ xᵀz + coef0)^degree, "sigmoid" is tanh(γ xᵀz + coef0).
    n_components : int, default=None
        Number of landmarks: random training documents with which others are compared (Nyström's
        approximation). None means all documents if there are at most 3,000, which makes the map
        exact, and 1,000 landmarks otherwise.
    C : float, default=100.0
        Weight of the loss, as in :class:`~marginrank.RankSVM`.
    normalization : {"none", "pairs", "query"}, default="query"
        As in :class:`~marginrank.RankSVM`; with "query", the meaning of C does not depend on the
        amount of data.
    lam, objective, loss, solver, tol, max_iter, pair_selection, pair_cost, margin, n_jobs, verbose
        As in :class:`~marginrank.RankSVM`.
    scale : None, {"auto", "standard", "range", "query"} or array-like, default="auto"
        Divisors of the features before the kernel is computed, as in
        :class:`~marginrank.RankSVM`. Features are not centered, which makes no difference to "rbf"
        and "laplacian". "auto" is None for a precomputed kernel, and "standard" for others.
    device : None, "cpu", "cuda" or "cuda:1", default=None
        Device of the linear fit, as in :class:`~marginrank.RankSVM`; kernels and their
        eigenvectors are computed on the host. The device is not saved with the model.
    random_state : int, RandomState instance or None, default=0
        Seed for drawing the landmarks, and the document samples that speed up the solver "newton".

    Attributes
    ----------
    linear_ : RankSVM
        The linear model of the mapped documents.
    dual_coef_ : ndarray of shape (n_landmarks,)
        The weights β of the landmarks.
    landmarks_ : ndarray or CSR of shape (n_landmarks, n_features), or None
        The unscaled landmarks; None if the kernel is precomputed.
    landmark_rows_ : ndarray of int64, shape (n_landmarks,)
        Rows of the landmarks in the training data.
    gamma_ : float or None
        The value of gamma in the kernel, also if the parameter is None or "auto".
    scale_ : ndarray of shape (n_features,), or None
        Divisors of the features.
    objective_, gap_, stop_reason_, n_iter_, history_, n_pairs_, support_pairs_, \
n_features_in_, feature_names_in_
        As in :class:`~marginrank.RankSVM`.

    Notes
    -----
    The kernel need not be centered: centering moves all ψ(x) by one vector, which cancels in every
    difference ψ(x_i) − ψ(x_j).

    A kernel that is not positive semidefinite on the documents (such as "sigmoid") has negative
    eigenvalues. They are dropped with a warning.

    References
    ----------
    O. Chapelle and S. S. Keerthi (2010). Efficient algorithms for ranking with SVMs. Information
    Retrieval 13(3).

    Examples
    --------
    >>> import numpy as np
    >>> from marginrank import KernelRankSVM, RankSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = -np.hypot(*X.T)  # documents near the origin are best: not linear
    >>> round(RankSVM().fit(X, y).score(X, y), 1)
    0.5
    >>> KernelRankSVM().fit(X, y).score(X, y) > 0.98
    True
    """

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        gamma: float | str | None = AUTO,
        degree: float = 3,
        coef0: float = 1,
        n_components: int | None = None,
        C: float = 100.0,
        lam: float | None = None,
        objective: str = "pairs",
        loss: str = "squared_hinge",
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        pair_selection: str = "all",
        pair_cost: Any = None,
        margin: Any = "unit",
        normalization: str = "query",
        scale: Any = AUTO,
        device: str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        """Store the arguments as attributes; see :class:`KeywordArguments`."""

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the weights of the landmarks, which are training documents, in the score of others.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or RankingData
            The documents, or the square kernel matrix if `kernel` is "precomputed".
        y, qid, group, sample_weight, query_weight
            As in :meth:`RankSVM.fit`.

        Returns
        -------
        KernelRankSVM
            The fitted estimator.
        """
        kernel, parameters = self._kernel(), self._parameters()
        seed = check_seed(self.random_state)
        weights = {"sample_weight": sample_weight, "query_weight": query_weight}
        data = self._data(X, y=y, qid=qid, group=group, **weights)
        linear: list[LinearModel] = []
        model = fit_kernel(
            data,
            kernel,
            parameters,
            n_components=self.n_components,
            seed=seed,
            callback=print_iteration if self.verbose else None,
            on_linear=linear.append,
        )
        self.linear_ = RankSVM.from_linear_model(linear[0])
        self._take_over(model, features_of(data))
        return self

    def _kernel(self) -> Kernel:
        kernel = Kernel(self.kernel, self.gamma, self.degree, self.coef0)
        kernel.check()
        return kernel

    def _scale(self) -> Any:
        if isinstance(self.scale, str) and self.scale == AUTO:
            return None if self.kernel == PRECOMPUTED else "standard"
        return self.scale

    def _fitted_kernel(self) -> Kernel:
        return self._kernel().with_gamma(self.n_features_in_)

    def _parameters(self) -> Parameters:
        """Return the parameters of the linear fit to the mapped documents."""
        own = {name: getattr(self, name) for name in declared(LinearDeclaration)}
        return Parameters(**own | {"scale": self._scale(), "device": self.device})

    def _set_model(self, model: KernelModel) -> None:
        self.dual_coef_ = model.dual_coef
        self.landmarks_ = model.landmarks
        self.landmark_rows_ = model.landmark_rows
        self.scale_ = model.scale
        self.gamma_ = self._fitted_kernel().gamma
        self._set_report(model.report)

    def _scores(self, X: Any) -> Floats:
        X_checked, matrix = documents_to_score(self, X)
        threads = effective_threads(self.n_jobs)
        check_finite(X_checked, matrix, threads)
        landmarks = Landmarks(
            self._fitted_kernel(), self.landmark_rows_, self.landmarks_, self.scale_
        )
        return landmarks.product(X_checked, self.dual_coef_, threads)

    def to_kernel_model(self) -> KernelModel:
        """Return the fitted model as plain data, as stored in model files."""
        self._require_model()
        self._parameters()  # raises an error if set_params has set an invalid value
        settled = {"gamma": self._fitted_kernel().gamma, "scale": self._scale()}
        parameters = self.get_params(deep=False) | settled
        del parameters["device"]  # not a parameter of a model
        return KernelModel(
            parameters=parameters,
            dual_coef=self.dual_coef_,
            landmark_rows=self.landmark_rows_,
            landmarks=self.landmarks_,
            scale=self.scale_,
            n_features=self.n_features_in_,
            feature_names=feature_names_of(self),
            report=self._report(),
        )

    def _plain_model(self) -> KernelModel:
        return self.to_kernel_model()

    @classmethod
    def from_kernel_model(cls, model: KernelModel) -> Self:
        """Return a fitted estimator that predicts the same scores as `model`, without `linear_`."""
        return cls._from_model(model)

    def __sklearn_tags__(self) -> Tags:
        """Return the tags for scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == PRECOMPUTED
        return tags
