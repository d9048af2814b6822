"""Documents grouped by query, on a device: what pairs of both kinds share."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from marginrank._utils.types import Booleans
from marginrank.objective.pair_sets import PairSet
from marginrank.operators.torch.fixed_point import Segments


class ScoreLoss(NamedTuple):
    """The loss at some scores.

    Attributes
    ----------
    by_query : Tensor of shape (n_queries, 3)
        The loss of each query, and the sizes of the terms of the loss and of its derivatives.
    slopes : Tensor of shape (n_documents,)
        Its derivative by each score.
    state : LevelState or ListedState
        For products with its Hessian.
    """

    by_query: Tensor
    slopes: Tensor
    state: Any


@dataclass(frozen=True)
class DeviceDocuments:
    """Queries, with what belongs to each.

    Attributes
    ----------
    queries : Segments
        The documents of each query.
    longest : int
        Documents of the longest query.
    query_weight : Tensor of shape (n_queries,)
        What multiplies the loss of each query.
    counting : Tensor of bool, shape (n_documents,)
        Whether the query of a document has pairs that count.
    margins : Tensor of shape (n_documents,) or None
        d_i: a pair's margin is θ + d_i − d_j.
    """

    queries: Segments
    longest: int
    query_weight: Tensor
    counting: Tensor
    margins: Tensor | None

    @classmethod
    def of(cls, pairs: PairSet, has_pairs: Booleans, device: torch.device) -> "DeviceDocuments":
        """Bring the queries of a set of pairs to a device."""
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

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return self.queries.segment.numel()

    def keys(self, scores: Tensor) -> Tensor:
        """Return scores less margins, centred in each query: pairs see differences only.

        All of a query is NaN if any of it is not finite; all is zero where no pair counts.
        """
        key = scores if self.margins is None else scores - self.margins
        middle = 0.5 * self.queries.reduce(key, "min") + 0.5 * self.queries.reduce(key, "max")
        middle = middle + (middle - middle)  # infinity becomes NaN
        return torch.where(self.counting, key - self.queries.spread(middle), 0.0)

    def weighted(self, values: Tensor) -> Tensor:
        """Multiply what each document has by the weight of its query."""
        return values * self.queries.spread(self.query_weight)
