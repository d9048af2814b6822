"""Pair margins: the score difference above which a pair has zero loss (margin rescaling).

See Chapelle and Keerthi (2010, section 6.2). With the squared hinge, a pair in the wrong order has
a loss of at least its squared margin, so a margin m stands for the cost δ = m².

A margin that is a difference d_i − d_j takes no extra time: the C++ kernels get s − d instead of
the scores s. If margins depend on both labels, the pairs are divided into one set per margin. Each
set has its own pair weights, which are zero for all other pairs, and its own hinge terms, which are
shifted by the margin.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.types import Booleans, Floats, Integers
from marginrank.objective.losses import Loss
from marginrank.objective.pair_weights import PairFactors, exponential_gain, label_matrix

MOST_MARGIN_LABELS = 16  # the 120 margins of 16 labels take about two kilobytes per document


def margin_offsets(margin: Any, y: NDArray[Any], qid: Integers) -> Floats:
    """Return one offset d_i per document, such that the margin of each pair (i, j) is d_i − d_j.

    `margin` is the parameter of RankSVM. One document per query gets the offset 0.
    """
    if callable(margin):
        offsets = np.asarray(margin(y), dtype=np.float64)
        if offsets.shape != y.shape or not np.isfinite(offsets).all():
            raise ValueError("margin(y) must return one finite number per label.")
    else:
        offsets = exponential_gain(y) if margin == "gain" else y
    if offsets.dtype != np.float64:
        offsets = offsets.astype(object)  # Python integers, whose differences are exact
    # Only differences within a query matter. Large offsets would cost the scores digits.
    one_of_query = np.empty(qid.max() + 1, dtype=offsets.dtype)
    one_of_query[qid] = offsets
    differences: Floats = (offsets - one_of_query[qid]).astype(np.float64)
    return differences


class WindowedPairs(NamedTuple):
    """Pair weights and hinge terms for the C++ kernels, grouped by the margin of the pairs."""

    factors: PairFactors
    pieces: Floats  # the hinge terms of the first margin, then of the next
    ranks: NDArray[np.int32]  # per hinge term: its first column of the factors, and the end


@dataclass(frozen=True)
class LabelMargins:
    """A table of margins, by the labels of the preferred and the other document of a pair.

    Examples
    --------
    >>> import numpy as np
    >>> from marginrank.objective.pair_margins import LabelMargins
    >>> margins = LabelMargins.of_labels(lambda a, b: a - b, np.array([2.0, 0.0, 1.0]))
    >>> margins.between(np.array([0, 2]), np.array([1, 1]))
    array([2., 1.])
    """

    code: NDArray[np.int32]  # index of the label of each row or document
    table: Floats  # margins; rows are labels of the preferred document, columns of the other

    @classmethod
    def of_labels(
        cls, margin: Any, y: NDArray[Any], labels: NDArray[Any] | None = None
    ) -> "LabelMargins":
        """Return the parameter `margin` of RankSVM (a callable or a matrix) as a table for labels.

        `labels` are the distinct labels of all data if y is only a part of it; by default, the
        distinct labels in y.
        """
        distinct = np.unique(y) if labels is None else labels
        table = label_matrix("margin", margin, distinct, most=MOST_MARGIN_LABELS)
        return cls(np.searchsorted(distinct, y).astype(np.int32), table)

    def take(self, documents: Integers | slice | None) -> "LabelMargins":
        return self if documents is None else LabelMargins(self.code[documents], self.table)

    @classmethod
    def join(cls, parts: "Sequence[LabelMargins]") -> "LabelMargins":
        return cls(np.concatenate([part.code for part in parts]), parts[0].table)

    def between(self, preferred: Integers, other: Integers) -> Floats:
        """Return the margin of each pair (preferred[k], other[k]) of document indices."""
        margins: Floats = self.table[self.code[preferred], self.code[other]]
        return margins

    def windowed(self, factors: PairFactors | None, loss: Loss) -> WindowedPairs:
        """Return pair weights and hinge terms that give each pair its margin in the C++ kernels.

        `factors` are the pair weights; None for weights of one.
        """
        own = PairFactors(*np.ones((2, self.code.size, 1))) if factors is None else factors
        preferred, other = [], []
        pieces, ranks = [], []
        first = 0
        for margin, labels in self._labels_by_margin():
            for label, others in labels:
                preferred.append(own.preferred * (self.code == label)[:, None])
                other.append(own.other * others[self.code][:, None])
            last = first + len(labels) * own.preferred.shape[1]
            pieces.append(loss.shifted(margin).as_array())
            ranks += len(loss.pieces) * [(first, last)]
            first = last
        return WindowedPairs(
            PairFactors(np.hstack(preferred), np.hstack(other)),
            np.concatenate(pieces),
            np.array(ranks, dtype=np.int32),
        )

    def _labels_by_margin(self) -> "Iterator[tuple[float, list[tuple[int, Booleans]]]]":
        """Yield each distinct margin with the pairs of labels that have it.

        A pair of labels is the index of the preferred label and a mask of the other labels.
        Preferred labels are not merged, so the sums over a query do not depend, to the last bit, on
        labels that the query does not have.
        """
        is_pair = np.tril(np.ones_like(self.table, dtype=bool), -1)
        if not is_pair.any():  # one label: the kernels need a piece nevertheless
            yield 0.0, [(0, is_pair[0])]
        for margin in np.unique(self.table[is_pair]):
            mask = is_pair & (self.table == margin)
            yield float(margin), [(a, mask[a]) for a in np.flatnonzero(mask.any(axis=1)).tolist()]
