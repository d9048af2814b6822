"""Base classes of the estimators: predict, rank, score, save, export and fitted attributes."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from marginrank._utils.parameters import Message
from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats, Integers
from marginrank._utils.user_warnings import warn_caller
from marginrank.data import RankingData
from marginrank.data.ranking_data import check_beside_data
from marginrank.data.validation import check_finite, from_device
from marginrank.estimators.input import (
    KeywordArguments,
    check_features_of_fit,
    check_tensor,
    documents_to_score,
    feature_names_of,
    features_of,
    is_tensor,
    labels_or_zeros,
    one_query_if_forgotten,
    pair_options,
    remember_columns,
    set_features,
    take_columns,
    training_data,
)
from marginrank.export.exporting import export_files, name_for, write_files
from marginrank.export.names import Names
from marginrank.export.sums import Model
from marginrank.fit.inputs import is_path, open_documents, scores_on_device
from marginrank.fit.scaling import effect_message
from marginrank.fit.stream_progress import StreamProgress, Watch
from marginrank.metrics import pairwise_accuracy
from marginrank.metrics.ranking import ranks
from marginrank.models import LinearModel, kernel_model, write_model
from marginrank.models.features import Reason
from marginrank.models.fit_report import (
    FitReport,
    StopReason,
    convergence_message,
    print_iteration,
    report_of,
)
from marginrank.models.kernel_model import KernelModel

# Fields of a FitReport that become attributes, with an underscore at the end.
REPORTED: tuple[str, ...] = ("objective", "gap", "stop_reason", "n_iter", "n_pairs", "history")
REPORTED += (
    "n_rounds",
    "C",
    "smoothness",
    "support_pairs",
    "position_effect",
    "contexts",
)  # these become attributes only if they are not None


class BaseRanker(KeywordArguments, BaseEstimator):
    """Base class of all ranking estimators, with ``rank``, ``score``, ``save`` and ``export``."""

    _parameters_type: ClassVar[Any]  # the dataclass with the parameters of its fits
    n_jobs: int | None

    # With metadata routing enabled, fit and score get `qid` without a set_fit_request by the user.
    __metadata_request__fit = {"qid": True}  # noqa: RUF012
    __metadata_request__score = {"qid": True}  # noqa: RUF012

    def predict(self, X: Any) -> Floats:
        """Return the score of each document; a higher score ranks higher.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or RankingData
            The documents, with the features of the fit.

        Returns
        -------
        ndarray of shape (n_documents,)
            The scores; a tensor on the device of X if a linear model scores a tensor on a GPU.
        """
        self._require_model()
        return self._scores(X)

    @abstractmethod
    def _scores(self, X: Any) -> Floats:
        """Return the scores of a fitted model."""

    def rank(
        self, X: Any, *, qid: ArrayLike | None = None, group: ArrayLike | None = None
    ) -> Integers:
        """Return the rank of each document within its query, 1 for the best.

        Documents with equal scores are ranked in row order.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or RankingData
            The documents.
        qid, group : array-like, optional
            Queries, as in :meth:`fit`.

        Returns
        -------
        ndarray of int64, shape (n_documents,)
            The ranks.
        """
        if isinstance(X, RankingData):
            check_beside_data(qid=qid, group=group)
            qid = X.qid
        X, values = take_columns(X, qid=qid)
        scores = from_device(self.predict(X))
        group = one_query_if_forgotten(self, scores.size, qid, group)
        return ranks(scores, qid=values["qid"], group=group, n_jobs=self.n_jobs)

    def score(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the pairwise accuracy of the scores that :meth:`predict` returns.

        Parameters
        ----------
        X, y, qid, group, sample_weight
            As in :meth:`fit`.

        Returns
        -------
        float
            Share of the pairs in the right order; see
            :func:`~marginrank.metrics.pairwise_accuracy`.
        """
        if isinstance(X, RankingData):
            check_beside_data(y=y, qid=qid, group=group, sample_weight=sample_weight)
            y, qid, sample_weight = X.y, X.qid, X.sample_weight
        X, values = take_columns(X, y=y, qid=qid, sample_weight=sample_weight)
        scores = from_device(self.predict(X))
        group = one_query_if_forgotten(self, scores.size, qid, group)
        return pairwise_accuracy(values.pop("y"), scores, **values, group=group, n_jobs=self.n_jobs)

    def explain(self, preferred: Any, other: Any) -> list[Reason]:
        """Return the contribution of each feature to the difference of two documents' scores.

        Parameters
        ----------
        preferred, other : array-like of shape (n_features,)
            The two documents: arrays, sparse rows, or rows of a data frame with the feature names
            of the fit.

        Returns
        -------
        list of Reason
            One per feature, the largest contribution first, with `feature`, `name`, the values
            `preferred` and `other`, and the `difference`. The differences sum to the difference of
            the scores.
        """
        return self._plain_model().explain(preferred, other)

    def export(
        self,
        path: str | os.PathLike[str],
        to: str,
        *,
        name: str | None = None,
        names: Names | None = None,
        offset: float = 0.0,
    ) -> list[str]:
        """Write the fitted model in the format of a search engine, a database or another language.

        Parameters
        ----------
        path : str or path
            The main file; other files that the target needs are written next to it.
        to : str
            The target, such as "elasticsearch", "sqlite" or "c"; ``marginrank export --help`` lists
            them.
        name : str, optional
            Name of the model in the target; by default the name of the file.
        names : list of str, or dict of str to str, optional
            A name for each feature, or other names for some of them. By default the names are
            ``feature_names_in_``, or f1, f2, ….
        offset : float, default=0.0
            Constant added to every score, for engines that do not accept negative scores.

        Returns
        -------
        list of str
            The paths of the files.
        """
        model: Model = self._plain_model()
        files = export_files(model, to, name=name or name_for(path), names=names, offset=offset)
        return write_files(path, files)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, which :func:`marginrank.load_model` reads.

        Parameters
        ----------
        path : str or path
            The file, JSON for an additive model and NumPy's .npz for a kernel model; it is written
            atomically. A kernel that is a Python function cannot be saved.
        """
        model: Any = self._plain_model()
        write = kernel_model.write if isinstance(model, KernelModel) else write_model
        write(model, path)

    @abstractmethod
    def _plain_model(self) -> Model:
        """Return the model record that is saved, exported and explained."""

    @abstractmethod
    def _set_model(self, model: Any) -> None:
        """Set the fitted attributes, except the features, from a model record."""

    def _parameters(self) -> Any:
        names = [field.name for field in fields(self._parameters_type)]
        return self._parameters_type(**{name: getattr(self, name) for name in names})

    def _require_model(self) -> None:
        check_is_fitted(self)

    def _data(self, X: Any, **given: Any) -> RankingData:
        """Return the arguments of a fit as RankingData, checked and grouped by query."""
        remember_columns(self, *given.values())
        return training_data(X, **given, n_jobs=self.n_jobs)

    @classmethod
    def _from_model(cls, model: Any) -> Self:
        self = cls(**model.parameters)
        set_features(self, features_of(model))
        self._set_model(model)
        return self

    def _take_over(self: Any, model: Any, features: dict[str, Any]) -> None:
        """Set the fitted attributes, then raise the error or emit the warnings of the fit."""
        set_features(self, features)
        self._set_model(model)
        report = report_of(model)
        if report.stop_reason is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        if report.error is not None:
            # Raise a copy: its traceback refers to `report`, which holds the original error.
            raise copy(report.error)
        if isinstance(self, LinearRanker):  # only linear rankers have feature weights
            warn_of(effect_message(report.without_effect, feature_names_of(self)))
        warn_of(self._convergence_message(report), ConvergenceWarning)

    def _convergence_message(self: Any, report: FitReport) -> Message | None:
        return convergence_message(report, self.tol)

    def _set_report(self, report: FitReport | None) -> None:
        """Set the attributes that describe the fit, and delete the attributes of an older fit."""
        for name in REPORTED:
            value = getattr(report, name, None)
            self.__dict__.pop(f"{name}_", None)
            if value is not None:
                setattr(self, f"{name}_", value)

    def _report(self) -> FitReport | None:
        """Return the report of the fit, or None if the model comes from another program."""
        if not hasattr(self, "objective_"):
            return None
        reported: dict[str, Any] = {name: getattr(self, f"{name}_", None) for name in REPORTED}
        return FitReport(**reported)

    def __sklearn_tags__(self) -> Tags:
        """Return the tags for scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags


class LinearRanker(BaseRanker):
    """Base class of linear ranking estimators: scores are Xw with the weights ``coef_``."""

    def _scores(self, X: Any) -> Floats:
        if is_tensor(X) and X.device.type != "cpu":
            check_tensor(X, "X")
            check_features_of_fit(self, X)
            on_device = scores_on_device(X, self.coef_)
            if bool(on_device.sum().isfinite()):
                return on_device  # type: ignore[no-any-return]
        X_checked, matrix = documents_to_score(self, X)
        threads = effective_threads(self.n_jobs)
        scores: Floats = matrix.dot(self.coef_, None, threads)
        # Check scores, which is cheaper than a pass over X before each prediction.
        if not np.isfinite(scores.sum()):
            check_finite(X_checked, matrix, threads)
        return scores

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Write the fitted model to a file, which :func:`marginrank.load_model` reads.

        Parameters
        ----------
        path : str or path
            The file; it is written atomically.
        format : {"json", "liblinear", "svmrank"}, default="json"
            JSON keeps everything; the formats of LIBLINEAR-ranksvm and SVM^rank keep the weights
            only.
        """
        write_model(self.to_linear_model(), path, format)

    def to_linear_model(self) -> LinearModel:
        """Return the fitted model as plain data, as stored in model files."""
        self._require_model()
        fitted: Any = getattr(self, "best_estimator_", self)  # the fitted estimator of a search
        return LinearModel(
            coef=fitted.coef_,
            parameters=fitted.get_params(deep=False),
            feature_names=feature_names_of(fitted),
            report=fitted._report(),
            estimator=type(fitted).__name__,
            scale=getattr(fitted, "scale_", None),
        )

    def _plain_model(self) -> LinearModel:
        return self.to_linear_model()

    @classmethod
    def from_linear_model(cls, model: LinearModel) -> Self:
        """Return a fitted estimator that predicts the same scores as `model`."""
        return cls._from_model(model)

    def _set_model(self, model: LinearModel) -> None:
        self.coef_ = model.coef
        self.scale_ = model.scale
        self._set_report(model.report)


class BatchRanker(LinearRanker):
    """Base class of linear ranking estimators that are fitted by one run of a solver."""

    # The fit function: fit_linear or fit_sparse.
    _fit_function: ClassVar[Callable[..., LinearModel]]

    def _fit(
        self, X: Any, y: Any, *, qid: Any, group: Any, memory_limit: Any, weights: Any, pairs: Any
    ) -> Any:
        """Fit documents in memory or in a store, set the attributes and return the parameters.

        `weights` and `pairs` are further arguments of ``fit`` by name: weights of documents and
        queries; pairs, their weights and propensities.
        """
        parameters = self._parameters()
        seed = check_seed(self.random_state)
        y, group = labels_or_zeros(pairs.get("pairs"), X, y, qid, group)
        given = {"y": y, "qid": qid, "group": group, **weights}
        if is_path(X):
            check_beside_data("the path of a store", **given)
        opened = open_documents(X if is_path(X) else self._data(X, **given), memory_limit)
        warn_of(opened.message)
        data, limit = opened.data, opened.memory_limit
        watch = Watch(print_iteration) if self.verbose else Watch()
        if self.verbose and limit is not None:
            progress = StreamProgress(data.n_documents, self.tol)
            watch = Watch(progress.print_iteration, progress.on_read)
        model = type(self)._fit_function(
            data,
            parameters,
            **pair_options(data, **pairs),
            seed=seed,
            w0=self._start(data.n_features),
            memory_limit=limit,
            # The original tensor, which a fit may use on its device.
            tensor=X if is_tensor(X) else None,
            **watch._asdict(),
        )
        self._take_over(model, features_of(data))
        return parameters

    def _start(self, n_features: int) -> Floats | None:
        coef: Floats | None = getattr(self, "coef_", None) if self.warm_start else None
        if coef is not None and coef.shape != (n_features,):
            raise ValueError(
                f"X has {n_features} features but warm_start continues a fit with {coef.size}; "
                "use the same features, or warm_start=False."
            )
        return coef


def warn_of(message: Message | None, category: type[Warning] = UserWarning) -> None:
    """Emit `message` as a warning that points to the user's line, unless `message` is None."""
    if message is not None:
        warn_caller(message, category)


def check_seed(random_state: Any) -> int:
    """Return an integer seed for scikit-learn's `random_state`; raise ValueError if invalid."""
    try:
        return int(check_random_state(random_state).randint(2**31))
    except ValueError as error:
        raise ValueError(
            f"random_state={random_state!r} must be None, an integer from 0 to 2**32 - 1 or a "
            "RandomState."
        ) from error
