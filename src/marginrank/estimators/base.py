"""What the estimators with linear weights share: everything but the fit."""

from __future__ import annotations

import difflib
import functools
import inspect
import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Self

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
from marginrank.data.validation import check_finite
from marginrank.estimators.input import (
    FeatureInfo,
    documents_to_score,
    feature_names_of,
    features_of,
    one_query_if_forgotten,
    remember_columns,
    set_features,
    take_columns,
    training_data,
)
from marginrank.export.exporting import export_files, name_for, write_files
from marginrank.export.names import Names
from marginrank.export.sums import Model
from marginrank.fit.inputs import Opened, is_path, open_documents
from marginrank.fit.scaling import effect_message
from marginrank.fit.stream_progress import StreamProgress, Watch
from marginrank.metrics import pairwise_accuracy
from marginrank.metrics.ranking import ranks
from marginrank.models import LinearModel, write_model
from marginrank.models.features import Reason
from marginrank.models.fit_report import (
    FitReport,
    StopReason,
    convergence_message,
    print_iteration,
    report_of,
)

# The parts of a report that are attributes, with an underscore at the end.
REPORTED = (
    "objective",
    "gap",
    "stop_reason",
    "n_iter",
    "n_pairs",
    "n_rounds",
    "C",
    "smoothness",
    "history",
)


# Keywords of other libraries, and of other estimators here.
HINTS = {
    "fit": {
        "groups": "pass query ids as qid=, or sizes of contiguous queries as group=",
        "query_id": "pass query ids as qid=",
        **dict.fromkeys(
            ("eval_set", "eval_qid", "eval_group"),
            "this fit has no use for validation data, so drop it; SGDRankSVM.fit takes it",
        ),
    },
    "__init__": {
        "objective": 'pass pair_cost="ndcg" to weight pairs by NDCG, or fit the estimator without '
        "CV in its name with objective= and best_params_",
        "kernel": "use KernelRankSVM",
        "metric": "pass scoring= to an estimator that has it, such as RankSVMCV",
    },
}


class KeywordHints:
    """Mixin: unknown keywords of the constructor and of fit raise a TypeError with a hint."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Wrap the methods that the class defines."""
        super().__init_subclass__(**kwargs)
        for name in HINTS.keys() & vars(cls).keys():
            setattr(cls, name, _with_hints(vars(cls)[name]))


def _with_hints(method: Callable[..., Any]) -> Callable[..., Any]:
    known = [name for name in inspect.signature(method).parameters if name != "self"]

    @functools.wraps(method)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in known:
                where = type(self).__name__ + ("" if is_constructor else f".{method.__name__}")
                raise TypeError(
                    f"{where}() got an unexpected keyword argument {name!r}"
                    + _hint(method.__name__, name, known)
                )
        return method(self, *args, **kwargs)

    is_constructor = method.__name__ == "__init__"
    return checked


def _hint(method: str, name: str, known: list[str]) -> str:
    """Return what to pass instead of an unknown keyword, as the end of a sentence."""
    if name in HINTS[method]:
        return f"; {HINTS[method][name]}."
    near = {other.lower(): other for other in known}
    matches = difflib.get_close_matches(name.lower(), near, n=1, cutoff=0.7)
    return f"; did you mean {near[matches[0]]!r}?" if matches else "."


class BaseRanker(KeywordHints, BaseEstimator):
    """What all rankers share: ranks, scores and exports of what ``predict`` returns."""

    n_jobs: int | None

    # With metadata routing enabled, queries reach fit and score without being asked for.
    __metadata_request__fit = {"qid": True}  # noqa: RUF012
    __metadata_request__score = {"qid": True}  # noqa: RUF012

    @abstractmethod
    def predict(self, X: Any) -> Floats:
        """Return the score of each document; a higher score ranks higher."""

    def rank(
        self, X: Any, *, qid: ArrayLike | None = None, group: ArrayLike | None = None
    ) -> Integers:
        """Return the rank of each document inside its query, 1 for the best.

        Documents with equal scores are ranked in the order of the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or RankingData
            The documents.
        qid, group : array-like, optional
            Queries, as in :meth:`fit`.

        Returns
        -------
        ndarray of int64, shape (n_documents,)
        """
        if isinstance(X, RankingData):
            check_beside_data(qid=qid, group=group)
            qid = X.qid
        X, values = take_columns(X, qid=qid)
        scores = self.predict(X)
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
        """Return the pairwise accuracy of :meth:`predict`.

        Parameters
        ----------
        X, y, qid, group, sample_weight
            As in :meth:`fit`.

        Returns
        -------
        float
            See :func:`~marginrank.metrics.pairwise_accuracy`.
        """
        if isinstance(X, RankingData):
            check_beside_data(y=y, qid=qid, group=group, sample_weight=sample_weight)
            y, qid, sample_weight = X.y, X.qid, X.sample_weight
        X, values = take_columns(X, y=y, qid=qid, sample_weight=sample_weight)
        scores = self.predict(X)
        group = one_query_if_forgotten(self, scores.size, qid, group)
        return pairwise_accuracy(values.pop("y"), scores, **values, group=group, n_jobs=self.n_jobs)

    def explain(self, preferred: Any, other: Any) -> list[Reason]:
        """Return what each feature adds to the difference of two scores, the strongest first.

        Parameters
        ----------
        preferred, other : array-like of shape (n_features,)
            The two documents; also sparse rows, and rows of a data frame, whose names must be those
            of the features.

        Returns
        -------
        list of Reason
            With `feature`, `name`, the values `preferred` and `other`, and the `difference` that
            the feature makes; these sum to the difference of the scores.
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
        """Write the fitted model for a search engine, a database or another language.

        Parameters
        ----------
        path : str or path
            The main file; what else the target needs is written beside it.
        to : str
            The target, such as "elasticsearch", "sqlite" or "c"; ``marginrank export --help`` lists
            them.
        name : str, optional
            What to call the model there; by default as the file.
        names : list of str, or dict of str to str, optional
            A name for each feature there, or other names for some of them. By default the names are
            ``feature_names_in_``, or f1, f2, ….
        offset : float, default=0.0
            What to add to every score, for engines that refuse negative ones.

        Returns
        -------
        list of str
            The files.
        """
        model: Model = self._plain_model()
        files = export_files(model, to, name=name or name_for(path), names=names, offset=offset)
        return write_files(path, files)

    @abstractmethod
    def _plain_model(self) -> Model:
        """Return the fitted model as plain data, which is exported and explained."""

    def _set_report(self, report: FitReport | None) -> None:
        """Set the attributes that describe the fit, and drop those of an earlier one."""
        for name in REPORTED:
            value = getattr(report, name, None)
            self.__dict__.pop(f"{name}_", None)
            if value is not None:
                setattr(self, f"{name}_", value)

    def _report(self) -> FitReport | None:
        """Return how the fit ended; None for models from elsewhere."""
        if not hasattr(self, "objective_"):
            return None
        reported: dict[str, Any] = {name: getattr(self, f"{name}_", None) for name in REPORTED}
        return FitReport(**reported)

    def __sklearn_tags__(self) -> Tags:
        """Describe the estimator to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags


class LinearRanker(BaseRanker):
    """An estimator that scores documents by Xw, with w in ``coef_``."""

    def _data(
        self,
        X: Any,
        y: ArrayLike | None,
        qid: ArrayLike | None,
        group: ArrayLike | None,
        sample_weight: ArrayLike | None,
        query_weight: ArrayLike | None,
    ) -> RankingData:
        """Return what a fit was given, checked and grouped."""
        remember_columns(self, y, qid, sample_weight, query_weight)
        return training_data(X, y, qid, group, sample_weight, query_weight, n_jobs=self.n_jobs)

    def predict(self, X: Any) -> Floats:
        """Return the scores Xw; a higher score ranks higher.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or RankingData
            The documents.

        Returns
        -------
        ndarray of shape (n_documents,)
        """
        self._require_model()
        X_checked, matrix = documents_to_score(self, X)
        threads = effective_threads(self.n_jobs)
        scores: Floats = matrix.dot(self.coef_, None, threads)
        if not np.isfinite(scores.sum()):
            check_finite(X_checked, matrix, threads)
        return scores

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Write the fitted model to a file, which :func:`marginrank.load_model` reads.

        Parameters
        ----------
        path : str or path
            The file; it appears only when it is complete.
        format : {"json", "liblinear", "svmrank"}, default="json"
            JSON keeps everything; the model formats of LIBLINEAR-ranksvm and of
            SVM^rank keep the weights.
        """
        write_model(self.to_linear_model(), path, format)

    def to_linear_model(self) -> LinearModel:
        """Return the fitted model as plain data, as model files hold it."""
        self._require_model()
        return LinearModel(
            coef=self.coef_,
            parameters=self.get_params(deep=False),
            feature_names=feature_names_of(self),
            report=self._report(),
            estimator=type(self).__name__,
            scale=getattr(self, "scale_", None),
        )

    def _plain_model(self) -> LinearModel:
        return self.to_linear_model()

    def _require_model(self) -> None:
        """Raise NotFittedError without weights."""
        check_is_fitted(self)

    @classmethod
    def from_linear_model(cls, model: LinearModel) -> Self:
        """Return a fitted estimator that predicts what `model` does."""
        self = cls(**model.parameters)
        set_features(self, features_of(model))
        self._set_model(model)
        return self

    def _set_model(self, model: LinearModel) -> None:
        """Set the attributes of a fitted estimator, but for the features."""
        self.coef_ = model.coef
        self.scale_ = model.scale
        self._set_report(model.report)


class BatchRanker(LinearRanker):
    """A linear ranker whose fit is one run of a solver."""

    def _open(self, X: Any, memory_limit: Any, **given: Any) -> Opened:
        """Return what a fit was given, checked and grouped, or the store that it named."""
        if is_path(X):
            check_beside_data("the path of a store", **given)
        else:
            X = self._data(X, **given)
        opened = open_documents(X, memory_limit)
        warn_of(opened.message)
        return opened

    def _watch(self, data: RankingData, memory_limit: int | None) -> Watch:
        """Return what a fit tells while it goes on."""
        if not self.verbose:
            return Watch()
        if memory_limit is None:
            return Watch(print_iteration)
        progress = StreamProgress(data.n_documents, self.tol)
        return Watch(progress.print_iteration, progress.on_read)

    def _start(self, n_features: int) -> Floats | None:
        coef: Floats | None = getattr(self, "coef_", None) if self.warm_start else None
        if coef is not None and coef.shape != (n_features,):
            raise ValueError(
                f"X has {n_features} features but warm_start continues a fit with {coef.size}; "
                "use the same features, or warm_start=False."
            )
        return coef

    def _take_over(self, model: LinearModel, data: FeatureInfo) -> None:
        """Set the attributes of a fit; raise what has ended it, or warn of its result."""
        set_features(self, features_of(data))
        self._set_model(model)
        finish(report_of(model), self.tol, data.feature_names)


def finish(report: FitReport, tol: float, names: Sequence[str] | None) -> None:
    """Raise what has ended a fit, or warn of what is wrong with its result."""
    if report.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    if report.error is not None:
        raise copy(report.error)  # a copy: its traceback leads to `report`, which holds the error
    warn_of(effect_message(report.without_effect, names))
    warn_of(convergence_message(report, tol), ConvergenceWarning)


def warn_of(message: Message | None, category: type[Warning] = UserWarning) -> None:
    """Emit `message` as a warning, if not None."""
    if message is not None:
        warn_caller(message, category)


def check_seed(random_state: Any) -> int:
    """Return a seed drawn from what scikit-learn takes as random_state."""
    try:
        return int(check_random_state(random_state).randint(2**31))
    except ValueError as error:
        raise ValueError(
            f"random_state={random_state!r} must be None, an integer from 0 to 2**32 - 1 or a "
            "RandomState."
        ) from error
