"""The features in a report: their importances, and the curves of additive models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from marginrank._utils.types import Floats, Integers
from marginrank.data.ranking_data import RankingData
from marginrank.models import AdditiveModel
from marginrank.models.additive_model import Curve
from marginrank.reporting.resampling import bootstrap_ratios, interval_of
from marginrank.reporting.terms import Terms, largest_first, squares_by_query

MOST_SHOWN = 30
MOST_CURVES = 12
DENSITY_BINS = 24
DENSITY_SAMPLE = 1 << 17  # approximate number of documents for the histograms of features


def importance_of(terms: Terms, data: RankingData, seed: int) -> list[dict[str, Any]]:
    """Return the most important features (or pairs of features) with bootstrap intervals.

    `terms` are the contributions of features to the score. The importance is the within-query
    standard deviation of the contribution; for a linear model, this is |weight| times the
    within-query standard deviation of the feature.
    """
    spread = terms.within_queries(data)
    columns = np.sort(largest_first(spread, MOST_SHOWN))
    if columns.size == 0:
        return []
    squares = squares_by_query(terms, data, columns)
    sizes = np.repeat(data.queries.sizes[:, None].astype(np.float64), columns.size, axis=1)
    draws = np.sqrt(bootstrap_ratios(squares, sizes, seed))
    rows = [
        _described(terms, int(column), float(spread[column]), draws[:, at])
        for at, column in enumerate(columns)
    ]
    return sorted(rows, key=lambda row: -row["importance"])


def _described(terms: Terms, column: int, spread: float, draws: Floats) -> dict[str, Any]:
    low, high = interval_of(draws)
    weight = None if terms.weights is None else float(terms.weights[column])
    shown = {"term": column, "feature": terms.names[column], "weight": weight}
    return {**shown, "importance": spread, "low": low, "high": high}


def curves_of_record(
    model: Any, data: RankingData, importance: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the curves of the most important features, with histograms of the features' values.

    The list is empty if the model is not additive.
    """
    if not isinstance(model, AdditiveModel):
        return []
    shown = [row for row in importance if row["term"] < model.n_features][:MOST_CURVES]
    step = max(data.n_documents // DENSITY_SAMPLE, 1)
    X = data.X[np.arange(0, data.n_documents, step)]
    return [
        {"feature": row["feature"], **_described_curve(model.curves[row["term"]], X, row["term"])}
        for row in shown
    ]


def _described_curve(curve: Curve, X: Any, column: int) -> dict[str, Any]:
    values = X[:, [column]]
    values = np.ravel(values.toarray() if hasattr(values, "toarray") else values)
    known = values[~np.isnan(values)].astype(np.float64)
    described = {
        "knots": curve.knots.tolist(),
        "values": curve.values.tolist(),
        "missing": float(curve.missing),
        "share_missing": float(np.mean(np.isnan(values))),
        "categorical": curve.categorical,
        "categories": None if curve.categories is None else curve.texts,
    }
    if curve.categorical:
        counts = np.array([np.sum(known == knot) for knot in curve.knots])
        return {**described, "density": _shares(counts), "edges": []}
    ends = curve.knots[[0, -1]]
    low, high = min(ends[0], _quantile(known, 0.01)), max(ends[1], _quantile(known, 0.99))
    if not low < high:
        return {**described, "density": [], "edges": []}
    counts, edges = np.histogram(known, bins=DENSITY_BINS, range=(low, high))
    return {**described, "density": _shares(counts), "edges": edges.tolist()}


def _quantile(values: Floats, share: float) -> float:
    return float(np.quantile(values, share)) if values.size else 0.0


def _shares(counts: Integers) -> list[float]:
    return (counts / max(int(counts.sum()), 1)).tolist()  # type: ignore[no-any-return]
