"""LinearScorer: fast scoring with a linear model in a service, without scikit-learn."""

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
from marginrank.models.features import require_features
from marginrank.models.linear_model import LinearModel, check_weights

FEW = 256  # number of documents up to which sorting is faster than partitioning
BLOCK = 1 << 12  # documents of Arrow data scored at a time, which fit in the cache
PLAIN = {np.ndarray, list, tuple, float, int, np.float64, np.float32, np.int64}


class RankedDocuments(NamedTuple):
    """Documents of a query, the best first: their positions in the input and their scores.

    Attributes
    ----------
    documents : ndarray of int64
        Positions in the input, from 0; documents with equal scores keep their order.
    scores : ndarray of float64
        The score of each of these documents.
    """

    documents: Integers
    scores: Floats


class LinearScorer:
    """Rank the documents of one query at a time with a linear model.

    This class does not import scikit-learn and checks little, so a query of a hundred documents
    takes a few microseconds. It is immutable, so threads may share it.

    Parameters
    ----------
    model : LinearModel, or fitted linear estimator of marginrank
        Result of :func:`marginrank.models.read_model`, of :func:`marginrank.as_linear_model` for a
        pipeline, or of a fit. Later fits of an estimator do not change the scorer.

    Attributes
    ----------
    coef : ndarray of shape (n_features,)
        The weights.
    feature_names : list of str or None
        Names of the features, which select the columns of dicts, data frames and Arrow batches.

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
                "model must be a LinearModel or a fitted linear estimator, got "
                f"{type(model).__name__}; pass the result of read_model or of as_linear_model."
            )
        check_weights(model)
        self.coef = np.array(model.coef, dtype=np.float64)
        self.feature_names = model.feature_names
        weighed = np.flatnonzero(self.coef)
        self._weights = self.coef[weighed]  # nonzero weights, and the names of their features
        names = model.feature_names
        self._weighed = [] if names is None else [names[k] for k in weighed.tolist()]
        self._are_distinct = len(set(self._weighed)) == len(self._weighed)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Create a scorer from a file with a linear model, see :func:`marginrank.load_model`."""
        from marginrank.models.formats import read_model  # only needed for files

        return cls(read_model(path))

    def scores(self, features: Any) -> Floats:
        """Return the scores of documents, which may belong to one query or to several.

        Parameters
        ----------
        features : array, sparse matrix, dict, data frame, or RecordBatch, Table or Array of pyarrow
            The documents. An array has shape (n_documents, n_features). A dict has one column per
            feature, by name; a number is the same value for all documents. Columns of data frames
            and Arrow batches are selected by name, too; columns without a weight are ignored. If
            the model has no feature names, a data frame is read as an array. An Arrow array of
            lists of n_features numbers, such as embeddings, is read without a copy.

        Returns
        -------
        ndarray of shape (n_documents,)
            The scores; for an array, bitwise the result of ``predict``.
        """
        if isinstance(features, Mapping):
            scores = self._of_columns(features)
        elif (
            type(features).__module__.partition(".")[0] == "pyarrow"
        ):  # compare the name of the module, so that pyarrow is not imported
            scores = self._of_arrow(features)
        elif self.feature_names is not None and hasattr(features, "columns"):
            scores = self._of_columns({name: features[name] for name in features.columns})
        else:
            scores = self._of_array(features)
        if not np.isfinite(scores.sum()):
            bad = np.flatnonzero(~np.isfinite(scores))
            if bad.size:
                raise ValueError(
                    f"the score of document {bad[0]} is {scores[bad[0]]}, because a feature is "
                    "missing or too large; replace it by a finite number."
                )
        return scores

    def rank_one(self, features: Any) -> RankedDocuments:
        """Rank the documents of one query by descending score.

        Parameters
        ----------
        features : array, sparse matrix, dict, data frame, or RecordBatch, Table or Array of pyarrow
            The documents of one query, as for :meth:`scores`.

        Returns
        -------
        RankedDocuments
            The positions of the documents in the input and their scores, the best first.
        """
        scores = self.scores(features)
        order = np.argsort(-scores, kind="stable")
        return RankedDocuments(order, scores[order])

    def top_k(self, features: Any, k: int) -> RankedDocuments:
        """Return the k best documents of one query, without sorting the others.

        Parameters
        ----------
        features : array, sparse matrix, dict, data frame, or RecordBatch, Table or Array of pyarrow
            The documents of one query, as for :meth:`scores`.
        k : int
            Number of documents; all are returned if there are fewer.

        Returns
        -------
        RankedDocuments
            The first k documents of the result of :meth:`rank_one`, also if scores are equal.
        """
        check_integer("k", k, at_least=1)
        scores = self.scores(features)
        chosen = places_of_largest(scores, k if scores.size > FEW else scores.size)
        best = chosen[np.argsort(-scores[chosen], kind="stable")][:k]
        return RankedDocuments(best, scores[best])

    def _of_array(self, X: Any) -> Floats:
        if getattr(X, "shape", None) == (0, self.coef.size):
            return np.zeros(0)  # a query may have no documents
        if not _is_plain(X):
            X = check_features(X)
        require_features(X, self.coef.size)
        return as_matrix(X).dot(self.coef, None, 1)

    def _of_columns(self, columns: Mapping[str, ArrayLike]) -> Floats:
        self._check_columns(columns)
        if not self._weighed:
            return np.zeros(_n_documents(columns.values()))
        table = _table([columns[name] for name in self._weighed], self._weighed)
        return as_matrix(np.ascontiguousarray(table.T)).dot(self._weights, None, 1)

    def _of_arrow(self, data: Any) -> Floats:
        if hasattr(data, "type"):
            return self._of_array(vectors_of(data))
        if not hasattr(data, "num_rows"):
            raise TypeError(
                f"pyarrow's {type(data).__name__} is not supported; pass a RecordBatch, a Table or "
                "an Array of lists."
            )
        names: list[str] = data.schema.names
        self._check_columns(names)
        if len(set(names)) < len(names):
            for name in self._weighed:
                if names.count(name) > 1:
                    raise ValueError(f"the Arrow data has two columns {name!r}; rename one.")
        if not self._weighed:
            return np.zeros(data.num_rows)
        features = data.select(self._weighed)
        # The batches share memory with the table, so this does not copy.
        batches = features.to_batches() if hasattr(features, "to_batches") else [features]
        parts = [
            as_matrix(_rows(batch.slice(first, BLOCK))).dot(self._weights, None, 1)
            for batch in batches
            for first in range(0, batch.num_rows, BLOCK)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _check_columns(self, given: Iterable[str]) -> None:
        if self.feature_names is None:
            raise ValueError(
                "columns cannot be selected by name, because the model has no feature names; pass "
                "an array, or train on data with feature names."
            )
        if not self._are_distinct:
            raise ValueError(
                "columns cannot be selected by name, because two features of the model have the "
                "same name; pass an array."
            )
        known = frozenset(given)
        absent = [name for name in self._weighed if name not in known]
        if absent:
            more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
            raise ValueError(
                f"missing features: {absent[0]!r}{more}; pass one column per feature of the model, "
                "filled with zeros if a feature has no values."
            )


def _is_plain(X: Any) -> bool:
    """Return True if X is an array that needs no conversion, the common case in a service."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype.char in "fd"
        and X.flags.c_contiguous
        and X.flags.aligned
        and X.dtype.isnative
        and X.size > 0
    )


def _n_documents(columns: Iterable[ArrayLike]) -> int:
    """Return the number of documents: the length of the columns, or 1 if all are numbers."""
    sizes = [np.shape(column)[0] if np.ndim(column) else None for column in columns]
    return max((n for n in sizes if n is not None), default=min(len(sizes), 1))


def _table(values: Sequence[ArrayLike], names: Sequence[str]) -> NDArray[np.float64]:
    """Return columns as an array with one row per feature; a number is repeated in all columns."""
    if {type(value) for value in values} <= PLAIN:  # the common case in a service
        try:
            table = np.array(values)
        except ValueError:  # numbers, or columns of different lengths
            pass
        else:
            if table.ndim <= 2 and table.dtype.kind in "fiu":
                return table.reshape(len(values), -1).astype(np.float64, copy=False)
    columns = [
        real_array(value, f"columns[{name!r}]") for value, name in zip(values, names, strict=True)
    ]
    n = _n_documents(columns)
    for name, column in zip(names, columns, strict=True):
        if column.ndim > 1 or column.size not in (n, column.ndim == 0):
            raise ValueError(
                f"the feature {name!r} has shape {column.shape}, but there are {n} documents; pass "
                "one value per document."
            )
    return np.stack([np.broadcast_to(column, n).astype(np.float64) for column in columns])


def _rows(batch: Any) -> NDArray[Any]:
    try:
        rows: NDArray[Any] = batch.to_tensor(row_major=True).to_numpy()
    except (TypeError, NotImplementedError) as error:
        for field, column in zip(batch.schema, batch.columns, strict=True):
            if column.null_count:
                raise ValueError(f"column {field.name!r} has nulls; fill them.") from error
            if not _holds_numbers(field.type):
                raise ValueError(
                    f"column {field.name!r} has type {field.type}; cast it to float32 or float64."
                ) from error
        raise ValueError("the columns of the Arrow data have no common type; cast them.") from error
    if rows.dtype in (np.float32, np.float64):
        return rows
    # Arrow's to_tensor would make large uint64 values negative if other columns are signed.
    return np.stack([column.to_numpy() for column in batch.columns], axis=1).astype(np.float64)


def _holds_numbers(kind: Any) -> bool:
    return str(kind).startswith(("float", "double", "int", "uint"))


def vectors_of(array: Any) -> NDArray[Any]:
    """Convert a pyarrow array of equal-length lists to a matrix, without a copy."""
    width = getattr(array.type, "list_size", None)
    if width is None:
        raise ValueError(
            f"cannot read features from an Arrow array of {array.type}; pass lists of equal "
            "length, or a RecordBatch or Table with one column per feature."
        )
    kind = array.type.value_type
    if not _holds_numbers(kind) and str(kind) != "halffloat":
        raise ValueError(f"the Arrow array has lists of {kind}; cast it to float32 or float64.")
    if hasattr(array, "combine_chunks"):
        array = array.combine_chunks()
    values = array.flatten()
    if array.null_count or values.null_count:
        raise ValueError("the Arrow array has nulls; fill them.")
    numbers: NDArray[Any] = values.to_numpy(zero_copy_only=True)
    return numbers.reshape(len(array), width)
