"""Folds for cross-validation that keep the documents of a query together.

scikit-learn is not imported; its splitters are called through their `split` method.
"""

from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.parameters import Mention, ParameterError, check_integer, given
from marginrank._utils.types import Booleans, Floats, Integers
from marginrank._utils.user_warnings import warn_caller
from marginrank.data.ranking_data import RankingData
from marginrank.data.validation import in_order


class Fold(NamedTuple):
    """One cross-validation fold: ascending row numbers of training documents and test documents."""

    number: int  # index of the fold, from 1
    train: Integers
    test: Integers


def query_folds(
    data: RankingData, n_folds: int = 5, *, seed: int = 0, rows: Integers | None = None
) -> list[Fold]:
    """Return folds that divide the queries at random; each document is a test document of one fold.

    The numbers of queries of two folds differ by at most one, because metrics are means over
    queries. The numbers of their documents differ by at most the size of the largest query, because
    queries are assigned by descending size, one to each fold in random order. The fold of a query
    depends on the ids and sizes of all queries and on the seed, not on the order of the rows. For
    data with `group`, the id of a query is its position. If there is only one query, its rows are
    divided at random.

    `rows` are the ascending numbers of the rows to divide, by default all; others are in no fold.

    Examples
    --------
    >>> from marginrank import RankingData
    >>> from marginrank.selection.folds import query_folds
    >>> data = RankingData([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], qid=["a", "b", "a", "b"])
    >>> [sorted(fold.test.tolist()) for fold in query_folds(data, 2, seed=1)]
    [[0, 2], [1, 3]]
    """
    check_integer("n_folds", n_folds, at_least=2)
    rng = np.random.default_rng(seed)
    if rows is None:
        rows = np.arange(data.n_documents)
    query_of_row = data.qid[rows]
    sizes = np.bincount(query_of_row, minlength=data.n_queries)
    present = np.flatnonzero(sizes)
    is_single = present.size == 1
    if n_folds > (rows.size if is_single else present.size):
        raise ValueError(
            f"{n_folds} folds need as many documents, and the only query has {rows.size} "
            "sample(s); use fewer folds."
            if is_single
            else f"{n_folds} folds need as many queries, and there are {present.size}; use fewer "
            "folds."
        )
    if is_single:
        fold_of_row = rng.permutation(np.arange(rows.size) % n_folds)
    else:
        fold_of_query = np.empty(data.n_queries, dtype=np.int64)
        fold_of_query[present] = _deal(data.query_ids[present], sizes[present], n_folds, rng)
        fold_of_row = fold_of_query[query_of_row]
    return [Fold(k + 1, rows[fold_of_row != k], rows[fold_of_row == k]) for k in range(n_folds)]


def folds_of(data: RankingData, cv: Any, seed: int = 0) -> list[Fold]:
    """Return the validated folds for a parameter `cv` of cross-validation.

    `cv` is a number of folds (see :func:`query_folds`), or an object with a method ``split(X, y,
    groups)`` such as a splitter of scikit-learn, which gets the queries as groups, or an iterable
    of pairs (training rows, test rows).
    """
    if isinstance(cv, Integral):
        check_integer("cv", cv, at_least=2)
        folds = query_folds(data, int(cv), seed=seed)
    else:
        folds = list(_given_folds(data, _splits(data, cv)))
    check_folds(data, folds)
    return folds


def check_folds(data: RankingData, folds: Iterable[Fold]) -> None:
    """Raise ValueError if a model cannot be trained or tested on one of the folds.

    The training rows and the test rows must not be empty, the training rows must contain a pair,
    and no query may be in both, unless it is the only query. A repeated fold is not allowed,
    because it would count twice and make the standard error too small.
    """
    labels = in_order(data.y)
    query_of_row = data.qid
    seen: dict[int, int] = {}  # fold number by hash of the fold's rows
    for fold in folds:
        rows_hash = hash((fold.train.tobytes(), fold.test.tobytes()))
        first = seen.setdefault(rows_hash, fold.number)
        if first != fold.number:
            raise ValueError(f"fold {fold.number} is the same as fold {first}; drop one of them.")
        for name, rows in (("train", fold.train), ("test", fold.test)):
            if not rows.size:
                raise ValueError(f"fold {fold.number} has no rows to {name}; check cv.")
        # The query of each row; with a single query, the row itself.
        units = query_of_row if data.n_queries > 1 else np.arange(data.n_documents)
        shared = np.intersect1d(units[fold.train], units[fold.test])
        if shared.size:
            unit = (
                f"query {data.query_ids[shared[0]]!s}" if data.n_queries > 1 else f"row {shared[0]}"
            )
            raise ValueError(
                f"{unit} is in the training rows and in the test rows of fold {fold.number}; keep "
                "whole queries on one side, as a number of folds or GroupKFold does."
            )
        if not has_pairs(labels[fold.train], query_of_row[fold.train]):
            raise ValueError(
                f"fold {fold.number} has no pair to learn from: in its training rows, no query has "
                "documents with different labels; check y and qid, or use other folds."
            )


def queries_by_id(ids: NDArray[Any]) -> Integers:
    """Return indices that sort queries by id, so that results do not depend on the row order."""
    if ids.dtype.kind != "O":
        return np.argsort(ids, kind="stable")
    return np.array(sorted(range(ids.size), key=lambda k: _sort_key(ids[k])), dtype=np.int64)


def numbers_by_id(data: RankingData) -> Integers:
    """Return, for each document, the rank (from 0) of its query id among the sorted query ids."""
    numbers: Integers = np.argsort(queries_by_id(data.query_ids))[data.qid]
    return numbers


def rows_of(data: RankingData, rows: Integers, *, n_jobs: int | None = None) -> RankingData:
    """Return a RankingData with the given rows of `data` only."""
    query_of_row = data.qid[rows]
    weight, query_weight, cost = data.sample_weight, data.query_weight, data.cost
    position, context = data.position, data.context
    return RankingData(
        data.X[rows],
        data.y[rows],
        data.query_ids[query_of_row],
        sample_weight=None if weight is None else weight[rows],
        query_weight=None if query_weight is None else query_weight[query_of_row],
        cost=None if cost is None else cost[rows],
        position=None if position is None else position[rows],
        context=None if context is None else context[rows],
        feature_names=data.feature_names,
        allow_nan=data.has_nan,
        n_jobs=n_jobs,
    )


def cost_by_label(cost: Any, y: NDArray[Any]) -> Any:
    """Return a `pair_cost` or `margin` that is a matrix over all labels as a function of labels.

    A fold may lack labels, so the rows of the matrix would not match the labels of the fold. Other
    values are returned unchanged.
    """
    if cost is None or isinstance(cost, str) or callable(cost):
        return cost
    matrix = np.asarray(cost)
    position = {label: k for k, label in enumerate(np.unique(y).tolist())}
    return lambda preferred, other: matrix[position[preferred], position[other]]


def has_pairs(y: NDArray[Any], query_of_row: Integers) -> bool:
    """Return True if at least one query has documents with different labels.

    Otherwise all rankings are equally good, and a metric says nothing about a model, even if it has
    a value, as NDCG has.
    """
    if not y.size:
        return False
    labels = in_order(y)
    order = np.argsort(query_of_row, kind="stable")
    labels = labels[order]
    starts = np.flatnonzero(np.diff(query_of_row[order], prepend=-1))
    lowest, highest = np.minimum.reduceat(labels, starts), np.maximum.reduceat(labels, starts)
    return bool((lowest < highest).any())


class FoldMean(NamedTuple):
    """Mean of a score over cross-validation folds, and its standard error (nan for one fold)."""

    mean: Floats
    error: Floats


def over_folds(scores: Floats, metric: str) -> FoldMean:
    """Return the mean and the standard error of scores over folds, which are the last axis.

    Folds on which the metric is undefined are excluded, with a warning that names them.
    """
    has_score: Booleans = np.any(~np.isnan(scores.reshape(-1, scores.shape[-1])), axis=0)
    if not has_score.any():
        raise ValueError(
            f"{metric} is undefined on every fold; queries need at least two distinct labels. "
            "Check y and qid, or use fewer folds."
        )
    if not has_score.all():
        numbers = [str(k + 1) for k in np.flatnonzero(~has_score)]
        which = "folds" if len(numbers) > 1 else "fold"
        warn_caller(
            f"{metric} is undefined on {which} {', '.join(numbers)} of {has_score.size}, which the "
            "mean excludes, probably because no query there has two distinct labels. Check y and "
            "qid, or use fewer folds."
        )
    used = scores[..., has_score]
    n_used = used.shape[-1]
    deviation = used.std(axis=-1, ddof=1) if n_used > 1 else np.full(used.shape[:-1], np.nan)
    return FoldMean(used.mean(axis=-1), deviation / np.sqrt(n_used))


def _deal(ids: NDArray[Any], sizes: Integers, n_folds: int, rng: np.random.Generator) -> Integers:
    """Assign queries to folds, by descending size; return the fold index of each query."""
    order = rng.permutation(queries_by_id(ids))
    by_size = order[np.argsort(-sizes[order], kind="stable")]
    n_rounds = -(-by_size.size // n_folds)
    dealt = rng.permuted(np.tile(np.arange(n_folds), (n_rounds, 1)), axis=1).ravel()
    fold_of_query = np.empty(by_size.size, dtype=np.int64)
    fold_of_query[by_size] = dealt[: by_size.size]
    return fold_of_query


def _sort_key(value: Any) -> tuple[Any, ...]:
    """Return a sort key of an id of any type; equal ids have equal keys."""
    if isinstance(value, Real):
        return ("", value)
    if isinstance(value, tuple):
        return ("tuple", tuple(map(_sort_key, value)))
    return (type(value).__name__, value if isinstance(value, str) else repr(value))


def _splits(data: RankingData, cv: Any) -> Iterable[Any]:
    if hasattr(cv, "split") and not isinstance(cv, str):
        # Number queries by id: some splitters depend on the order of groups.
        groups = numbers_by_id(data) if data.n_queries > 1 else None
        splits: Iterable[Any] = cv.split(data.X, data.y, groups)
        return splits
    if isinstance(cv, str) or not isinstance(cv, Iterable):
        raise ParameterError(
            given("cv", cv),
            " must be a number of folds, a splitter of scikit-learn, a list of (train, test) rows, "
            "or 'loo' in RankSVMCV.",
        )
    return cv


def _given_folds(data: RankingData, splits: Iterable[Any]) -> Iterator[Fold]:
    number = 0
    for number, split in enumerate(splits, 1):
        if not isinstance(split, (tuple, list)) or len(split) != 2:
            raise ParameterError(
                Mention("cv"), f" must contain pairs (train, test) of rows; check fold {number}."
            )
        train, test = (_check_rows(rows, data.n_documents, number) for rows in split)
        yield Fold(number, train, test)
    if not number:
        raise ParameterError(Mention("cv"), " has no folds; pass at least one.")


def _check_rows(rows: Any, n: int, number: int) -> Integers:
    array = np.asarray(rows)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ParameterError(
            Mention("cv"), f" must contain lists of row numbers; check fold {number}."
        )
    ascending = np.sort(array.astype(np.int64))
    if ascending.size and not 0 <= ascending[0] <= ascending[-1] < n:
        outside = ascending[0] if ascending[0] < 0 else ascending[-1]
        raise ParameterError(
            Mention("cv"), f" has row {outside} in fold {number}, but X has rows 0 … {n - 1}."
        )
    repeated = np.flatnonzero(ascending[1:] == ascending[:-1])
    if repeated.size:
        raise ParameterError(
            Mention("cv"), f" has row {ascending[repeated[0]]} twice on one side of fold {number}."
        )
    return ascending
