"""Fits of fusion weights: a weighted sum of retrieval signals that maximizes a ranking metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from marginrank import _core
from marginrank._utils.parameters import ParameterError, check_parameters, given
from marginrank._utils.threads import cached_property, serial_blas
from marginrank._utils.types import Booleans, Floats
from marginrank.data.ranking_data import RankingData
from marginrank.data.runs import as_qrels
from marginrank.fit.fusion_search import WeightSearch, lattice, unit
from marginrank.fit.metric_segments import LinearRankMetric
from marginrank.fit.sparse import SparseParameters, fit_sparse
from marginrank.metrics.binary_relevance import precision, recall
from marginrank.metrics.cumulative_gain import dcg, ndcg
from marginrank.metrics.names import Metric, get_metric, split_options
from marginrank.models.fusion_model import (
    FusionModel,
    QueryFeature,
    QueryFeatures,
    query_feature_values,
    signal_scores,
)
from marginrank.models.fusion_parameters import FusionDeclaration
from marginrank.models.parameters import recorded_parameters

# Metrics that are sums over documents of gain × discount(rank).
SUMS = (ndcg, dcg, precision, recall)


@dataclass(frozen=True, kw_only=True)
class FusionParameters(FusionDeclaration):
    """The validated parameters of :class:`~marginrank.FusionRanker`."""

    def __post_init__(self) -> None:
        check_parameters(self)
        rank_metric_of(self.metric)


def rank_metric_of(name: str) -> tuple[Metric, int | None]:
    """Return the function and the cut-off of a metric that fusion weights can be fitted to.

    Raise ParameterError for a metric that is not a sum over documents of gain × discount(rank).
    """
    function, options = split_options(get_metric(name))
    k = options.get("k")
    if function not in SUMS or (function is precision and k is None):
        raise ParameterError(
            given("metric", name),
            " must be ndcg, dcg or recall (also with a cut-off, such as ndcg@10), or p@k.",
        )
    return function, k


class JudgedSignals(NamedTuple):
    """Documents that at least one signal retrieved, and the labels of all judged documents."""

    data: RankingData  # from RankingData.from_runs
    signals: tuple[str, ...]
    labels: list[Floats]  # labels of all judged documents of each query, descending
    n_empty: int  # judged queries for which nothing was retrieved

    @classmethod
    def of(cls, runs: Any, qrels: Any, depth: int) -> JudgedSignals:
        """Return the runs of several signals, joined with qrels (relevance judgments).

        `runs` may also be the result of :meth:`RankingData.from_runs`, which contains labels.
        """
        if isinstance(runs, RankingData):
            return cls._of_data(runs, qrels)
        if not isinstance(runs, Mapping):
            raise TypeError(
                f"runs is a {type(runs).__name__}; pass {{'bm25': run, 'dense': run}}, or data "
                "from RankingData.from_runs."
            )
        if qrels is None:
            raise ValueError("qrels is missing; pass judgments, {query: {document: label}}.")
        qrels = as_qrels(qrels)
        data = RankingData.from_runs(runs, qrels, depth=depth)
        _require_relevant(data)
        labels = [_descending(list(qrels[query].values())) for query in data.query_ids]
        return cls(data, tuple(runs), labels, len(qrels) - data.n_queries)

    @classmethod
    def _of_data(cls, data: RankingData, qrels: Any) -> JudgedSignals:
        if qrels is not None:
            raise ValueError(
                "qrels cannot be combined with RankingData, which has labels; drop qrels."
            )
        if data.sample_weight is not None or data.query_weight is not None:
            raise ValueError("the data has weights, which fusion does not support; drop them.")
        names = list(data.feature_names or ())
        signals = tuple(names[::3])
        if not names or names != [
            f"{name}{end}" for name in signals for end in ("", "_rank", "_missing")
        ]:
            raise ValueError(
                "the data is not from RankingData.from_runs; create it with that method."
            )
        _require_relevant(data)
        y = data.queries.grouped(data.y)
        labels = [_descending(own) for own in np.split(y, data.queries.offsets[1:-1])]
        return cls(data, signals, labels, 0)

    @property
    def queries(self) -> list[str]:
        return [str(query) for query in self.data.query_ids]

    def gains(self, metric: str) -> tuple[Floats, Floats]:
        """Return the gain of each document and the discount of each rank, which define a metric.

        The metric is the sum of gain × discount(rank) over the documents of a query. Gains are in
        document order, and already divided by the ideal value of the query if the metric is
        normalized. Discounts begin with rank 0.
        """
        function, k = rank_metric_of(metric)
        longest = max(map(len, self.labels), default=0)
        longest = max(longest, int(self.data.queries.sizes.max()))
        top = longest if k is None else k
        ranks = np.arange(1.0, top + 1)
        by_gain = function in (ndcg, dcg)
        used = 1.0 / np.log2(ranks + 1.0) if by_gain else np.ones(top)
        divisors = np.ones(len(self.labels))
        if function is ndcg:
            divisors = np.array([own[:top] @ used[: own[:top].size] for own in self.labels])
        elif function is recall:
            divisors = np.array([np.sum(own > 0.0) for own in self.labels], dtype=np.float64)
        elif function is precision:
            divisors[:] = top
        y = np.maximum(self.data.queries.grouped(self.data.y).astype(np.float64), 0.0)
        gain = y if by_gain else (y > 0.0).astype(np.float64)
        divisors[divisors == 0.0] = 1.0  # nothing is relevant, so every gain is 0
        gain = gain / np.repeat(divisors, self.data.queries.sizes)
        return gain, np.concatenate([[0.0], used, [0.0]])

    def values(self, scores: Floats, metric: str) -> Floats:
        """Return the metric of each query for one score per document, in document order."""
        gain, discount = self.gains(metric)
        queries = self.data.queries
        order = _core.rank_documents(scores, queries.offsets, 1)
        place = np.arange(1, order.size + 1) - np.repeat(queries.offsets[:-1], queries.sizes)
        terms = gain[order] * discount[np.minimum(place, discount.size - 1)]
        values = np.bincount(queries.query_of_document, terms, queries.sizes.size)
        return values.astype(np.float64)


def _require_relevant(data: RankingData) -> None:
    """Raise ValueError if no document is relevant, because all weights are then equally good."""
    if not np.any(data.y > 0.0):
        raise ValueError(
            "no run retrieved a document with a label above 0, so there is nothing to learn; check "
            "the runs and the labels."
        )


def _descending(labels: Any) -> Floats:
    return np.sort(np.maximum(np.asarray(labels, dtype=np.float64), 0.0))[::-1]


class FusionProblem:
    """The metric on the training queries as a function of the fusion weights, for one normalizer.

    A column holds the normalized scores s of one signal. Each query feature z, scaled to 0 … 1,
    adds the columns s z and s (1 − z) for every signal: non-negative combinations of these columns
    are all weights that depend linearly on z and are never negative.
    """

    def __init__(
        self,
        judged: JudgedSignals,
        parameters: FusionDeclaration,
        normalizer: str,
        query_features: QueryFeatures | None = None,
    ) -> None:
        self._judged, self._parameters, self._normalizer = judged, parameters, normalizer
        constant, depth = parameters.rrf_constant, parameters.depth
        columns = signal_scores(judged.data, judged.signals, normalizer, constant, depth)
        # Divide raw scores by their root mean square: the lattice of weights assumes equal scales.
        raw = np.sqrt(np.mean(columns**2, axis=0))
        self._scale = np.where((normalizer == "none") & (raw > 0.0), raw, 1.0)
        columns = columns / self._scale
        self._ranges = _ranges(judged.queries, query_features)
        if self._ranges:
            names = [one.name for one in self._ranges]
            values = query_feature_values(judged.queries, query_features, names)
            sizes = judged.data.queries.sizes
            base = columns
            for one, column in zip(self._ranges, values.T, strict=True):
                z = np.repeat(one.positions(column), sizes)[:, None]
                columns = np.hstack([columns, base * z, base * (1.0 - z)])
        self._columns = columns
        queries = judged.data.queries
        gain, discount = judged.gains(parameters.metric)
        self._metric = LinearRankMetric.of(
            columns, queries.offsets, gain, discount, positive=parameters.positive
        )
        self._lattice = self._padded(lattice(len(judged.signals)))

    @cached_property
    def _search(self) -> WeightSearch:
        """The search for weights, with the metric of each query for each lattice vector."""
        with serial_blas():
            values = self._metric.values(self._lattice)
        equal = self._lattice.mean(axis=0)
        positive = self._parameters.positive
        return WeightSearch(self._metric, self._lattice, values, equal, positive=positive)

    def fit(self, used: Booleans, seed: int) -> Floats:
        """Return weights that are fitted to the queries in the mask `used`.

        There is one weight per column: per signal, or per product of a signal and a query feature.
        """
        n_bootstraps = self._parameters.n_bootstraps
        rng, weight = np.random.default_rng(seed), used.astype(np.float64)
        search = self._search
        with serial_blas():
            if not search.has_one_line:
                search = search.with_starts(self._convex_start(used))
            if n_bootstraps:
                return search.averaged(weight, rng, n_bootstraps)
            return search.best(weight, rng)

    def grid(self, used: Booleans) -> Floats:
        """Return the best of the fusion weights on a regular grid, for the queries in `used`."""
        best: Floats = self._lattice[int(np.argmax(used.astype(np.float64) @ self._search.values))]
        return best

    def equal(self) -> Floats:
        """Return equal weights for all normalized retrieval signals: a baseline for a fit."""
        weights: Floats = self._padded(unit(self._scale)[None])[0]
        return weights

    def alone(self, signal: int) -> Floats:
        """Return weight 1 for one retrieval signal and 0 for the others: a baseline."""
        weights: Floats = np.eye(self._columns.shape[1])[signal]
        return weights

    def values(self, weights: Floats) -> Floats:
        """Return the metric of each training query for the given fusion weights."""
        with serial_blas():
            values: Floats = self._metric.values(weights[None])[:, 0]
        return values

    def model(self, weights: Floats) -> FusionModel:
        """Return a FusionModel with the given weights, divided by the sum of their magnitudes."""
        n = len(self._judged.signals)
        base, *changes = (part / self._scale for part in weights.reshape(-1, n))
        falling = changes[1::2]  # weights of s (1 − z)
        base = base + sum(falling)
        total = np.abs(base).sum() or 1.0
        slopes = [(up - down) / total for up, down in zip(changes[::2], falling, strict=True)]
        return FusionModel(
            signals=self._judged.signals,
            weights=base / total,
            normalizer=self._normalizer,
            rrf_constant=float(self._parameters.rrf_constant),
            depth=int(self._parameters.depth),
            query_features=tuple(
                one._replace(changes=tuple(slope.tolist()))
                for one, slope in zip(self._ranges, slopes, strict=True)
            ),
            parameters=recorded_parameters("FusionRanker", self._parameters),
        )

    def _padded(self, weights: Floats) -> Floats:
        """Return weights of the signals, with zeros appended for the query-feature columns."""
        more = self._columns.shape[1] - weights.shape[1]
        return np.hstack([weights, np.zeros((len(weights), more))])

    def _convex_start(self, used: Booleans) -> Floats:
        """Return the weights of a sparse RankSVM on the columns, one row; no row without pairs."""
        queries = self._judged.data.queries
        y = queries.grouped(self._judged.data.y)
        kept = np.repeat(used, queries.sizes)
        qid = queries.query_of_document[kept]
        data = RankingData(self._columns[kept], y[kept], qid) if kept.any() else None
        if data is None or data.n_pairs == 0:
            return self._lattice[:0]
        parameters = SparseParameters(positive=self._parameters.positive, scale=None, tol=1e-3)
        w = fit_sparse(data, parameters).coef
        return unit(w)[None] if np.any(w) else self._lattice[:0]


def _ranges(queries: list[str], features: QueryFeatures | None) -> list[QueryFeature]:
    """Return each query feature with its minimum and maximum over the training queries."""
    if not features:
        return []
    first = features.get(queries[0])
    names = sorted(first) if first else []
    values = query_feature_values(queries, features, names)
    for name, column in zip(names, values.T, strict=True):
        if np.ptp(column) == 0.0:
            raise ValueError(
                f"query feature {name!r} is {column[0]:g} for every query; drop it from "
                "query_features."
            )
    ends = zip(names, values.min(axis=0).tolist(), values.max(axis=0).tolist(), strict=True)
    return [QueryFeature(name, low, high, ()) for name, low, high in ends]
