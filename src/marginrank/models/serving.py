"""A linear model in a service: one query at a time, without scikit-learn."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginrank._utils.ordering import places_of_largest
from marginrank._utils.parameters import check_integer
from marginrank._utils.types import Floats, Integers
from marginrank.data.validation import as_matrix, check_features, real_array
from marginrank.models._features import require_features
from marginrank.models.arrow_scores import column_names, is_arrow, scores_of_columns, vectors_of
from marginrank.models.linear_model import LinearModel, check_weights

FEW = 256  # documents that are sorted sooner than parted
PLAIN = {np.ndarray, list, tuple, float, int, np.float64, np.float32, np.int64}


class RankedDocuments(NamedTuple):
    """Documents of a query from the best one down.

    Attributes
    ----------
    documents : ndarray of int64
        Their places in what was given, counted from 0; equal scores stay in that order.
    scores : ndarray of float64
        Their scores.
    """

    documents: Integers
    scores: Floats


class LinearScorer:
    """Ranks the documents of one query after the other by a linear model.

    It loads no scikit-learn and checks little, so that a query of a hundred documents takes a few
    microseconds. It is not changed by what it does: threads may share it.

    Parameters
    ----------
    model : LinearModel, or fitted linear estimator of marginrank
        As :func:`marginrank.models.read_model` gives it, or :func:`marginrank.as_linear_model` of a
        pipeline. Later fits of an estimator do not change it.

    Attributes
    ----------
    coef : ndarray of shape (n_features,)
        The weights.
    feature_names : list of str or None
        Names of the features, by which those of dicts and Arrow batches are found.

    Examples
    --------
    >>> from marginrank import LinearScorer, RankSVM, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> scorer = LinearScorer(RankSVM().fit(X, y, qid=qid))
    >>> one_query = X[qid == 3]
    >>> best = scorer.top_k(one_query, 2)
    >>> best.documents.size, bool(best.scores[0] >= best.scores[1])
    (2, True)
    """

    def __init__(self, model: Any) -> None:
        if hasattr(model, "to_linear_model"):
            model = model.to_linear_model()
        if not isinstance(model, LinearModel):
            raise TypeError(
                f"{type(model).__name__} is no linear model; give what read_model, as_linear_model "
                "or a fit of RankSVM returns."
            )
        check_weights(model)
        self.coef = np.array(model.coef, dtype=np.float64)
        self.feature_names = model.feature_names
        weighed = np.flatnonzero(self.coef)
        self._weights = self.coef[weighed]  # those that are not zero, and whose they are
        names = model.feature_names
        self._weighed = [] if names is None else [names[k] for k in weighed.tolist()]
        self._are_distinct = len(set(self._weighed)) == len(self._weighed)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a linear model file of any format, see :func:`marginrank.load_model`."""
        from marginrank.models.formats import read_model  # late: a model in memory needs no reader

        return cls(read_model(path))

    def scores(self, features: Any) -> Floats:
        """Return the scores of documents, of one query or of several.

        Parameters
        ----------
        features : array, sparse matrix, dict, data frame, or RecordBatch, Table or Array of pyarrow
            What documents have: an array of shape (n_documents, n_features); or a dict of a column
            a feature, by name, where a number stands for all documents; or the columns of an Arrow
            batch, by name, which are read where they are. Of the latter two, columns that the model
            does not know, or does not weigh, are not looked at. A data frame is a dict of its
            columns, or an array if the model knows no names. An Arrow array of lists of n_features
            numbers each, such as embeddings have, is an array that is not copied.

        Returns
        -------
        ndarray of shape (n_documents,)
            Of an array, bitwise what ``predict`` returns.
        """
        if isinstance(features, Mapping):
            scores = self._of_columns(features)
        elif is_arrow(features):
            scores = self._of_arrow(features)
        elif self.feature_names is not None and hasattr(features, "columns"):
            scores = self._of_columns(_columns_of(features))
        else:
            scores = self._of_array(features)
        if not np.isfinite(scores.sum()):
            _check_finite_scores(scores)
        return scores

    def rank_one(self, features: Any) -> RankedDocuments:
        """Return all documents of a query from the best one down.

        Parameters
        ----------
        features : array, sparse matrix, dict, data frame, or RecordBatch, Table or Array of pyarrow
            The documents of one query, as for :meth:`scores`.

        Returns
        -------
        RankedDocuments
            Their places and scores.
        """
        scores = self.scores(features)
        order = np.argsort(-scores, kind="stable")
        return RankedDocuments(order, scores[order])

    def top_k(self, features: Any, k: int) -> RankedDocuments:
        """Return the best documents of a query, without sorting the others.

        Parameters
        ----------
        features : array, sparse matrix, dict, data frame, or RecordBatch, Table or Array of pyarrow
            The documents of one query, as for :meth:`scores`.
        k : int
            How many; all, if there are fewer.

        Returns
        -------
        RankedDocuments
            The first k of :meth:`rank_one`, also where scores are equal.
        """
        check_integer("k", k, at_least=1)
        scores = self.scores(features)
        chosen = places_of_largest(scores, k if scores.size > FEW else scores.size)
        best = chosen[np.argsort(-scores[chosen], kind="stable")][:k]
        return RankedDocuments(best, scores[best])

    def _of_array(self, X: Any) -> Floats:
        if getattr(X, "shape", None) == (0, self.coef.size):
            return np.zeros(0)  # a query that found nothing
        if not _is_plain(X):
            X = check_features(X)
        require_features(X, self.coef.size)
        return as_matrix(X).dot(self.coef, None, 1)

    def _of_arrow(self, batch: Any) -> Floats:
        if hasattr(batch, "type"):
            return self._of_array(vectors_of(batch))
        self._require_columns(column_names(batch))
        return scores_of_columns(
            batch, self._weighed, lambda rows: as_matrix(rows).dot(self._weights, None, 1)
        )

    def _of_columns(self, columns: Mapping[str, ArrayLike]) -> Floats:
        self._require_columns(columns)
        if not self._weighed:
            return np.zeros(_n_documents(columns.values()))
        table = _table([columns[name] for name in self._weighed], self._weighed)
        return as_matrix(np.ascontiguousarray(table.T)).dot(self._weights, None, 1)

    def _require_columns(self, given: Iterable[str]) -> None:
        """Refuse to do without a feature that the model weighs."""
        if self.feature_names is None:
            raise ValueError(
                "the model has no names of features, so that columns cannot be found by name; give "
                "an array, or train on data whose features have names."
            )
        if not self._are_distinct:
            raise ValueError(
                "two features of the model have one name, so that columns cannot be found by name; "
                "give an array."
            )
        known = frozenset(given)
        absent = [name for name in self._weighed if name not in known]
        if absent:
            more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
            raise ValueError(
                f"the feature {absent[0]!r}{more} of the model is not there; give a column for "
                "each, of zeros if need be."
            )


def _is_plain(X: Any) -> bool:
    """Tell at once that X needs no check, as most arrays in a service do not."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype.char in "fd"
        and X.flags.c_contiguous
        and X.flags.aligned
        and X.dtype.isnative
        and X.size > 0
    )


def _columns_of(frame: Any) -> dict[str, Any]:
    """Return the columns of a data frame, of pandas or another library."""
    return {name: frame[name] for name in frame.columns}


def _n_documents(columns: Iterable[ArrayLike]) -> int:
    """Return how many documents columns have; numbers alone are one document."""
    sizes = [np.shape(column)[0] if np.ndim(column) else None for column in columns]
    return max((n for n in sizes if n is not None), default=min(len(sizes), 1))


def _table(values: Sequence[ArrayLike], names: Sequence[str]) -> NDArray[np.float64]:
    """Return a row a feature; at once if all are columns of numbers, as they are in a service."""
    if {type(value) for value in values} <= PLAIN:
        try:
            table = np.array(values)
        except ValueError:  # numbers that stand for all documents, or columns of several lengths
            return _broadcast(values, names)
        if table.ndim <= 2 and table.dtype.kind in "fiu":
            return table.reshape(len(values), -1).astype(np.float64, copy=False)
    return _broadcast(values, names)


def _broadcast(values: Sequence[ArrayLike], names: Sequence[str]) -> NDArray[np.float64]:
    """Return a row a feature, and name the feature if it has no number for each document."""
    columns = [
        real_array(value, f"columns[{name!r}]") for value, name in zip(values, names, strict=True)
    ]
    n = _n_documents(columns)
    for name, column in zip(names, columns, strict=True):
        if column.ndim > 1 or column.size not in (n, column.ndim == 0):
            raise ValueError(
                f"the feature {name!r} has the shape {column.shape}, and others have {n} documents."
            )
    return np.stack([np.broadcast_to(column, n).astype(np.float64) for column in columns])


def _check_finite_scores(scores: Floats) -> None:
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        raise ValueError(
            f"the score of document {bad[0]} is {scores[bad[0]]}: one of its features is missing "
            "or too large; put a number there."
        )
