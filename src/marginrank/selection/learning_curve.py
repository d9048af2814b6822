"""How good a linear model is by the number of queries that it was trained on."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from marginrank._utils.parameters import Mention, ParameterError, check_integer
from marginrank._utils.tables import ResultTable
from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats, Integers
from marginrank.data.held_out import check_same_features, validation_data
from marginrank.data.ranking_data import RankingData, as_ranking_data
from marginrank.fit.linear import Parameters, fit_linear, preferences_of, seed_from
from marginrank.metrics.names import Metric, metric_name, order_free
from marginrank.metrics.scorers import metric_of
from marginrank.models.fit_report import StopReason, report_of, unfinished_message
from marginrank.selection.folds import (
    cost_by_label,
    folds_of,
    over_folds,
    queries_by_id,
    rows_of,
)
from marginrank.selection.linear_paths import default_Cs

MOST_SIZES = 6  # of the default: from 1/32 of the queries on
CLEAR = 2.0  # standard errors that a gain must exceed
LITTLE = 0.005  # share of the score; who has less to gain need not gather queries

Progress = Callable[[int, int], None]


class Gain(NamedTuple):
    """What the last doubling of the queries has brought, with its standard error."""

    before: int
    after: int
    mean: float
    error: float


@dataclass(frozen=True, eq=False, repr=False)
class LearningCurve(ResultTable):
    """Scores by the number of training queries.

    All are over queries with pairs: others teach nothing, and a score that counts them cannot be
    held against that of the training queries.

    Attributes
    ----------
    metric : str
        Name of the metric.
    sizes : ndarray of int64, shape (n_sizes,)
        Numbers of training queries, ascending. Queries without a pair are not counted.
    n_pairs : ndarray of int64, shape (n_sizes, n_folds)
        Pairs that the models were trained on.
    train_scores, valid_scores : ndarray of shape (n_sizes, n_folds)
        The metric on the queries that a model was trained on, and on those held out.
    train_mean, train_error, valid_mean, valid_error : ndarray of shape (n_sizes,)
        Means over the folds, and their standard errors. With validation data there are orders in
        the place of folds, and the last error is 0, as all of them end with all queries.
    valid_by_query : ndarray of shape (n_sizes, n_queries), or None
        With validation data, the metric on each of its queries, averaged over the orders.
    """

    metric: str
    sizes: Integers
    n_pairs: Integers
    train_scores: Floats
    valid_scores: Floats
    train_mean: Floats
    train_error: Floats
    valid_mean: Floats
    valid_error: Floats
    valid_by_query: Floats | None = None

    @property
    def gain(self) -> Gain:
        """What the last doubling brought on the queries held out.

        Its error is over the folds, or over the queries of validation data: the orders in which
        training queries are taken do not tell what other queries to judge by would say.
        """
        halves = np.flatnonzero(2 * self.sizes <= self.sizes[-1] + 1)  # half of 25 is 13
        before = int(halves[-1]) if halves.size else 0
        mean = float(np.nanmean(self.valid_scores[-1] - self.valid_scores[before]))
        units = self.valid_scores if self.valid_by_query is None else self.valid_by_query
        error = _standard_error(units[-1] - units[before])
        return Gain(int(self.sizes[before]), int(self.sizes[-1]), mean, error)

    @property
    def verdict(self) -> str:
        """Whether more data would help, in one sentence."""
        before, after, mean, error = self.gain
        told = f"from {before:,} to {after:,} queries, {self.metric} changed by {mean:+.4f}"
        if np.isnan(error):
            unit = "fold" if self.valid_by_query is None else "query"
            return f"One {unit} cannot tell whether more queries would help: {told}."
        told += f" ± {error:.4f}"
        if mean > CLEAR * error:
            return f"More queries would likely help: {told}."
        if mean < -CLEAR * error:
            return f"More queries made it worse, so that some may be of another kind: {told}."
        if mean + CLEAR * error < LITTLE * abs(self.valid_mean[-1]):
            return f"More queries would likely not help: {told}."
        return f"It cannot be told whether more queries would help: {told}, which may be chance."

    def _columns(self) -> dict[str, Any]:
        return {
            "queries": self.sizes,
            "mean_pairs": self.n_pairs.mean(axis=1),
            "train_mean": self.train_mean,
            "train_error": self.train_error,
            "valid_mean": self.valid_mean,
            "valid_error": self.valid_error,
        }

    def _summary(self) -> str:
        first, last = self.sizes[0], self.sizes[-1]
        return (
            f"valid {self.metric} {self.valid_mean[0]:.4f} with {first} queries, "
            f"{self.valid_mean[-1]:.4f} with {last}; {self.sizes.size} sizes"
        )


def _standard_error(values: Floats) -> float:
    """Return the standard error of the mean of those that there are; nan if there is but one."""
    values = values[~np.isnan(values)]
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else np.nan


def learning_curve_ranking(
    X: Any,
    y: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    sizes: ArrayLike | None = None,
    cv: Any = 5,
    validation: RankingData | Sequence[Any] | None = None,
    metric: str | Metric = "ndcg@10",
    random_state: int = 0,
    progress: Progress | None = None,
    **parameters: Any,
) -> LearningCurve:
    """Train linear models on more and more queries, and judge them on others.

    The queries of a smaller size are among those of the larger ones. C is held per pair: with
    ``normalization="none"`` the loss is a sum over pairs, so that the same C would regularise small
    samples more. A model of some queries has C times the weight of all pairs of the data over the
    weight of its own, so that C means what it means in a fit of all data. Queries without a pair
    count neither in training nor in scores.

    So the last size of a fold is not a plain fit of the fold with the same C: that regularizes
    more, because the fold has fewer pairs than the data. With `validation` the last size is the
    plain fit of the queries that have pairs; a `scale` is that of their documents. Scores are lower
    where a metric counts queries without a relevant document as 0.

    Parameters
    ----------
    X : RankingData, or array-like or sparse matrix of shape (n_documents, n_features)
        The documents.
    y, qid : array-like of shape (n_documents,), optional
        Labels and queries, if X is a matrix.
    sizes : array-like, optional
        Numbers of training queries, or shares of them if none is above 1. By default they double up
        to all, six of them at most.
    cv : int, splitter or iterable of (train, test), default=5
        As in :class:`~marginrank.SparseRankSVMCV`. With `validation` it is the number of random
        orders in which queries are taken.
    validation : RankingData, or tuple (X, y) or (X, y, qid), optional
        Data to judge by, instead of folds.
    metric : str or callable, default="ndcg@10"
        As in :func:`~marginrank.sparse_path`.
    random_state : int, default=0
        Seed of folds, orders and samples.
    progress : callable, optional
        Called after each fit with the numbers of fits that are done, and that there are.
    **parameters
        Those of :class:`~marginrank.RankSVM`, such as C and loss.

    Returns
    -------
    LearningCurve

    Examples
    --------
    >>> from marginrank import learning_curve_ranking, make_ranking
    >>> X, y, qid = make_ranking(n_queries=100, docs_per_query=20, random_state=0)
    >>> curve = learning_curve_ranking(X, y, qid, cv=4)
    >>> curve.sizes.tolist(), curve.valid_scores.shape
    ([3, 5, 10, 19, 38, 75], (6, 4))
    """
    asked = metric_of(metric)
    _check_known(parameters)
    settings = Parameters(**parameters)
    n_jobs = settings.n_jobs
    data = as_ranking_data(X, y, qid, n_jobs=n_jobs)
    held_out = validation_data(validation, n_jobs=n_jobs)
    check_same_features(held_out, data.n_features, data.feature_names)
    default_Cs(data, settings, n_points=1)  # refuses features that tell nothing
    seed = seed_from(random_state)
    curves = list(_curves(data, held_out, cv, seed, n_jobs))
    steps = _sizes(sizes, min(curve.order.size for curve in curves))
    run = _Run(_per_pair(settings, data), order_free(asked), seed)
    points: list[list[_Point]] = []
    for number, curve in enumerate(curves):
        points.append([])
        for done, point in enumerate(run.walk(data, curve, steps), 1 + number * steps.size):
            points[-1].append(point)
            if progress is not None:
                progress(done, len(curves) * steps.size)
    run.warn_unless_converged()
    return _collect(points, steps, metric_name(asked))


def _check_known(parameters: Mapping[str, Any]) -> None:
    """Refuse what is no parameter of a fit, in the way that Python does."""
    known = [field.name for field in fields(Parameters)]
    for name in parameters:
        if name not in known:
            raise TypeError(
                f"learning_curve_ranking has no parameter {name!r}; beside its own it has "
                f"{', '.join(known)}."
            )


class _Point(NamedTuple):
    """A model of some queries; the last is empty if it is not judged query by query."""

    n_pairs: int
    train_score: float
    valid_score: float
    valid_by_query: Floats


class _Curve(NamedTuple):
    """Queries to train on, in the order in which they are taken, and documents to judge by.

    There are none where no query that is held out has pairs.
    """

    order: Integers
    held_out: RankingData | None
    is_judged_by_query: bool


def _curves(
    data: RankingData, held_out: RankingData | None, cv: Any, seed: int, n_jobs: int | None
) -> Iterator[_Curve]:
    """Return a curve for each fold, or for each of `cv` orders of all queries."""
    everything = np.arange(data.n_queries)
    if held_out is not None:
        check_integer("cv", cv, at_least=1)
        judged = _with_pairs(held_out, np.arange(held_out.n_documents), n_jobs)
        for number in range(cv):
            order = _order(data, everything, [seed, number])
            yield _Curve(order, judged, is_judged_by_query=True)
        return
    _check_n_queries(data.n_queries)
    for fold in folds_of(data, cv, seed):
        order = _order(data, data.qid[fold.train], [seed, fold.number])
        judged = _with_pairs(data, fold.test, n_jobs)
        yield _Curve(order, judged, is_judged_by_query=False)


def _with_pairs(data: RankingData, rows: Integers, n_jobs: int | None) -> RankingData | None:
    """Return those of some documents whose queries have pairs, if there are any."""
    rows = rows[data.queries.n_pairs[data.qid[rows]] > 0]
    return rows_of(data, rows, n_jobs=n_jobs) if rows.size else None


def _order(data: RankingData, queries: Integers, seed: list[int]) -> Integers:
    """Return those of the queries that have pairs, in an order that rows do not decide."""
    by_id = queries_by_id(data.query_ids)
    chosen = np.isin(by_id, queries) & (data.queries.n_pairs[by_id] > 0)
    _check_n_queries(int(chosen.sum()))
    return np.random.default_rng(seed).permutation(by_id[chosen])


def _check_n_queries(n_queries: int) -> None:
    if n_queries < 2:
        raise ValueError(
            f"a learning curve is over queries, and there is {n_queries} to train on that has "
            "pairs; give more queries, or check y and qid."
        )


def _sizes(sizes: ArrayLike | None, n_queries: int) -> Integers:
    """Return numbers of queries, ascending."""
    if sizes is None:
        halved = np.ceil(n_queries / 2.0 ** np.arange(MOST_SIZES)).astype(np.int64)
        return np.unique(halved[halved > 1] if n_queries > 3 else halved)
    try:
        asked = np.atleast_1d(np.asarray(sizes, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        asked = np.empty(0)
    if asked.ndim != 1 or not asked.size or not (np.isfinite(asked) & (asked > 0)).all():
        raise ParameterError(Mention("sizes"), " must be a list of positive numbers.")
    if asked.max() <= 1:
        asked = np.maximum(np.floor(asked * n_queries + 0.5), 1.0)
    counts = np.unique(asked.astype(np.int64))
    if counts[-1] > n_queries or (asked != np.floor(asked)).any():
        raise ParameterError(
            Mention("sizes"),
            f" must be whole numbers of queries, up to {n_queries} that have pairs in every fold, "
            "or shares up to 1.",
        )
    if counts.size < 2:
        raise ParameterError(Mention("sizes"), " is one size; a curve needs two or more.")
    return counts


def _per_pair(parameters: Parameters, data: RankingData) -> Parameters:
    """Return parameters that weigh the loss against the regulariser as a fit of all data does."""
    cost = cost_by_label(parameters.pair_cost, data.y)
    parameters = replace(parameters, lam=None, C=parameters.loss_weight, pair_cost=cost)
    if parameters.normalization != "none":
        return parameters
    total = float(np.sum(preferences_of(data, parameters).pairs.weights))
    return replace(parameters, C=parameters.C * total, normalization="pairs")


class _Run:
    """Fits over sizes, each from the weights of the last."""

    def __init__(self, parameters: Parameters, evaluate: Metric, seed: int) -> None:
        self.parameters = parameters
        self.evaluate = evaluate
        self.seed = seed
        self.stops: list[StopReason] = []

    def walk(self, data: RankingData, curve: _Curve, sizes: Integers) -> Iterator[_Point]:
        """Train on the first queries of the order, for each of the sizes."""
        place = np.full(data.n_queries, data.n_queries)
        place[curve.order] = np.arange(curve.order.size)
        place_of_row = place[data.qid]
        w: Floats | None = None
        for size in sizes:
            rows = np.flatnonzero(place_of_row < size)
            train = rows_of(data, rows, n_jobs=self.parameters.n_jobs)
            model = fit_linear(train, self.parameters, seed=self.seed, w0=w)
            report = report_of(model)
            if report.stop_reason is StopReason.INTERRUPTED:
                raise KeyboardInterrupt
            self.stops.append(report.stop_reason)
            w = model.coef
            held_out, by_query = curve.held_out, curve.is_judged_by_query
            yield _Point(
                report.n_pairs,
                float(self._judge(train, w)),
                np.nan if held_out is None else float(self._judge(held_out, w)),
                self._judge(held_out, w, per_query=True) if held_out and by_query else np.empty(0),
            )

    def _judge(self, data: RankingData, w: Floats, **options: bool) -> Any:
        scores = data.matrix.dot(w, None, effective_threads(self.parameters.n_jobs))
        return self.evaluate(data.y, scores, qid=data.qid, **options)

    def warn_unless_converged(self) -> None:
        """Tell of fits that stopped early."""
        unfinished = sum(not stop.converged for stop in self.stops)
        message = unfinished_message(unfinished, len(self.stops))
        if message is not None:
            warnings.warn(message, stacklevel=3)


def _collect(points: Sequence[Sequence[_Point]], sizes: Integers, metric: str) -> LearningCurve:
    n_pairs, train, valid = (
        np.array([[point[field] for point in curve] for curve in points], dtype=np.float64).T
        for field in range(3)
    )
    by_query = np.mean([[point.valid_by_query for point in curve] for curve in points], axis=0)
    train_mean, train_error = over_folds(train, metric)
    valid_mean, valid_error = over_folds(valid, metric)
    return LearningCurve(
        metric=metric,
        sizes=sizes,
        n_pairs=n_pairs.astype(np.int64),
        train_scores=train,
        valid_scores=valid,
        train_mean=train_mean,
        train_error=train_error,
        valid_mean=valid_mean,
        valid_error=valid_error,
        valid_by_query=by_query if by_query.size else None,
    )
