"""Documents on a PyTorch device, sorted by score, and the ranges of documents that form pairs.

A pair (i, j), in which i is preferred, has a positive hinge term at θ if s_i < s_j + θ; it is then
called *active*. The *window* of a document is the range of the sorted scores that has its active
pairs.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from marginrank._utils.types import Booleans
from marginrank.objective.pair_sets import PairSet
from marginrank.operators.torch.fixed_point import Segments, exact_total


class ScoreLoss(NamedTuple):
    """The loss on pairs and its gradient in the scores at one score vector, as PyTorch tensors."""

    by_query: Tensor  # (n_queries, 3): loss, sizes of the terms of the loss and of its derivatives
    slopes: Tensor  # derivative with respect to each score
    state: Any  # LevelState, ListedState or FusedState, for products with the Hessian
    totals: Tensor  # the fields of LossSums

    @classmethod
    def of(cls, by_query: Tensor, slopes: Tensor, state: Any) -> "ScoreLoss":
        """Return the loss at one score vector, with its total added up exactly over all queries."""
        totals = [exact_total(column) for column in by_query.T]
        counts = torch.count_nonzero(by_query[:, 0]), torch.count_nonzero(slopes)
        return cls(by_query, slopes, state, torch.cat([*totals, *(one[None] for one in counts)]))


@dataclass(frozen=True)
class DeviceDocuments:
    """Documents on a PyTorch device: their queries, query weights and margins."""

    queries: Segments
    longest: int  # number of documents of the longest query
    query_weight: Tensor
    counting: Tensor  # for each document, whether its query has pairs of positive weight
    margins: Tensor | None  # d_i for each document: the margin of a pair is θ + d_i − d_j

    @classmethod
    def of(cls, pairs: PairSet, has_pairs: Booleans, device: torch.device) -> "DeviceDocuments":
        """Return the queries, query weights and margins of a pair set, on a PyTorch device.

        `has_pairs` is a mask of the queries that have pairs.
        """
        queries = Segments.of(torch.as_tensor(pairs.documents.offsets, device=device))
        counting = torch.as_tensor(has_pairs & (pairs.query_weight != 0.0), device=device)
        margins = pairs.margins
        return cls(
            queries=queries,
            longest=int(np.max(pairs.documents.sizes, initial=0)),
            query_weight=torch.as_tensor(pairs.query_weight, device=device),
            counting=queries.spread(counting),
            margins=None if margins is None else torch.as_tensor(margins, device=device),
        )

    def keys(self, scores: Tensor) -> Tensor:
        """Return one number per document to sort by: its centered score minus its margin.

        The scores of a query are centered, which changes no difference within a query. All numbers
        of a query are NaN if one score is not finite, and zero if the query has no pair of positive
        weight.
        """
        key = scores if self.margins is None else scores - self.margins
        middle = 0.5 * self.queries.reduce(key, "min") + 0.5 * self.queries.reduce(key, "max")
        middle = middle + (middle - middle)  # infinity becomes NaN
        return torch.where(self.counting, key - self.queries.spread(middle), 0.0)

    def weighted(self, values: Tensor) -> Tensor:
        """Return `values`, one per document, multiplied by the weight of the query."""
        return values * self.queries.spread(self.query_weight)


class Order(NamedTuple):
    """The order of all documents by query, then by ascending score; ties in document order."""

    document: Tensor  # int64, the document at each position
    place: Tensor  # int32, the position of each document
    key: Tensor  # the sort key (see DeviceDocuments.keys) at each position


class Window(NamedTuple):
    """For each document, the range of sorted scores with which it forms pairs of positive loss.

    The range is bounded by two positions in an :class:`Order`.
    """

    end: Tensor  # documents that are preferred to it in an active pair are before this position
    begin: Tensor  # documents that it is preferred to are at this position or after it


def sort(documents: DeviceDocuments, key: Tensor) -> Order:
    """Return the order of the documents by query, then by ascending key (score minus margin)."""
    by_key = torch.argsort(key, stable=True)
    by_query = torch.argsort(documents.queries.segment.index_select(0, by_key), stable=True)
    document = by_key.index_select(0, by_query)
    return Order(document, inverse(document), key.index_select(0, document))


def inverse(permutation: Tensor) -> Tensor:
    """Return the inverse of a permutation, as an int32 tensor."""
    numbers = torch.arange(permutation.numel(), dtype=torch.int32, device=permutation.device)
    return torch.empty_like(numbers).index_copy_(0, permutation.long(), numbers)


def find_window(documents: DeviceDocuments, order: Order, theta: float) -> Window:
    """Return, for each document, the range of sorted scores with which it has a positive loss.

    A pair (i, j), in which i is preferred, has a positive hinge term at θ if s_i < s_j + θ.
    """
    end = _first_not_below(documents, order, theta)
    # `begin` follows from `end`, not from a second comparison: both sides of a pair must agree
    # whether it is active, whatever the rounding.
    places = torch.arange(end.numel(), dtype=end.dtype, device=end.device)
    begin = torch.searchsorted(end, places, right=True, out_int32=True)
    return Window(end.index_select(0, order.place), begin.index_select(0, order.place))


def _first_not_below(documents: DeviceDocuments, order: Order, theta: float) -> Tensor:
    """Return, for each position, the first position in its query whose key is at least its key + θ.

    This is a binary search in all queries at once.
    """
    limit = order.key + theta
    offsets = documents.queries.offsets.to(torch.int32)
    low, high = documents.queries.spread(offsets[:-1]), documents.queries.spread(offsets[1:])
    for _ in range(documents.longest.bit_length()):
        middle = (low + high) >> 1
        inside = middle.clamp(max=max(limit.numel() - 1, 0))
        below = (low < high) & (order.key.index_select(0, inside) < limit)
        low = torch.where(below, middle + 1, low)
        high = torch.where(below, high, torch.maximum(middle, low))
    return low
