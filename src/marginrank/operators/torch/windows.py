"""Documents of a query by score, and the part of them that a document's active pairs reach into."""

from typing import NamedTuple

import torch
from torch import Tensor

from marginrank.operators.torch.documents import DeviceDocuments


class Order(NamedTuple):
    """All documents, query by query, by ascending score; equal scores in document order.

    Attributes
    ----------
    document : Tensor of int64
        The document at each place.
    place : Tensor of int32
        The place of each document.
    key : Tensor of float64
        The scores, by place.
    """

    document: Tensor
    place: Tensor
    key: Tensor


class Window(NamedTuple):
    """Where the active pairs of each document reach, by place.

    Attributes
    ----------
    end : Tensor of int32, by document
        Preferred partners of the document stand before this place.
    begin : Tensor of int32, by document
        Other partners stand here or after it.
    """

    end: Tensor
    begin: Tensor


def sort(documents: DeviceDocuments, key: Tensor) -> Order:
    """Sort by query and score: two stable sorts."""
    by_key = torch.argsort(key, stable=True)
    by_query = torch.argsort(documents.queries.segment.index_select(0, by_key), stable=True)
    document = by_key.index_select(0, by_query)
    return Order(document, inverse(document), key.index_select(0, document))


def inverse(permutation: Tensor) -> Tensor:
    """Return where each number stands in a permutation of int64, as int32."""
    numbers = torch.arange(permutation.numel(), dtype=torch.int32, device=permutation.device)
    return torch.empty_like(numbers).index_copy_(0, permutation, numbers)


def find_window(documents: DeviceDocuments, order: Order, theta: float) -> Window:
    """Find the pairs with s_i < s_j + θ.

    `begin` follows from `end`, not from a second comparison, so that both sides agree on every pair
    whatever the rounding.
    """
    end = _first_not_below(documents, order, theta)
    places = torch.arange(end.numel(), dtype=end.dtype, device=end.device)
    begin = torch.searchsorted(end, places, right=True, out_int32=True)
    return Window(end.index_select(0, order.place), begin.index_select(0, order.place))


def _first_not_below(documents: DeviceDocuments, order: Order, theta: float) -> Tensor:
    """Return, by place, the first place of the query whose key is not below key + θ.

    A binary search in all queries at once.
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
