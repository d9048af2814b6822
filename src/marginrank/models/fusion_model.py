"""Fusion models (weights of retrieval signals) as plain data, their scores and JSON files.

``docs/reference/formats.md`` describes the files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from marginrank._utils.atomic_files import atomic_write
from marginrank._utils.parameters import check_choice, check_integer, check_number
from marginrank._utils.types import Floats
from marginrank.data.ranking_data import RankingData
from marginrank.data.runs import ByDocument, as_run, best_first
from marginrank.data.score_normalization import NORMALIZERS, RetrievedScores, normalize
from marginrank.models.json_fields import NOT_SAVED, Fields, format_to_json, parameters_to_json

FORMAT = "marginrank-fusion-model"
RRF_CONSTANT = 60.0  # the default of Elasticsearch and OpenSearch
SUM_TOLERANCE = 1e-6
# A feature of a query by name, for each query: {"q1": {"length": 3}}.
QueryFeatures = Mapping[str, Mapping[str, float]]


class QueryFeature(NamedTuple):
    """A number per query, such as its length, that changes the weights of a fusion model.

    With z = (value − low) / (high − low), clipped to 0 … 1, the weights change by z · `changes`.
    """

    name: str
    low: float
    high: float
    changes: tuple[float, ...]  # one change per signal

    def positions(self, values: Floats) -> Floats:
        """Return `values` of the feature scaled to 0 … 1: (value − low) / (high − low), clipped."""
        return np.clip((values - self.low) / (self.high - self.low), 0.0, 1.0)


@dataclass(frozen=True)
class FusionModel:
    """A fusion model as plain data: weights of retrieval signals, and how scores are normalized.

    A signal is a retriever such as BM25. The score of a document is the weighted sum of its
    normalized scores by all signals. A signal that did not retrieve the document adds 0.

    Attributes
    ----------
    signals : tuple of str
        Names of the signals, such as ``("bm25", "dense")``.
    weights : ndarray of shape (n_signals,)
        One weight per signal. If all are non-negative and no query feature changes them, they sum
        to 1.
    normalizer : {"minmax", "minmax_floor", "zscore", "l2", "dbsf", "rrf", "none"}
        Normalization of the scores of one signal and one query; see
        ``docs/how_to/hybrid_search.md``.
    rrf_constant : float
        c of "rrf": the normalized score is 1 / (c + rank), with ranks from 1.
    depth : int
        Number of top documents of each signal that count in a query; documents at greater ranks
        count as not retrieved.
    query_features : tuple of QueryFeature
        Features of queries on which the weights depend.
    parameters : dict
        The parameters of the estimator; empty if the weights come from elsewhere.

    Examples
    --------
    >>> from marginrank.models import FusionModel
    >>> model = FusionModel(("bm25", "dense"), [0.25, 0.75], "rrf")
    >>> run = model.fuse({"bm25": {"q": {"a": 9.0, "b": 7.0}}, "dense": {"q": {"b": 0.8}}})
    >>> [(document, round(score, 4)) for document, score in run["q"].items()]
    [('b', 0.0163), ('a', 0.0041)]
    """

    signals: tuple[str, ...]
    weights: Floats
    normalizer: str = "minmax"
    rrf_constant: float = RRF_CONSTANT
    depth: int = 100
    query_features: tuple[QueryFeature, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)
    kind: ClassVar[str] = "marginrank FusionRanker"  # library and estimator

    def __post_init__(self) -> None:
        """Raise ValueError if the fields contradict each other."""
        object.__setattr__(self, "signals", tuple(self.signals))
        object.__setattr__(self, "weights", np.array(self.weights, dtype=np.float64))
        if not self.signals or len(set(self.signals)) < len(self.signals):
            raise ValueError(f"signals={self.signals!r} must be one or more different names.")
        check_choice("normalizer", self.normalizer, NORMALIZERS)
        check_number("rrf_constant", self.rrf_constant, allow_equal=True)
        check_integer("depth", self.depth, at_least=1)
        self._check_weights()

    def _check_weights(self) -> None:
        weights, n = self.weights, len(self.signals)
        if weights.shape != (n,) or not np.isfinite(weights).all():
            raise ValueError(f"weights={weights.tolist()} must be {n} finite numbers.")
        off = abs(weights.sum() - 1.0) > SUM_TOLERANCE
        if not self.query_features and (weights >= 0.0).all() and off:
            raise ValueError(f"weights sum to {weights.sum():g}; divide them by their sum.")
        for one in self.query_features:
            values = [one.low, one.high, *one.changes]
            if len(one.changes) != n or not np.isfinite(values).all() or not one.low < one.high:
                raise ValueError(
                    f"query feature {one.name!r} must have low < high, and one finite change per "
                    f"signal ({n})."
                )

    def __repr__(self) -> str:
        """Return the class name with the normalizer and the weight of each signal."""
        pairs = zip(self.signals, self.weights, strict=True)
        weights = ", ".join(f"{name}: {weight:.3g}" for name, weight in pairs)
        return f"FusionModel({self.normalizer}, {weights})"

    def fuse(self, runs: Any, query_features: QueryFeatures | None = None) -> ByDocument:
        """Return the fused run: the documents of each query by descending weighted score.

        Parameters
        ----------
        runs : mapping or RankingData
            One run per signal, by the signal's name: a dict as from :func:`~marginrank.load_run`, a
            data frame or a ranx.Run. If a run lacks a query, it has retrieved no documents for it.
            Or data from :meth:`~marginrank.RankingData.from_runs`.
        query_features : mapping, optional
            The features of each query, ``{query: {feature: number}}``.

        Returns
        -------
        dict
            ``{query: {document: score}}``.
        """
        if isinstance(runs, RankingData):
            return best_first(runs.to_run(self.predict(runs, query_features)))
        missing = [name for name in self.signals if name not in runs]
        if missing:
            raise ValueError(f"runs has no {missing[0]!r}; pass a run for each of {self.signals}.")
        own = {name: as_run(runs[name], name) for name in self.signals}
        if not any(any(run.values()) for run in own.values()):
            return {}
        return self.fuse(RankingData.from_runs(own, depth=self.depth), query_features)

    def predict(self, data: RankingData, query_features: QueryFeatures | None = None) -> Floats:
        """Return the fused score of each row of data that RankingData.from_runs returned."""
        weights = self.weights_of([str(one) for one in data.query_ids], query_features)
        queries = data.queries
        by_row = weights[queries.query_of_document]
        scores = np.zeros(data.n_documents)
        columns = signal_scores(data, self.signals, self.normalizer, self.rrf_constant, self.depth)
        for weight, column in zip(by_row.T, columns.T, strict=True):
            scores += weight * column
        return queries.by_row(scores)

    def weights_of(
        self, queries: Sequence[str], query_features: QueryFeatures | None = None
    ) -> Floats:
        """Return the weights of the signals for each query, of shape (n_queries, n_signals)."""
        weights = np.tile(self.weights, (len(queries), 1))
        if self.query_features:
            names = [one.name for one in self.query_features]
            values = query_feature_values(queries, query_features, names)
            for one, column in zip(self.query_features, values.T, strict=True):
                weights += np.outer(one.positions(column), one.changes)
        return weights


def signal_scores(
    data: RankingData,
    signals: Sequence[str],
    normalizer: str,
    rrf_constant: float = RRF_CONSTANT,
    depth: int = 100,
) -> Floats:
    """Return the normalized scores of documents, one column per retrieval signal.

    `data` comes from :meth:`~marginrank.RankingData.from_runs`. Rows are grouped by query.
    """
    names = list(data.feature_names or ())
    for name in signals:
        for column in (name, f"{name}_rank", f"{name}_missing"):
            if column not in names:
                raise ValueError(
                    f"the data has no feature {column!r}; create the data with "
                    "RankingData.from_runs and one run for each of "
                    f"{', '.join(map(repr, signals))}."
                )
    X = np.asarray(data.queries.grouped(np.asarray(data.X)), dtype=np.float64)
    columns = []
    for name in signals:
        score, rank, missing = (
            X[:, names.index(f"{name}{end}")] for end in ("", "_rank", "_missing")
        )
        retrieved = (missing == 0.0) & (rank <= depth)
        signal = RetrievedScores(score, rank, retrieved, data.queries.offsets)
        columns.append(normalize(signal, normalizer, rrf_constant))
    return np.column_stack(columns)


def query_feature_values(
    queries: Sequence[str], features: QueryFeatures | None, names: Sequence[str]
) -> Floats:
    """Return the values of query features: one row per query, one column per name.

    Raise ValueError if a query lacks a feature.
    """
    rows = []
    for query in queries:
        own = (features or {}).get(query)
        if own is None:
            raise ValueError(
                f"query_features has no query {query!r}; pass {{query: {{feature: number}}}} with "
                f"the features {', '.join(map(repr, names))}."
            )
        for name in names:
            if name not in own or not np.isfinite(own[name]):
                raise ValueError(
                    f"query_features[{query!r}] has no finite number for {name!r}; pass one."
                )
        rows.append([float(own[name]) for name in names])
    return np.array(rows, dtype=np.float64).reshape(len(queries), len(names))


def write(model: FusionModel, path: str | os.PathLike[str]) -> None:
    """Write a fusion model as JSON, one field per line; raise ValueError if it is invalid."""
    content = {
        **format_to_json(FORMAT),
        "parameters": parameters_to_json(model.parameters),
        "signals": list(model.signals),
        "weights": model.weights.tolist(),
        "normalizer": model.normalizer,
        "rrf_constant": float(model.rrf_constant),
        "depth": int(model.depth),
        "query_features": [
            {"name": one.name, "low": one.low, "high": one.high, "changes": list(one.changes)}
            for one in model.query_features
        ],
    }
    _parse(Fields("", content, NOT_SAVED))
    lines = [f" {json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in content.items()]
    with atomic_write(path) as file:
        file.write(("{\n" + ",\n".join(lines) + "\n}\n").encode("ascii"))


def is_fusion_model(path: str) -> bool:
    """Return whether the first bytes of a file match a fusion model."""
    with open(path, "rb") as file:
        return f'"{FORMAT}"'.encode() in file.read(128)


def read(path: str) -> FusionModel:
    """Read a fusion model from a JSON file."""
    with open(path, "rb") as file:
        return _parse(Fields.parsed(path, file.read(), FORMAT, "fusion"))


def _parse(fields: Fields) -> FusionModel:
    signals = fields.get("signals", "a list of strings")
    n = len(signals)
    features = []
    for k, one in enumerate(fields.get("query_features", "a list of objects")):
        inner = fields.inside(one, f", in query feature {k}")
        low, high = (float(inner.get(name, "a finite number")) for name in ("low", "high"))
        changes = inner.list_of(n, "changes", "a list of finite numbers")
        features.append(QueryFeature(inner.get("name", "a string"), low, high, tuple(changes)))
    weights = fields.list_of(n, "weights", "a list of finite numbers")
    stored = {
        "normalizer": fields.get("normalizer", "a string"),
        "rrf_constant": float(fields.get("rrf_constant", "a finite number")),
        "depth": fields.get("depth", "a positive integer"),
        "parameters": fields.parameters("FusionRanker"),
    }
    try:
        return FusionModel(tuple(signals), weights, query_features=tuple(features), **stored)
    except ValueError as error:
        raise fields.damaged(str(error).rstrip(".")) from error
