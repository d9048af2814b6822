"""The metrics in a report: values of a model and a baseline, intervals, tests and the verdict."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from marginrank._utils.types import Booleans, Floats
from marginrank.data.ranking_data import RankingData
from marginrank.data.runs import ByDocument
from marginrank.metrics import compare, evaluate_run, pairwise_accuracy
from marginrank.metrics.cumulative_gain import dcg, letor_mean_ndcg, ndcg
from marginrank.metrics.names import Metric, metric_name, order_free, split_options
from marginrank.reporting.resampling import CONFIDENCE, bootstrap_ratios, interval_of

JUDGED = "judged@10"
EVIDENCE = 0.05  # p-values below count as evidence of a difference
LEAST_P = 0.001  # smaller p-values are shown as "p < 0.001"
SAME = 1e-12  # if the metric differs by at most this in a query, it counts as a tie

GAINS = {"exponential": "gain 2^label − 1", "linear": "gain = label"}
DISCOUNTS = {
    "standard": "discount 1 / log2(rank + 1)",
    "letor": "discount 1 at ranks 1 and 2, then 1 / log2(rank)",
}
TIES = {
    "order": "documents with equal scores stay in the order of the data",
    "average": "averaged over all orders of documents with equal scores",
    "wrong": "a pair with equal scores counts as wrong",
    "half": "a pair with equal scores counts half",
}


@dataclass(frozen=True)
class Rankings:
    """The scores that a report compares (of a model and perhaps a baseline), and the metrics.

    Attributes
    ----------
    data : RankingData
        The documents with their labels.
    scores : ndarray of shape (n_documents,)
        Scores of the model, in the order of the rows.
    baseline : ndarray of shape (n_documents,) or None
        Scores of the baseline, if there is one.
    metric : callable
        The main metric.
    metrics : dict
        All metrics by name.
    qrels : mapping or None
        Relevance judgments, to compute judged@10.
    seed : int
        Seed of all resampling.
    """

    data: RankingData
    scores: Floats
    baseline: Floats | None
    metric: Metric
    metrics: Mapping[str, Metric]
    qrels: ByDocument | None
    seed: int

    def by_query(self, metric: Metric, scores: Floats) -> Floats:
        """Return the value of a metric in each query, for one score per document."""
        values: Floats = metric(self.data.y, scores, qid=self.data.qid, per_query=True)
        return values

    def mean(self, metric: Metric, scores: Floats) -> float:
        """Return the value of a metric over all queries, like ``marginrank evaluate``."""
        return float(metric(self.data.y, scores, qid=self.data.qid))


def judged_documents(data: RankingData, qrels: ByDocument | None) -> Booleans | None:
    """Return a mask of the documents that have a relevance judgment, or None without qrels."""
    if qrels is None:
        return None
    if data.comments is None:
        raise ValueError("qrels need data with comments, which hold the ids of the documents.")
    ids = data.query_ids[data.qid].tolist()
    pairs = zip(ids, data.comments, strict=True)
    return np.array([document in qrels.get(str(query), {}) for query, document in pairs])


def metric_rows(rankings: Rankings) -> list[dict[str, Any]]:
    """Return the table of metrics in a report, one row per metric.

    A row has the value and its confidence interval for the model, the baseline and the difference.
    """
    rows = []
    for name, metric in rankings.metrics.items():
        try:
            rows.append(_metric_row(rankings, name, metric))
        except ValueError:  # the metric does not support the labels, such as NDCG negative labels
            continue
    if rankings.qrels is not None:
        rows.append(_judged_row(rankings))
    return rows


def _metric_row(rankings: Rankings, name: str, metric: Metric) -> dict[str, Any]:
    both = [rankings.scores] if rankings.baseline is None else [rankings.scores, rankings.baseline]
    means = [rankings.mean(metric, scores) for scores in both]
    by_query = np.stack([rankings.by_query(metric, scores) for scores in both], axis=1)
    is_ratio = split_options(metric)[0] is pairwise_accuracy
    weights = rankings.data.queries.n_pairs if is_ratio else np.ones(len(by_query))
    return _row(name, means, by_query, weights.astype(np.float64), rankings.seed)


def _judged_row(rankings: Rankings) -> dict[str, Any]:
    both = [rankings.scores] if rankings.baseline is None else [rankings.scores, rankings.baseline]
    found = [
        evaluate_run(rankings.data.to_run(scores), rankings.qrels, [JUDGED]) for scores in both
    ]
    by_query = np.stack([one.per_query[JUDGED] for one in found], axis=1)
    means = [one.means[JUDGED] for one in found]
    return _row(JUDGED, means, by_query, np.ones(len(by_query)), rankings.seed)


def _row(
    name: str, means: list[float], by_query: Floats, weights: Floats, seed: int
) -> dict[str, Any]:
    """Return one row of the table of metrics, with bootstrap intervals over queries.

    `by_query` has one column for the model and perhaps one for the baseline.
    """
    is_defined = ~np.isnan(by_query)
    counted = is_defined * weights[:, None]
    draws = bootstrap_ratios(np.where(is_defined, by_query, 0.0) * counted, counted, seed)
    row: dict[str, Any] = {
        "name": name,
        **_estimate(means[0], draws[:, 0]),
        "baseline": None,
        "difference": None,
    }
    if len(means) > 1:
        row["baseline"] = _estimate(means[1], draws[:, 1])
        row["difference"] = _estimate(means[0] - means[1], draws[:, 0] - draws[:, 1])
    return row


def _estimate(value: float, draws: Floats) -> dict[str, float]:
    low, high = interval_of(draws)
    return {"value": value, "low": low, "high": high}


def describe_metric(metric: Metric) -> dict[str, Any]:
    """Return a dict with the name of a metric, its options, and a text about these options."""
    function, given = split_options(metric)
    known = inspect.signature(function).parameters
    options = {
        name: given.get(name, known[name].default)
        for name in ("k", "gain", "discount", "ties", "no_relevant")
        if name in known
    }
    parts = []
    mean = "mean over queries"
    if function is pairwise_accuracy:
        mean = "share of correctly ordered pairs, among the pairs of all queries"
    if function is letor_mean_ndcg:
        options |= {"gain": "exponential", "discount": "letor"}
    if function in (ndcg, dcg, letor_mean_ndcg):
        parts = [GAINS[options["gain"]], DISCOUNTS[options["discount"]]]
    if "no_relevant" in options:
        value = options["no_relevant"]
        kept = "is left out" if value == "skip" else f"counts as {value:g}"
        parts.append(f"a query without a relevant document {kept}")
    if "ties" in options:
        parts.append(TIES.get(options["ties"], f"ties: {options['ties']}"))
    return {
        "name": metric_name(metric),
        "is_ndcg": function is ndcg,
        "options": options,
        "text": "; ".join([mean, *parts]),
    }


def n_evaluated(rankings: Rankings) -> int:
    """Return the number of queries in which the main metric is defined."""
    values = rankings.by_query(rankings.metric, rankings.scores)
    return int(np.count_nonzero(~np.isnan(values)))


def comparison_of(rankings: Rankings) -> dict[str, Any] | None:
    """Compare the model with the baseline by the main metric: paired tests, wins and losses.

    Return None without a baseline, or if the metric is defined in fewer than two queries.
    """
    if rankings.baseline is None or n_evaluated(rankings) < 2:
        return None
    data = rankings.data
    found = compare(
        data.y, rankings.scores, rankings.baseline, qid=data.qid, metric=rankings.metric
    )
    changes = rankings.by_query(rankings.metric, rankings.scores) - rankings.by_query(
        rankings.metric, rankings.baseline
    )
    return {
        **asdict(found),
        "wins": int(np.sum(changes > SAME)),
        "ties": int(np.sum(np.abs(changes) <= SAME)),
        "losses": int(np.sum(changes < -SAME)),
    }


def chance_of(rankings: Rankings) -> float | None:
    """Return the expected value of the main metric if documents are ordered at random.

    Return None if the expected value cannot be computed for this metric.
    """
    metric = order_free(rankings.metric)
    if metric is rankings.metric:
        return None
    return rankings.mean(metric, np.zeros(rankings.data.n_documents))


def verdict_of(
    main: Mapping[str, Any],
    comparison: Mapping[str, Any] | None,
    chance: float | None,
    names: tuple[str, str | None],
    n_queries: int,
) -> str:
    """Return the verdict of a report: one sentence on the main metric, with its uncertainty.

    `main` is the main metric's row of the table of metrics, `comparison` the result of
    :func:`comparison_of`, `chance` the value for a random order, and `names` are the names of the
    model and the baseline.
    """
    name, baseline = names
    metric, value = main["name"], main["value"]
    if n_queries == 0:
        return f"No query has a value of {metric}."
    if comparison is None:
        spread = (
            ""
            if main["low"] != main["low"]
            else (f" ({CONFIDENCE:.0%} interval {main['low']:.4f} … {main['high']:.4f})")
        )
        over = "1 query" if n_queries == 1 else f"{n_queries:,} queries"
        others = [] if baseline is None else [f"{baseline} has {main['baseline']['value']:.4f}"]
        others += [] if chance is None else [f"a random order has {chance:.4f}"]
        return "; ".join([f"{name} has {metric} {value:.4f}{spread} over {over}", *others]) + "."
    low, high = comparison["interval"]
    difference, p = comparison["difference"], comparison["t_test_p"]
    p_value = f"p = {p:.2g}" if p >= LEAST_P else f"p < {LEAST_P:g}"
    change = (
        f"{comparison['mean_a']:.4f} against {comparison['mean_b']:.4f}, {CONFIDENCE:.0%} interval "
        f"of the difference {low:+.4f} … {high:+.4f}, {p_value}, "
        f"{comparison['n_queries']:,} queries"
    )
    if p >= EVIDENCE:
        return (
            f"There is no evidence that {name} and {baseline} differ in {metric}: "
            f"{difference:+.4f} ({change})."
        )
    better = "better" if difference > 0 else "worse"
    return f"{name} is {better} than {baseline} by {abs(difference):.4f} {metric} ({change})."
