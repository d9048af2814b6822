"""The terms of a score: the contributions of features, or pairs of features, to the score.

A linear model has one term per feature, weight × value. An additive model has one term per feature,
the value of its curve, and one per interaction of two features.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from marginrank._utils.feature_names import names_of_all
from marginrank._utils.ordering import places_of_largest
from marginrank._utils.types import Floats, Integers
from marginrank.data.queries import bounded_ranges
from marginrank.data.ranking_data import RankingData
from marginrank.fit.feature_scales import QueryScale
from marginrank.models import AdditiveModel, KernelModel, LinearModel
from marginrank.models.additive_model import contributions

CHUNK_ENTRIES = 1 << 22  # entries of X whose terms are in memory at a time


class TermTable(NamedTuple):
    """Contributions of features (or pairs of features) to the scores of some documents.

    Features that contribute nothing to any score may be omitted.

    Attributes
    ----------
    columns : ndarray of shape (n_columns,)
        Numbers of the features; pairs of features are numbered after all features.
    values : ndarray of shape (n_documents, n_columns)
        Values of the features; NaN for missing values and for pairs of features.
    terms : ndarray of shape (n_documents, n_columns)
        Contribution of each feature to the score.
    """

    columns: Integers
    values: Any
    terms: Floats


class Terms(Protocol):
    """Interface to the contributions of features to the scores of a model."""

    names: list[str]
    weights: Floats | None  # the weights of a linear model; None for other models

    def of_rows(self, X: Any, columns: Integers | None = None) -> TermTable:
        """Return the contributions of features to the scores of the rows of X.

        `columns` are the numbers of the features; by default all that contribute to a score.
        """

    def within_queries(self, data: RankingData) -> Floats:
        """Return the within-query standard deviation of each feature's contribution."""


class LinearTerms:
    """Contributions of features to the scores of a linear model: weight times value."""

    def __init__(self, weights: Floats, names: list[str]) -> None:
        self.weights: Floats | None = weights
        self._weights = weights
        self.names = names

    def of_rows(self, X: Any, columns: Integers | None = None) -> TermTable:
        """Return the contributions of features to the scores of the rows of X.

        `columns` are the numbers of the features; by default all that contribute to a score.
        """
        if columns is None:
            columns = np.flatnonzero(self._weights)
            if sp.issparse(X):
                columns = np.intersect1d(columns, X.indices)
        values = X[:, columns]
        if sp.issparse(values):
            values = values.toarray()
        return TermTable(columns, values, values.astype(np.float64) * self._weights[columns])

    def within_queries(self, data: RankingData) -> Floats:
        """Return the within-query standard deviation of each feature's contribution."""
        scale = QueryScale()
        scale.add(data)
        return np.abs(self._weights) * scale.values()


class AdditiveTerms:
    """Contributions of features to the scores of an additive model: its curves and interactions."""

    weights: Floats | None = None

    def __init__(self, model: AdditiveModel, names: list[str]) -> None:
        self._model = model
        self.names = [*names, *(one.name(names) for one in model.interactions)]

    def of_rows(self, X: Any, columns: Integers | None = None) -> TermTable:
        """Return the contributions of features and pairs to the scores of the rows of X.

        By default, all features and pairs are returned.
        """
        X = X.toarray() if sp.issparse(X) else X
        model = self._model
        terms = contributions(model.curves, X, model.interactions)
        values = np.full(terms.shape, np.nan)
        values[:, : model.n_features] = X
        table = TermTable(np.arange(terms.shape[1]), values, terms)
        if columns is None:
            return table
        return TermTable(columns, values[:, columns], terms[:, columns])

    def within_queries(self, data: RankingData) -> Floats:
        """Return the within-query standard deviation of each feature's (or pair's) contribution."""
        squares = squares_by_query(self, data, np.arange(len(self.names)))
        spread: Floats = np.sqrt(squares.sum(axis=0) / data.n_documents)
        return spread


def terms_of(model: Any) -> Terms | None:
    """Return the contributions of features to the scores of a model.

    Return None if a score is not a sum over features, for example in a nonlinear kernel model.
    """
    if isinstance(model, AdditiveModel):
        return AdditiveTerms(model, names_of_all(model.feature_names, model.n_features))
    weights = None
    if isinstance(model, KernelModel):
        weights = model.weights()
    elif isinstance(model, LinearModel):
        weights = model.coef
    if weights is None:
        return None
    return LinearTerms(weights, names_of_all(model.feature_names, model.n_features))


def rows_of(data: RankingData, documents: Integers) -> Any:
    """Return the rows of X of some documents, given by indices in query order."""
    rows = data.queries.rows
    return data.X[documents if rows is None else rows[documents]]


def squares_by_query(terms: Terms, data: RankingData, columns: Integers) -> Floats:
    """Return sums of squared deviations of contributions to the score from their query's mean.

    The result has one row per query and one column per feature.
    """
    offsets, parts = data.queries.offsets, []
    is_sparse = sp.issparse(data.X) and terms.weights is not None
    width = columns.size if is_sparse else len(terms.names)
    for first, last in bounded_ranges(offsets, CHUNK_ENTRIES // max(width, 1)):
        own = offsets[first : last + 1]
        table = terms.of_rows(rows_of(data, np.arange(own[0], own[-1])), columns)
        starts, sizes = own[:-1] - own[0], np.diff(own)
        mean = np.add.reduceat(table.terms, starts) / sizes[:, None]
        parts.append(np.add.reduceat((table.terms - np.repeat(mean, sizes, axis=0)) ** 2, starts))
    return np.concatenate(parts)


def largest_first(values: Floats, most: int) -> Integers:
    """Return the indices of the `most` largest values above zero, largest first."""
    places = places_of_largest(values, most)
    places = places[np.argsort(-values[places], kind="stable")]
    return places[values[places] > 0]
