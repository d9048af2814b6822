"""Documents grouped by query and ranked by their scores: the input of every metric function."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginrank import _core
from marginrank._utils.threads import cached_property, effective_threads
from marginrank._utils.types import Booleans, Floats, Integers
from marginrank.data.queries import Documents, Queries, group_rows
from marginrank.data.validation import check_labels, check_vector, from_device

LOWEST = np.finfo(np.float64).min  # score of documents that a run did not retrieve
Scalar = TypeVar("Scalar", np.float64, np.int64, np.int32, np.bool_)


@dataclass(frozen=True)
class Judgments:
    """Validated labels, grouped by query, to evaluate several rankings of the same documents.

    Pass it to a metric as `y`: labels and queries are then checked only once.
    """

    labels: Floats
    documents: Documents
    threads: int

    @classmethod
    def of(
        cls,
        y: ArrayLike,
        qid: ArrayLike | None,
        group: ArrayLike | None,
        n_jobs: int | None,
        *,
        n: int,
        ordinal: bool = False,
    ) -> "Judgments":
        """Create a Judgments from the labels `y` of n documents, validated and grouped by query.

        With `ordinal`, only the order of labels matters: integers too large for a float are
        replaced by their ranks.
        """
        label = "one label per document"
        labels = check_labels(y, n) if ordinal else check_vector(y, "y", n, label)
        if n == 0:
            documents = Documents(np.zeros(1, dtype=np.int64), None)
        else:
            documents, _ = group_rows(n, qid, group)
        return cls(documents.grouped(labels), documents, effective_threads(n_jobs))

    @cached_property
    def queries(self) -> Queries:
        """The queries, with the labels of each query as dense ranks 0, 1, …."""
        return Queries.from_labels(self.labels, self.documents.offsets, None, self.threads)


@dataclass(frozen=True)
class Ranking:
    """Labels and scores of documents grouped by query, and the ranking by descending score.

    `labels` and `scores` are in input order within a query. `rank` and `best_first` sort each query
    by descending score, with ties in input order. Documents that a run did not retrieve come last:
    their labels count in the ideal ranking of NDCG, but their gain in the ranking is 0.
    """

    judgments: Judgments
    scores: Floats
    average_ties: bool  # whether metrics are averaged over all orders of tied documents
    found: Booleans | None  # whether a document was retrieved; None if all were

    @classmethod
    def of(
        cls,
        y: ArrayLike | Judgments,
        scores: ArrayLike,
        qid: ArrayLike | None,
        group: ArrayLike | None,
        n_jobs: int | None,
        *,
        ordinal: bool = False,
        average_ties: bool = False,
        retrieved: Booleans | None = None,
    ) -> "Ranking":
        """Create a Ranking of the documents of each query by their scores.

        If `y` is a Judgments, the other arguments about labels and queries are ignored. With
        `ordinal`, only the order of labels matters. `retrieved` is a mask of the documents that a
        run retrieved; all by default.
        """
        scores = from_device(scores)
        n = np.shape(scores)[0] if np.ndim(scores) else 0
        s = check_vector(scores, "scores", n, "one score per document")
        if retrieved is not None:
            s = np.where(retrieved, s, LOWEST)
        if isinstance(y, Judgments):
            judgments = y
        else:
            labels, qid, group = map(from_device, (y, qid, group))
            _check_lengths(labels, n)
            judgments = Judgments.of(labels, qid, group, n_jobs, n=n, ordinal=ordinal)
        documents = judgments.documents
        found = None if retrieved is None else documents.grouped(retrieved)
        return cls(judgments, documents.grouped(s), average_ties, found)

    @property
    def labels(self) -> Floats:
        """The labels of all documents, grouped by query."""
        return self.judgments.labels

    @property
    def documents(self) -> Documents:
        """The documents grouped by query, as a Documents object."""
        return self.judgments.documents

    @property
    def threads(self) -> int:
        """Number of threads that compute the ranking."""
        return self.judgments.threads

    @property
    def offsets(self) -> Integers:
        """Start of each query: query q has the documents offsets[q] … offsets[q + 1] − 1."""
        return self.documents.offsets

    @cached_property
    def sizes(self) -> Integers:
        """Number of documents of each query."""
        return self.documents.sizes

    @cached_property
    def order(self) -> Integers:
        """Indices that sort the documents of each query by descending score."""
        return _core.rank_documents(self.scores, self.offsets, self.threads)

    @cached_property
    def rank(self) -> Integers:
        """Ranks 1, 2, … of the documents of each query, best first; queries are concatenated."""
        return np.arange(1, self.labels.size + 1) - self.repeat(self.offsets[:-1])

    @cached_property
    def retrieved(self) -> Booleans:
        """Whether the document at each rank of each query was retrieved."""
        if self.found is None:
            return np.ones(self.labels.size, dtype=np.bool_)
        return self.found[self.order]

    @cached_property
    def ties(self) -> "TieGroups":
        """Groups of documents of a query with equal scores."""
        s = self.best_first(self.scores)
        first = self.rank == 1
        first[1:] |= s[1:] != s[:-1]
        return TieGroups(np.flatnonzero(first), self.labels.size)

    def best_first(self, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Return `values`, one per document, in the order of the ranks within each query."""
        return values[self.order]

    def expected(self, values: Floats) -> Floats:
        """Return one value per document by rank; with `average_ties`, averaged over ties."""
        ranked = self.best_first(values)
        return self.ties.mean(ranked) if self.average_ties else ranked

    def descending(self, values: Floats) -> Floats:
        """Return `values` in descending order in each query, as in the ideal ranking of NDCG."""
        return values[_core.rank_documents(values, self.offsets, self.threads)]

    def repeat(self, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Return one value per document, given one value per query."""
        return np.repeat(values, self.sizes)

    def total(self, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Return the sum of `values`, one per document, over each query."""
        return np.add.reduceat(values, self.offsets[:-1])

    def running(self, operation: np.ufunc, values: Floats) -> Floats:
        """Return `values` accumulated over the ranks of each query, by ``operation.accumulate``."""
        # The distance of the values that are combined doubles in each step. A cumulative sum over
        # all queries, with differences for each, would lose the digits of queries of small values.
        result, step = values, 1
        while step < self.sizes.max(initial=0):
            ahead = operation(result[step:], result[:-step])
            head, tail = result[:step], result[step:]
            result = np.concatenate([head, np.where(self.rank[step:] > step, ahead, tail)])
            step *= 2
        return result


def _check_lengths(y: ArrayLike, n_scores: int) -> None:
    try:
        n_labels = len(y)  # type: ignore[arg-type]
    except TypeError:  # a number, which check_vector rejects
        return
    if n_labels != n_scores:  # y or scores may have the wrong length
        raise ValueError(
            f"y has {n_labels} entries and scores has {n_scores}; pass one label and one score per "
            "document."
        )


class TieGroups:
    """Groups of documents of one query with equal scores, in ranked order.

    Attributes
    ----------
    starts, sizes : ndarray of int64, shape (n_groups,)
        Index of the first document of each group in ranked order; number of its documents.
    """

    def __init__(self, starts: Integers, n_documents: int) -> None:
        self.starts = starts
        self.sizes = np.diff(starts, append=n_documents)

    @cached_property
    def position(self) -> Integers:
        """Position 0, 1, … of each document within its group of equal scores."""
        return np.arange(self.sizes.sum()) - self.repeat(self.starts)

    def total(self, values: Floats) -> Floats:
        """Return the sum of `values`, one per document, over each group with equal scores."""
        return np.add.reduceat(values, self.starts)

    def repeat(self, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Return one value per document, given one value per group of tied documents."""
        return np.repeat(values, self.sizes)

    def mean(self, values: Floats) -> Floats:
        """Return, for each document, the mean of `values` over the documents with the same score.

        The mean is the expected value at the document's rank if ties are put in random order.
        """
        return self.repeat(self.total(values) / self.sizes)


def ranks(
    scores: Floats,
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Integers:
    """Return the rank of each document in its query, 1 for the highest score; ties in row order.

    Examples
    --------
    >>> import numpy as np
    >>> from marginrank.metrics.ranking import ranks
    >>> ranks(np.array([0.1, 0.7, 0.4]), qid=["a", "b", "a"])
    array([2, 1, 1])
    """
    documents, _ = group_rows(len(scores), qid, group)
    order = _core.rank_documents(
        documents.grouped(scores), documents.offsets, effective_threads(n_jobs)
    )
    rank = np.empty(len(scores), dtype=np.int64)
    rank[order] = np.arange(1, len(scores) + 1) - np.repeat(documents.offsets[:-1], documents.sizes)
    return documents.by_row(rank)
