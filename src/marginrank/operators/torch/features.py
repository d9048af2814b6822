"""A feature matrix X on a PyTorch device: dense and sparse products in float64.

The order of the sums depends only on X. float32 values are stored as float32; tiles of rows are
converted to float64 when they are multiplied.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from marginrank._utils.types import Integers
from marginrank.operators.torch.fixed_point import prefix_sums

TILE_ENTRIES = 1 << 24  # entries converted to float64 at a time: 128 MiB
BLOCK_ROWS = 512  # rows per partial sum


class DenseFeatures:
    """A dense feature matrix on a PyTorch device, as a float32 or float64 tensor."""

    def __init__(self, X: Tensor) -> None:
        self.X = X

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape[0], self.X.shape[1]

    @property
    def n_entries(self) -> int:
        return self.X.numel()

    @property
    def device(self) -> torch.device:
        return self.X.device

    def dot(self, v: Tensor) -> Tensor:
        parts = [self._double(rows) @ v for rows in self._tiles()]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def transpose_dot(self, z: Tensor) -> Tensor:
        """Return Xᵀz for a vector z with one entry per row; sums are always in the same order."""
        total = torch.zeros(self.shape[1], dtype=torch.float64, device=self.device)
        for rows in self._tiles():
            total = total + _sum_of_blocks(self._double(rows), z[rows])
        return total

    def dots(self, vs: Tensor) -> Tensor:
        """Return Xv for each row v of `vs`; X is converted to float64 once, tile by tile."""
        # One product per vector: sums of a matrix product would depend on the number of vectors.
        parts = []
        for rows in self._tiles():
            tile = self._double(rows)
            parts.append(torch.stack([tile @ v for v in vs]))
        return torch.cat(parts, dim=1)

    def transpose_dots(self, zs: Tensor) -> Tensor:
        """Return Xᵀz for each row z of `zs`; X is converted to float64 once, tile by tile."""
        totals = torch.zeros((len(zs), self.shape[1]), dtype=torch.float64, device=self.device)
        for rows in self._tiles():
            tile = self._double(rows)
            totals = totals + torch.stack([_sum_of_blocks(tile, z[rows]) for z in zs])
        return totals

    def column(self, j: int) -> Tensor:
        return self.X[:, j].to(torch.float64)

    def restrict(self, columns: Integers) -> "DenseFeatures":
        chosen = torch.as_tensor(columns, device=self.device)
        return DenseFeatures(self.X.index_select(1, chosen))

    def largest_squares(self, rows: Tensor | None, offsets: Integers, weight: Tensor) -> Tensor:
        """Return, for each feature, a weighted sum over queries of its largest square in the query.

        For feature j it is Σ_q weight_q · max x_ij², where the maximum is over the documents i of
        query q. `rows` has the row of X of each document, None for all rows in order. Query q has
        the documents from offsets[q] to offsets[q + 1] − 1.
        """
        total = torch.zeros(self.shape[1], dtype=torch.float64, device=self.device)
        for first, last in _runs(offsets, TILE_ENTRIES // max(self.shape[1], 1)):
            begin, end = int(offsets[first]), int(offsets[last])
            block = self.X[begin:end] if rows is None else self.X.index_select(0, rows[begin:end])
            bounds = torch.as_tensor(offsets[first : last + 1] - begin, device=self.device)
            squares = block.to(torch.float64).square()
            largest = torch.segment_reduce(
                squares, "max", offsets=bounds, axis=0, initial=0.0, unsafe=True
            )
            total = total + weight[first:last] @ largest
        return total

    def _tiles(self) -> Iterator[slice]:
        height = max(TILE_ENTRIES // max(self.shape[1], 1), BLOCK_ROWS)
        height -= height % BLOCK_ROWS
        for first in range(0, max(self.shape[0], 1), height):
            yield slice(first, first + height)

    def _double(self, rows: slice) -> Tensor:
        return self.X[rows].to(torch.float64)


@dataclass(frozen=True)
class _Lines:
    """A sparse matrix in compressed form; its rows (CSR) or columns (CSC) are called lines."""

    offsets: Tensor
    index: Tensor  # int32
    values: Tensor
    bounds: Integers  # the offsets, in host memory

    @classmethod
    def of(cls, offsets: Tensor, index: Tensor, values: Tensor) -> "_Lines":
        return cls(offsets, index.to(torch.int32), values, offsets.cpu().numpy())

    def dot(self, v: Tensor) -> Tensor:
        """Return the inner product of each row (CSR) or column (CSC) with v."""
        parts = []
        for first, last in _runs(self.bounds, TILE_ENTRIES):
            some = slice(int(self.bounds[first]), int(self.bounds[last]))
            products = self.values[some] * v.index_select(0, self.index[some])
            offsets = self.offsets[first : last + 1] - int(self.bounds[first])
            parts.append(
                torch.segment_reduce(products, "sum", offsets=offsets, initial=0.0, unsafe=True)
            )
        return parts[0] if len(parts) == 1 else torch.cat(parts)


class SparseFeatures:
    """A sparse feature matrix on a PyTorch device, stored both by rows and by columns."""

    def __init__(self, rows: _Lines, n_columns: int) -> None:
        self._rows = rows
        self._n_columns = n_columns
        counts = torch.diff(rows.offsets)
        row = torch.repeat_interleave(torch.arange(counts.numel(), device=counts.device), counts)
        order = torch.argsort(rows.index, stable=True)
        per_column = torch.bincount(rows.index, minlength=n_columns)
        self._columns = _Lines.of(prefix_sums(per_column), row[order], rows.values[order])

    @classmethod
    def of(cls, X: Any, device: torch.device) -> "SparseFeatures":
        """Return a SciPy CSR matrix, copied to a PyTorch device."""
        offsets = torch.as_tensor(X.indptr.astype(np.int64), device=device)
        used = slice(int(X.indptr[-1]))  # the arrays may be longer
        index = torch.as_tensor(X.indices[used], device=device)
        values = torch.as_tensor(X.data[used], device=device)
        return cls(_Lines.of(offsets, index, values), X.shape[1])

    @classmethod
    def of_tensor(cls, X: Tensor) -> "SparseFeatures":
        """Return a PyTorch tensor in CSR layout as a sparse feature matrix on the same device."""
        rows = _Lines.of(X.crow_indices().to(torch.int64), X.col_indices(), X.values())
        return cls(rows, X.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        return self._rows.bounds.size - 1, self._n_columns

    @property
    def n_entries(self) -> int:
        return self._rows.values.numel()

    @property
    def device(self) -> torch.device:
        return self._rows.values.device

    def dot(self, v: Tensor) -> Tensor:
        return self._rows.dot(v)

    def transpose_dot(self, z: Tensor) -> Tensor:
        return self._columns.dot(z)

    def dots(self, vs: Tensor) -> Tensor:
        return torch.stack([self.dot(v) for v in vs])

    def transpose_dots(self, zs: Tensor) -> Tensor:
        return torch.stack([self.transpose_dot(z) for z in zs])

    def column(self, j: int) -> Tensor:
        some = slice(int(self._columns.bounds[j]), int(self._columns.bounds[j + 1]))
        column = torch.zeros(self.shape[0], dtype=torch.float64, device=self.device)
        entries = self._columns.values[some].to(torch.float64)
        return column.index_copy_(0, self._columns.index[some].long(), entries)

    def restrict(self, columns: Integers) -> "SparseFeatures":
        number = torch.full((self._n_columns,), -1, dtype=torch.int32, device=self.device)
        chosen = torch.as_tensor(columns, device=self.device)
        number[chosen] = torch.arange(chosen.numel(), dtype=torch.int32, device=self.device)
        index = number.index_select(0, self._rows.index)
        kept = index >= 0
        before = prefix_sums(kept.to(torch.int64))
        offsets = before.index_select(0, self._rows.offsets)
        return SparseFeatures(
            _Lines.of(offsets, index[kept], self._rows.values[kept]), chosen.numel()
        )

    def largest_squares(self, rows: Tensor | None, offsets: Integers, weight: Tensor) -> Tensor:
        """Return, for each feature, a weighted sum over queries of its squares in the query.

        It is an upper bound on the same method of DenseFeatures, which takes the largest square of
        a query instead of the sum.
        """
        by_document = torch.repeat_interleave(
            weight, torch.as_tensor(np.diff(offsets), device=self.device)
        )
        lines = self._columns
        squares = _Lines(
            lines.offsets, lines.index, lines.values.to(torch.float64).square(), lines.bounds
        )
        return squares.dot(by_row(by_document, rows, self.shape[0]))


DeviceFeatures = DenseFeatures | SparseFeatures


def by_row(values: Tensor, rows: Tensor | None, n_rows: int) -> Tensor:
    """Return one value per row of X, given one per document; zero for rows without a document.

    `rows` has the row of each document; None if documents are in the order of the rows.
    """
    if rows is None:
        return values
    zeros = torch.zeros((*values.shape[:-1], n_rows), dtype=values.dtype, device=values.device)
    return zeros.index_copy_(-1, rows, values)


def _sum_of_blocks(rows: Tensor, z: Tensor) -> Tensor:
    """Return rowsᵀz: sums within blocks of BLOCK_ROWS rows, added up in a second step."""
    whole = rows.shape[0] - rows.shape[0] % BLOCK_ROWS
    blocks = rows[:whole].view(-1, BLOCK_ROWS, rows.shape[1])
    sums = torch.bmm(z[:whole].view(-1, 1, BLOCK_ROWS), blocks).sum((0, 1))
    return sums if whole == rows.shape[0] else sums + z[whole:] @ rows[whole:]


def _runs(bounds: Integers, size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges (first, last) of rows or columns that have about `size` entries together."""
    first, n = 0, bounds.size - 1
    while first < n:
        last = int(np.searchsorted(bounds, bounds[first] + size, side="right")) - 1
        last = min(max(last, first + 1), n)
        yield first, last
        first = last
