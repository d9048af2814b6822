"""P-SWX and the segmented sort of paper 5 (Jin and Lin, 2014) in PyTorch, as a reference.

The documents of each query are sorted by score, all queries at once. Each document then goes
through its query for its partners: Σ m² steps a product for queries of m documents. Matrix products
are in single precision, as in the paper.
"""

from collections.abc import Iterator
from typing import cast

import numpy as np
import torch
from torch import Tensor

from marginrank import RankingData
from marginrank.objective.level_pairs import LevelPairs
from marginrank.objective.losses import LOSSES, Loss
from marginrank.objective.pair_sets import PairCounts
from marginrank.operators.native import native_matrix
from marginrank.operators.torch.documents import ScoreLoss
from marginrank.operators.torch.features import DenseFeatures
from marginrank.operators.torch.matrix import TorchDesign, TorchLoss, TorchMatrix
from marginrank.operators.torch.plans import Plans

BATCH_ENTRIES = 1 << 24  # of the comparisons of documents that are made at a time


class SingleFeatures(DenseFeatures):
    """X whose products are in single precision."""

    def dot(self, v: Tensor) -> Tensor:
        """Return X v."""
        return (self.X @ v.to(self.X.dtype)).to(torch.float64)

    def transpose_dot(self, z: Tensor) -> Tensor:
        """Return Xᵀz."""
        return (self.X.T @ z.to(self.X.dtype)).to(torch.float64)


class Swx:
    """The squared hinge loss, by comparing all documents of a query with each other."""

    def __init__(self, pairs: LevelPairs, device: torch.device) -> None:
        queries = pairs.queries
        self.n_documents = queries.n_documents
        self.query_weight = torch.as_tensor(pairs.query_weight, device=device)
        self.level = torch.as_tensor(queries.level, dtype=torch.float32, device=device)
        self.batches = [
            (numbers, torch.as_tensor(table, device=device))
            for numbers, table in _batches(queries.offsets)
        ]

    def evaluate(self, scores: Tensor) -> ScoreLoss:
        """Look at some scores."""
        slopes = torch.zeros_like(scores)
        by_query = torch.zeros(
            (self.query_weight.numel(), 3), dtype=scores.dtype, device=scores.device
        )
        for numbers, places, s, active in self._compared(scores):
            ones = torch.ones_like(s)
            above, below = ((side @ torch.stack([ones, s], dim=2)).unbind(2) for side in active)
            won = above[0] * (1 + s) - above[1]
            lost = below[0] * (1 - s) + below[1]
            weight = self.query_weight[numbers, None]
            value = weight * (lost * (1 - s) + won * s).to(torch.float64)
            by_query[numbers, 0] = value.sum(1)
            size = weight * ((above[0] + below[0]) * (1 + s.abs()) ** 2).to(torch.float64)
            by_query[numbers, 1:] = size.sum(1)[:, None]
            _put(slopes, places, 2 * weight * (won - lost))
        return ScoreLoss.of(by_query, slopes, scores)

    def hess_vec(self, state: Tensor, u: Tensor) -> Tensor:
        """Return H u."""
        image = torch.zeros_like(u)
        for numbers, places, s, active in self._compared(state):
            values = torch.where(places >= 0, u[places.clamp(min=0)], 0.0).to(s.dtype)
            both = active[0] + active[1]
            product = both.sum(2) * values - (both @ values[:, :, None])[:, :, 0]
            _put(image, places, 2 * self.query_weight[numbers, None] * product)
        return image

    def _compared(self, scores: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor, list[Tensor]]]:
        """Yield queries, documents by score, their scores, and who is an active partner of whom."""
        for numbers, table in self.batches:
            there = table >= 0
            s = torch.where(there, scores[table.clamp(min=0)].float(), torch.inf)
            s, order = torch.sort(s, dim=1)  # every query by itself
            places = table.gather(1, order)
            there = places >= 0
            s = torch.where(there, s, 0.0)
            y = torch.where(there, self.level[places.clamp(min=0)], torch.nan)
            above = (y[:, None, :] > y[:, :, None]) & (s[:, None, :] < s[:, :, None] + 1)
            below = (y[:, None, :] < y[:, :, None]) & (s[:, :, None] < s[:, None, :] + 1)
            yield numbers, places, s, [above.float(), below.float()]


class SwxDesign(TorchDesign):
    """P-SWX instead of exact sums."""

    def pair_loss(self, loss: Loss) -> TorchLoss:
        """Return the squared hinge loss."""
        found = super().pair_loss(LOSSES["squared_hinge"])
        found._pairs = Swx(cast(LevelPairs, self.pairs), self.matrix.features.device)
        return found


class SwxMatrix(TorchMatrix):
    """X on a device, for P-SWX."""

    @classmethod
    def on(cls, data: RankingData, device: str) -> "SwxMatrix":
        """Bring X to a device, as float32."""
        where = torch.device(device)
        X = torch.as_tensor(np.array(data.X, dtype=np.float32), device=where)
        return cls(SingleFeatures(X), native_matrix(data), Plans(where, has_triton=False))

    def design(self, pairs: PairCounts, threads: int) -> SwxDesign:
        """Return X with the documents of a set of pairs as its rows."""
        return SwxDesign(self, cast(LevelPairs, pairs), threads)


def _put(values: Tensor, places: Tensor, found: Tensor) -> None:
    there = places >= 0
    values[places[there]] = found[there].to(values.dtype)


def _batches(offsets: np.ndarray) -> Iterator[tuple[Tensor, np.ndarray]]:
    """Yield numbers of queries of about the same length, and their documents, −1 where none are."""
    sizes = np.diff(offsets)
    by_size = np.argsort(sizes, kind="stable")
    last = sizes.size
    while last > 0:
        longest = int(sizes[by_size[last - 1]])
        first = max(last - max(BATCH_ENTRIES // longest**2, 1), 0)
        numbers = by_size[first:last]
        place = np.arange(longest)
        table = np.where(place < sizes[numbers, None], offsets[numbers, None] + place, -1)
        yield torch.as_tensor(numbers), table
        last = first
