"""Metrics of runs (the documents retrieved for each query), with relevance judgments (qrels)."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.parameters import check_choice
from marginrank._utils.tables import ResultTable
from marginrank._utils.types import Booleans, Floats, Integers
from marginrank.data.runs import as_qrels, as_run, judged_documents
from marginrank.metrics.binary_relevance import (
    average_precision,
    precision,
    recall,
    reciprocal_rank,
)
from marginrank.metrics.cascade import err
from marginrank.metrics.comparison import Comparison, compare_values
from marginrank.metrics.cumulative_gain import ndcg
from marginrank.metrics.names import Metric, get_metric, split_options
from marginrank.metrics.options import RankingMetric

JUDGED = "judged"  # share of the first k documents that are judged, as in judged@10
DEFAULT_METRICS = ("ndcg@10", "average_precision", "reciprocal_rank", "recall@100", "judged@10")
# BOUNDED are the metrics whose means have bounds for unjudged documents. SHARES are divided by
# their value for an ideal ranking, which labels of unjudged documents would change, too.
SHARES = (ndcg, average_precision, recall)
BOUNDED = (*SHARES, precision, reciprocal_rank, err)


@dataclass(frozen=True, repr=False)
class RunEvaluation(ResultTable):
    """Result of :func:`evaluate_run`: values per query, means, and bounds for unjudged documents.

    Attributes
    ----------
    queries : ndarray of shape (n_queries,)
        The judged queries, in the order of the qrels.
    per_query : dict
        One value per query for each metric.
    bounds : dict
        For each metric that has bounds, a lower and an upper bound of its mean. They hold whatever
        labels the unjudged documents of the run would get, up to the largest label of the qrels.
    """

    queries: NDArray[Any]
    per_query: dict[str, Floats]
    bounds: dict[str, tuple[float, float]]

    @property
    def means(self) -> dict[str, float]:
        """Mean of each metric over the queries on which it is defined, by metric name."""
        return {name: float(np.nanmean(values)) for name, values in self.per_query.items()}

    def _columns(self) -> dict[str, Sequence[Any]]:
        values = {name: values.tolist() for name, values in self.per_query.items()}
        return {"query": self.queries.tolist(), **values}

    def _summary(self) -> str:
        values = ", ".join(map(self._describe, self.per_query))
        return f"{values} ({self.queries.size} queries)"

    def _describe(self, name: str) -> str:
        value = f"{name} {self.means[name]:.4f}"
        low, high = self.bounds.get(name, (0.0, 0.0))
        return f"{value}, between {low:.4f} and {high:.4f}" if low < high else value


def evaluate_run(
    run: Any,
    qrels: Any,
    metrics: Sequence[str] = DEFAULT_METRICS,
    *,
    unjudged: str = "irrelevant",
    gain: str = "linear",
) -> RunEvaluation:
    """Evaluate a run with relevance judgments (qrels).

    The ideal ranking and the number of relevant documents come from all judged documents, retrieved
    or not. Every judged query counts, also one for which nothing was retrieved. Tied scores are
    ordered by descending document id. With the defaults, trec_eval (with its option ``-c``) and
    ir_measures give the same values.

    Parameters
    ----------
    run, qrels : dict, data frame, or an object of ranx
        ``{query: {document: score}}`` and ``{query: {document: label}}``, as from
        :func:`~marginrank.load_run` and :func:`~marginrank.load_qrels`, or frames with columns such
        as ``qid``, ``docno`` and ``score`` or ``label``. Negative labels count as 0.
    metrics : sequence of str
        Names as in :func:`get_metric`, and "judged@k": the share of the first k documents that are
        judged.
    unjudged : {"irrelevant", "skip"}, default="irrelevant"
        Unjudged documents count as irrelevant, or are removed from the run (condensed lists).
    gain : {"linear", "exponential"}, default="linear"
        Gain of DCG and NDCG: the label y as in trec_eval, or 2^y − 1.

    Returns
    -------
    RunEvaluation

    See Also
    --------
    compare_runs : Test the difference between two runs.

    Examples
    --------
    >>> from marginrank.metrics import evaluate_run
    >>> qrels = {"q1": {"d1": 2, "d2": 0, "d3": 1}}
    >>> run = {"q1": {"d2": 3.0, "d1": 2.0, "d9": 1.0}}
    >>> result = evaluate_run(run, qrels, ["reciprocal_rank", "recall@3", "judged@3"])
    >>> {name: round(value, 4) for name, value in result.means.items()}
    {'reciprocal_rank': 0.5, 'recall@3': 0.5, 'judged@3': 0.6667}
    >>> result.bounds["recall@3"]  # d9 may be relevant
    (0.3333333333333333, 1.0)
    """
    scored = _scored_documents(run, qrels, unjudged)
    chosen = run_metrics(metrics, gain)
    values = {name: _values(scored, name, metric) for name, metric in chosen.items()}
    bounds = {
        name: _bounds(metric, scored, values[name])
        for name, metric in chosen.items()
        if unjudged == "irrelevant" and metric and split_options(metric)[0] in BOUNDED
    }
    return RunEvaluation(scored.query_ids[np.unique(scored.qid)], values, bounds)


def compare_runs(
    run_a: Any,
    run_b: Any,
    qrels: Any,
    metric: str = "ndcg@10",
    *,
    unjudged: str = "irrelevant",
    gain: str = "linear",
    **options: Any,
) -> Comparison:
    """Compare two runs by a metric, query by query.

    Parameters
    ----------
    run_a, run_b, qrels, unjudged, gain
        As in :func:`evaluate_run`.
    metric : str, default="ndcg@10"
        Name of the metric.
    **options
        `n_resamples`, `confidence` and `random_state`, as in :func:`compare`.

    Returns
    -------
    Comparison
        Its `difference` is positive if `run_a` is better.

    Examples
    --------
    >>> from marginrank.metrics import compare_runs
    >>> qrels = {q: {"d1": 1, "d2": 0} for q in "abcdef"}
    >>> good, bad = {"d1": 2.0, "d2": 1.0}, {"d1": 1.0, "d2": 2.0}
    >>> result = compare_runs(dict.fromkeys("abcdef", good), dict.fromkeys("abcdef", bad), qrels)
    >>> round(result.difference, 4), result.n_queries
    (0.3691, 6)
    """
    measure = run_metrics([metric], gain)[metric]
    a, b = (
        _values(_scored_documents(run, qrels, unjudged), metric, measure) for run in (run_a, run_b)
    )
    defined = ~(np.isnan(a) | np.isnan(b))
    if np.sum(defined) < 2:
        raise ValueError(
            f"{metric} is defined for both runs in {np.sum(defined)} of {defined.size} queries; a "
            "comparison needs at least 2. Check that runs and qrels have the same query ids."
        )
    return compare_values(metric, a[defined], b[defined], **options)


def run_metrics(metrics: Sequence[str], gain: str) -> dict[str, Metric | None]:
    """Return a dict from metric names to functions, with None for "judged@k".

    `gain` is passed to metrics that have this option. Raise ValueError for an unknown name.
    """
    check_choice("gain", gain, ("linear", "exponential"))
    chosen: dict[str, Metric | None] = {}
    for name in metrics:
        if name.lower().partition("@")[0] == JUDGED:
            chosen[name] = None
            continue
        known = inspect.signature(get_metric(name)).parameters
        chosen[name] = get_metric(name, gain=gain) if "gain" in known else get_metric(name)
    return chosen


class _ScoredDocuments(NamedTuple):
    """The documents that a run has retrieved, and the judged documents that it has not."""

    query_ids: NDArray[Any]
    qid: Integers  # index in query_ids of each document's query
    y: Floats
    is_judged: Booleans
    retrieved: Booleans
    scores: Floats

    @property
    def is_open(self) -> Booleans:
        """Mask of documents that the run retrieved and that have no relevance judgment."""
        return self.retrieved & ~self.is_judged


def _scored_documents(run: Any, qrels: Any, unjudged: str) -> _ScoredDocuments:
    documents = judged_documents([as_run(run)], as_qrels(qrels), unjudged=unjudged)
    (scores,) = documents.scores
    retrieved = scores > -np.inf
    finite = np.where(retrieved, scores, 0.0)
    return _ScoredDocuments(
        documents.query_ids, documents.query, documents.y, documents.is_judged, retrieved, finite
    )


def _values(documents: _ScoredDocuments, name: str, metric: Metric | None) -> Floats:
    return _judged_share(documents, name) if metric is None else _measure(metric, documents)


def _measure(metric: Metric, documents: _ScoredDocuments) -> Floats:
    _, qid, y, _, retrieved, scores = documents
    function, options = split_options(metric)
    return cast(RankingMetric, function).of_retrieved(y, scores, qid, retrieved, **options)


def _bounds(metric: Metric, documents: _ScoredDocuments, values: Floats) -> tuple[float, float]:
    """Return bounds on the mean, whatever labels the unjudged documents of the run have.

    A metric is N / D: N grows with the labels in the ranking, D (1 for some metrics) with all
    labels of the query. The lower bound takes label 0 in N and the largest label in D for unjudged
    documents, the upper bound the opposite.
    """
    is_open = documents.is_open
    top = float(documents.y.max()) or 1.0
    # Add the unjudged documents again as not retrieved: these count in D only.
    beside = documents.qid[is_open]
    extra = np.zeros(beside.size)
    low = _measure(
        metric,
        _ScoredDocuments(
            documents.query_ids,
            np.concatenate([documents.qid, beside]),
            np.concatenate([documents.y, extra + top]),
            np.concatenate([documents.is_judged, extra > 0]),
            np.concatenate([documents.retrieved, extra > 0]),
            np.concatenate([documents.scores, extra]),
        ),
    )
    high = _measure(metric, documents._replace(y=np.where(is_open, top, documents.y)))
    if split_options(metric)[0] in SHARES:
        # The ratio of the largest D to the smallest D; any value is possible if both are 0.
        growth = np.divide(values, low, out=np.full(low.size, np.inf), where=low > 0)
        with np.errstate(invalid="ignore"):
            high = np.where(high > 0, np.minimum(high * growth, 1.0), 0.0)
    return float(np.nanmean(low)), float(np.nanmean(high))


def _judged_share(documents: _ScoredDocuments, name: str) -> Floats:
    """Return, for each query, the share of the first k retrieved documents that are judged.

    `name` is "judged@k", or "judged" for all retrieved documents.
    """
    _, at, k = name.partition("@")
    count = get_metric(f"precision{at}{k}")  # raises ValueError for an invalid cut-off
    judged, retrieved = (
        _measure(count, documents._replace(y=of.astype(np.float64)))
        for of in (documents.is_judged & documents.retrieved, documents.retrieved)
    )
    return np.divide(judged, retrieved, out=np.zeros_like(judged), where=retrieved > 0)
