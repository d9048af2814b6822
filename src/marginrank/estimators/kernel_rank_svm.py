"""KernelRankSVM: RankSVM in the feature space of a kernel."""

from __future__ import annotations

import os
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from marginrank._utils.parameters import declared
from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats
from marginrank.data.validation import check_finite
from marginrank.estimators.base import BaseRanker, check_seed, finish
from marginrank.estimators.input import (
    documents_to_score,
    feature_names_of,
    features_of,
    remember_columns,
    set_features,
    training_data,
)
from marginrank.estimators.rank_svm import RankSVM
from marginrank.fit.kernel import fit_kernel
from marginrank.fit.linear import Parameters
from marginrank.models import kernel_model
from marginrank.models.fit_report import print_iteration, report_of
from marginrank.models.kernel_model import KernelModel
from marginrank.models.kernels import AUTO, PRECOMPUTED, Kernel, Landmarks
from marginrank.models.linear_model import LinearModel
from marginrank.models.parameters import LinearDeclaration


class KernelRankSVM(BaseRanker):
    """RankSVM with a kernel: a non-linear ranking function.

    Minimises ½‖f‖² + C · Σ ℓ(f(x_i) − f(x_j)) over the pairs, where f lies in the space of
    functions f(x) = Σ_i β_i k(x, x_i) that the kernel k spans, with its norm. Documents are mapped
    to vectors ψ(x) with ψ(x)ᵀψ(z) = k(x, z), the kernel PCA map, and a linear
    :class:`~marginrank.RankSVM` learns from these (Chapelle and Keerthi, 2010, section 6.3).

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        "linear", "poly", "rbf", "laplacian", "sigmoid", "cosine", "chi2" or any other name that
        ``sklearn.metrics.pairwise.pairwise_kernels`` takes; a function of two matrices that returns
        the kernel of each row of the first with each row of the second; or "precomputed", where X
        holds kernel values: all training documents with each other in `fit`, and in `predict` the
        documents (rows) with those of the training (columns).
    gamma : float, None or "auto", default="auto"
        Parameter of "rbf", exp(−γ‖x − z‖²), "laplacian", "poly", "sigmoid" and "chi2". None means
        1 / n_features, or 1 for "chi2"; "auto" is 0.1 / n_features for "rbf", and None for others.
    degree, coef0 : float, default=3 and 1
        "poly" is (γ xᵀz + coef0)^degree, "sigmoid" is tanh(γ xᵀz + coef0).
    n_components : int, default=None
        Number of landmarks: training documents, drawn at random, that the others are compared with
        (Nyström's approximation). None means all documents if there are at most 3,000, which makes
        the map exact, and 1,000 landmarks otherwise.
    C : float, default=100.0
        Weight of the loss, as in :class:`~marginrank.RankSVM`.
    normalization : {"none", "pairs", "query"}, default="query"
        As in :class:`~marginrank.RankSVM`; with "query", a C means the same for any amount of data.
    lam, objective, loss, solver, tol, max_iter, pair_selection, pair_cost, margin, verbose
        As in :class:`~marginrank.RankSVM`.
    scale : None, {"auto", "standard", "range", "query"} or array-like, default="auto"
        What features are divided by before the kernel sees them, as in
        :class:`~marginrank.RankSVM`. For kernels of differences, "rbf" and "laplacian", "standard"
        is the same as StandardScaler first. Other kernels see the offsets of features. A
        precomputed kernel has no features to divide: "auto" is None for it, and "standard" for
        others.
    n_jobs : int, default=None
        Number of threads; None and −1 mean all. The result does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Seed of the landmarks, and of the samples of "newton".

    Attributes
    ----------
    linear_ : RankSVM
        The linear model of the mapped documents.
    dual_coef_ : ndarray of shape (n_landmarks,)
        The weights β of the landmarks.
    landmarks_ : ndarray or CSR of shape (n_landmarks, n_features), or None
        The landmarks, with features as they are; None if the kernel is precomputed.
    landmark_rows_ : ndarray of int64, shape (n_landmarks,)
        Rows of the landmarks in the training data.
    gamma_ : float or None
        The gamma that was used.
    scale_ : ndarray of shape (n_features,), or None
        What features are divided by.
    objective_, gap_, stop_reason_, n_iter_, history_, n_pairs_
        As in :class:`~marginrank.RankSVM`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the columns of X, or the RankingData, have names that are strings.

    Notes
    -----
    The kernel need not be centred: centring moves all ψ(x) by one vector, which drops out of every
    difference ψ(x_i) − ψ(x_j).

    A kernel that is no inner product on the documents ("sigmoid" often is none) has negative
    eigenvalues. They are dropped with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> from marginrank import KernelRankSVM, RankSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = -np.hypot(*X.T)  # the nearer to the origin, the better: no line ranks that
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
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.C = C
        self.lam = lam
        self.objective = objective
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.pair_selection = pair_selection
        self.pair_cost = pair_cost
        self.margin = margin
        self.normalization = normalization
        self.scale = scale
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

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
        """Learn the weights of the landmarks.

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
        remember_columns(self, y, qid, sample_weight, query_weight)
        data = training_data(X, y, qid, group, sample_weight, query_weight, n_jobs=self.n_jobs)
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
        set_features(self, features_of(data))
        self._set_model(model)
        self.linear_ = RankSVM.from_linear_model(linear[0])
        finish(report_of(model), self.tol, None)
        return self

    def _kernel(self) -> Kernel:
        kernel = Kernel(self.kernel, self.gamma, self.degree, self.coef0)
        kernel.check()
        return kernel

    def _scale(self) -> Any:
        """Return the scale, or the one that "auto" stands for."""
        if isinstance(self.scale, str) and self.scale == AUTO:
            return None if self.kernel == PRECOMPUTED else "standard"
        return self.scale

    def _fitted_kernel(self) -> Kernel:
        """Return the kernel of the fit."""
        return self._kernel().with_gamma(self.n_features_in_)

    def _parameters(self) -> Parameters:
        """Return the parameters of the linear fit behind the kernel."""
        own = {name: getattr(self, name) for name in declared(LinearDeclaration)}
        return Parameters(**own | {"scale": self._scale()})

    def _set_model(self, model: KernelModel) -> None:
        self.dual_coef_ = model.dual_coef
        self.landmarks_ = model.landmarks
        self.landmark_rows_ = model.landmark_rows
        self.scale_ = model.scale
        self.gamma_ = model.parameters["gamma"]
        self._set_report(model.report)

    def predict(self, X: Any) -> Floats:
        """Return the scores f(x); a higher score ranks higher.

        Documents are taken some at a time, so that the memory needed does not grow with their
        number.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or RankingData
            The documents, or their kernel values if `kernel` is "precomputed".

        Returns
        -------
        ndarray of shape (n_documents,)
        """
        check_is_fitted(self)
        X_checked, matrix = documents_to_score(self, X)
        threads = effective_threads(self.n_jobs)
        check_finite(X_checked, matrix, threads)
        landmarks = Landmarks(
            self._fitted_kernel(), self.landmark_rows_, self.landmarks_, self.scale_
        )
        return landmarks.product(X_checked, self.dual_coef_, threads)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, which :func:`marginrank.load_model` reads.

        Parameters
        ----------
        path : str or path
            The file, NumPy's .npz with the landmarks, their weights and the parameters; it appears
            only when it is complete. A kernel that is a Python function cannot be saved.
        """
        kernel_model.write(self._plain_model(), path)

    def _plain_model(self) -> KernelModel:
        """Return what is saved and exported."""
        check_is_fitted(self)
        self._parameters()
        settled = {"gamma": self._fitted_kernel().gamma, "scale": self._scale()}
        return KernelModel(
            parameters=self.get_params(deep=False) | settled,
            dual_coef=self.dual_coef_,
            landmark_rows=self.landmark_rows_,
            landmarks=self.landmarks_,
            scale=self.scale_,
            n_features=self.n_features_in_,
            feature_names=feature_names_of(self),
            report=self._report(),
        )

    @classmethod
    def from_kernel_model(cls, model: KernelModel) -> Self:
        """Return a fitted estimator that predicts what the saved one did.

        It has no `linear_` and no `history_`: predictions need neither.
        """
        self = cls(**model.parameters)
        set_features(self, features_of(model))
        self._set_model(model)
        self.gamma_ = self._fitted_kernel().gamma
        return self

    def __sklearn_tags__(self) -> Tags:
        """Describe the estimator to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == PRECOMPUTED
        return tags
