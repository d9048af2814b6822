"""Learning curves: scores of linear models as a function of the number of training queries."""

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
from marginrank.metrics.names import Metric, order_free
from marginrank.metrics.scorers import metric_of
from marginrank.models.fit_report import StopReason, report_of, unfinished_message
from marginrank.selection.folds import (
    cost_by_label,
    folds_of,
    over_folds,
    queries_by_id,
    rows_of,
)
from marginrank.selection.learner import PathModel
from marginrank.selection.linear_paths import LINEAR, LinearLearner
from marginrank.selection.scoring import Split, SplitScorer
from marginrank.selection.search import Search
from marginrank.selection.space import SearchSpace

MOST_SIZES = 6  # largest number of default sizes: 1/32, 1/16, … 1/2 and all of the queries
CLEAR = 2.0  # number of standard errors that a significant gain exceeds
LITTLE = 0.005  # smallest relative gain that is worth collecting queries


class Gain(NamedTuple):
    """Change of the validation score when the number of training queries was last doubled."""

    before: int  # number of training queries before
    after: int  # and after
    mean: float  # mean change of the score
    error: float  # standard error of the mean


@dataclass(frozen=True, eq=False, repr=False)
class LearningCurve(ResultTable):
    """Result of :func:`learning_curve_ranking`: scores by the number of training queries.

    All scores are over queries with pairs, so that training and validation scores are comparable.

    Attributes
    ----------
    metric : str
        Name of the metric.
    sizes : ndarray of int64, shape (n_sizes,)
        Numbers of training queries, ascending. Queries without a pair are not counted.
    n_pairs : ndarray of int64, shape (n_sizes, n_folds)
        Pairs that the models were trained on.
    train_scores, valid_scores : ndarray of shape (n_sizes, n_folds)
        The metric on the training queries of a model, and on the queries held out.
    train_mean, train_error, valid_mean, valid_error : ndarray of shape (n_sizes,)
        Means over the folds, and their standard errors. With validation data, they are over the
        random orders in which training queries are added. The error for all queries is then 0,
        because they are the same in every order.
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
        """Change of the validation score when the number of training queries was last doubled."""
        # Rounds up: half of 25 queries is 13.
        halves = np.flatnonzero(2 * self.sizes <= self.sizes[-1] + 1)
        before = int(halves[-1]) if halves.size else 0
        mean = float(np.nanmean(self.valid_scores[-1] - self.valid_scores[before]))
        # The error is over folds or validation queries: the variation over orders of the training
        # queries is not the variation over new queries.
        units = self.valid_scores if self.valid_by_query is None else self.valid_by_query
        gains = units[-1] - units[before]
        gains = gains[~np.isnan(gains)]
        error = float(gains.std(ddof=1) / np.sqrt(gains.size)) if gains.size > 1 else np.nan
        return Gain(int(self.sizes[before]), int(self.sizes[-1]), mean, error)

    @property
    def verdict(self) -> str:
        """Whether more training queries would improve the model, in one sentence."""
        before, after, mean, error = self.gain
        change = f"from {before:,} to {after:,} queries, {self.metric} changed by {mean:+.4f}"
        if np.isnan(error):
            unit = "fold" if self.valid_by_query is None else "query"
            return f"With one {unit}, it is unclear whether more queries would help: {change}."
        change += f" ± {error:.4f}"
        if mean > CLEAR * error:
            return f"More queries would likely help: {change}."
        if mean < -CLEAR * error:
            return f"More queries made the model worse; check whether all are alike: {change}."
        if mean + CLEAR * error < LITTLE * abs(self.valid_mean[-1]):
            return f"More queries would likely not help: {change}."
        return f"It is unclear whether more queries would help: {change}, which may be chance."

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
    progress: Callable[[int, int], None] | None = None,
    **parameters: Any,
) -> LearningCurve:
    """Train linear models on more and more queries, and score each model on other queries.

    The queries of a smaller size are among the queries of the larger ones. Queries without a pair
    are ignored, in training and in scores.

    The strength of the regularization is the same for all sizes. With ``normalization="none"`` the
    loss is a sum over pairs, so a fixed C would regularize small samples more. A sample is trained
    with a larger C instead: C times the total weight of the pairs of the data, divided by the total
    weight of the pairs of the sample. So the last size of a fold is not the plain fit of the fold
    with the same C. With `validation`, the last size is the plain fit of all queries that have
    pairs.

    Parameters
    ----------
    X : RankingData, or array-like or sparse matrix of shape (n_documents, n_features)
        The documents.
    y, qid : array-like of shape (n_documents,), optional
        Labels and queries, if X is a matrix.
    sizes : array-like, optional
        Numbers of training queries, or shares of them if none is above 1. By default they double up
        to all queries, with at most six sizes.
    cv : int, splitter or iterable of (train, test), default=5
        As in :class:`~marginrank.SparseRankSVMCV`. With `validation` it is the number of random
        orders in which queries are taken.
    validation : RankingData, or tuple (X, y) or (X, y, qid), optional
        Data to score models on, instead of folds.
    metric : str or callable, default="ndcg@10"
        As in :func:`~marginrank.sparse_path`.
    random_state : int, default=0
        Seed of folds, orders and samples.
    progress : callable, optional
        Called after each fit with the number of fits so far and the number of all fits.
    **parameters
        Parameters of :class:`~marginrank.RankSVM`, such as C and loss.

    Returns
    -------
    LearningCurve

    Examples
    --------
    >>> from marginrank import learning_curve_ranking, make_ranking
    >>> X, y, qid = make_ranking(n_queries=100, docs_per_query=20, random_state=0)
    >>> curve = learning_curve_ranking(X, y, qid=qid, cv=4)
    >>> curve.sizes.tolist(), curve.valid_scores.shape
    ([3, 5, 10, 19, 38, 75], (6, 4))
    """
    _check_names(parameters)
    settings = Parameters(**parameters)
    n_jobs = settings.n_jobs
    data = as_ranking_data(X, y, qid, n_jobs=n_jobs)
    held_out = validation_data(validation, n_jobs=n_jobs)
    check_same_features(held_out, data.n_features, data.feature_names)
    seed = seed_from(random_state)
    metric = metric_of(metric)
    LINEAR.default_grid(data, settings, n_points=1)  # raises an error if no feature is informative
    samples = list(_samples(data, held_out, cv, seed))
    steps = _sizes(sizes, min(sample.order.size for sample in samples))
    learner = SampleLearner([sample.order for sample in samples], order_free(metric))
    space = SearchSpace(_per_pair(settings, data), {}, steps, learner=learner)
    scorer = SplitScorer([sample.split for sample in samples], metric, n_jobs, learner)
    search = Search(data, space, scorer, seed=seed)
    for done, _ in enumerate(search.run(), 1):
        if progress is not None:
            progress(done, len(samples) * steps.size)
    message = unfinished_message(search.count.unfinished, search.count.done)
    if message is not None:
        warnings.warn(message, stacklevel=2)
    by_query = None
    if held_out is not None:
        models = [search.models(candidate) for candidate in search.candidates]
        by_order = [
            scorer.score_queries(k, of_order)[1:]
            for k, of_order in enumerate(zip(*models, strict=True))
        ]
        by_query = np.mean(by_order, axis=0)
    train = np.array(learner.train_scores, dtype=np.float64).reshape(len(samples), -1).T
    train_mean, train_error = over_folds(train, scorer.metric)
    result = search.result(compare=False)
    return LearningCurve(
        metric=scorer.metric,
        sizes=steps,
        n_pairs=np.array(learner.n_pairs, dtype=np.int64).reshape(train.T.shape).T,
        train_scores=train,
        valid_scores=result.scores,
        train_mean=train_mean,
        train_error=train_error,
        valid_mean=result.mean,
        valid_error=result.error,
        valid_by_query=by_query,
    )


def _check_names(parameters: Mapping[str, Any]) -> None:
    known = [field.name for field in fields(Parameters)]
    for name in parameters:
        if name not in known:
            raise TypeError(
                f"learning_curve_ranking has no parameter {name!r}; parameters that it passes on "
                f"to the fit: {', '.join(known)}."
            )


class SampleLearner(LinearLearner):
    """Fits linear models to growing numbers of training queries, each warm-started from the last.

    `orders` has the training queries of each fold in the order in which they are added.
    """

    parameter = "queries"
    search_tol = 0.0

    def __init__(self, orders: Sequence[Integers], evaluate: Metric) -> None:
        self._orders = orders
        self._evaluate = evaluate
        self.n_pairs: list[int] = []  # number of pairs of each fit so far
        self.train_scores: list[float] = []  # training score of each fit so far

    def fit_paths(
        self,
        data: RankingData,
        parameters: Parameters,
        values: Floats,
        parts: Sequence[Integers | None],
        *,
        seed: int = 0,
    ) -> Iterator[PathModel]:
        """Yield a model of the first n queries of each random order, for each n in `values`."""
        for part, order in enumerate(self._orders):
            position = np.full(data.n_queries, data.n_queries)
            position[order] = np.arange(order.size)
            position_of_row = position[data.qid]
            w: Floats | None = None
            for step, size in enumerate(values):
                rows = np.flatnonzero(position_of_row < size)
                train = rows_of(data, rows, n_jobs=parameters.n_jobs)
                model = fit_linear(train, parameters, seed=seed, w0=w)
                report = report_of(model)
                if report.stop_reason is StopReason.INTERRUPTED:
                    raise KeyboardInterrupt
                w = model.coef
                scores = self.predict(train, w, None, effective_threads(parameters.n_jobs))
                self.n_pairs.append(report.n_pairs)
                self.train_scores.append(self._evaluate(train.y, scores, qid=train.qid))
                yield PathModel(part, step, report, w)

    def with_value(self, parameters: Parameters, value: float) -> Parameters:
        """Return the parameters unchanged, because the grid is over numbers of queries."""
        return parameters


class QuerySample(NamedTuple):
    """Training queries of a learning curve, in the order they are added, and documents to score."""

    order: Integers
    split: Split


def _samples(
    data: RankingData, held_out: RankingData | None, cv: Any, seed: int
) -> Iterator[QuerySample]:
    """Yield one QuerySample per fold or, with held-out data, per random order of queries."""
    if held_out is not None:
        check_integer("cv", cv, at_least=1)
        split = Split(None, held_out, _with_pairs(held_out, np.arange(held_out.n_documents)))
        for number in range(cv):
            yield QuerySample(_order(data, np.arange(data.n_queries), [seed, number]), split)
        return
    _check_queries(data.n_queries)
    for fold in folds_of(data, cv, seed):
        order = _order(data, data.qid[fold.train], [seed, fold.number])
        yield QuerySample(order, Split(fold.train, data, _with_pairs(data, fold.test)))


def _with_pairs(data: RankingData, rows: Integers) -> Integers:
    """Return the rows whose queries have pairs."""
    return rows[data.queries.n_pairs[data.qid[rows]] > 0]


def _order(data: RankingData, queries: Integers, seed: list[int]) -> Integers:
    """Return the queries that have pairs, in a random order that does not depend on the rows."""
    by_id = queries_by_id(data.query_ids)
    chosen = np.isin(by_id, queries) & (data.queries.n_pairs[by_id] > 0)
    _check_queries(int(chosen.sum()))
    return np.random.default_rng(seed).permutation(by_id[chosen])


def _check_queries(n_queries: int) -> None:
    if n_queries < 2:
        raise ValueError(
            "a learning curve needs at least 2 training queries with pairs, got "
            f"{n_queries}; pass more queries, or check y and qid."
        )


def _sizes(sizes: ArrayLike | None, n_queries: int) -> Integers:
    """Return the checked training sizes as ascending numbers of queries."""
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
            f" must be whole numbers of queries, up to {n_queries} (queries with pairs in every "
            "fold), or shares up to 1.",
        )
    if counts.size < 2:
        raise ParameterError(Mention("sizes"), " has one size; a curve needs at least two.")
    return counts


def _per_pair(parameters: Parameters, data: RankingData) -> Parameters:
    """Return the parameters with C converted so that it does not depend on the sample size."""
    cost, margin = (
        cost_by_label(value, data.y) for value in (parameters.pair_cost, parameters.margin)
    )
    parameters = replace(
        parameters, lam=None, C=parameters.loss_weight, pair_cost=cost, margin=margin
    )
    if parameters.normalization != "none":
        return parameters
    total = float(np.sum(preferences_of(data, parameters).pairs.weights))
    return replace(parameters, C=parameters.C * total, normalization="pairs")
