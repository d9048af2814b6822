"""Triton kernels for products with a dense feature matrix X: X is read once per product.

Sums are in float64. PyTorch has no product of a float32 matrix and a float64 vector, and converting
tiles to float64 first costs five times the memory traffic. Several vectors are multiplied in one
launch: programs with the same rows are neighbors, so they find the rows in the cache. The order of
sums depends only on the shape of X.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from marginrank._utils.types import Integers
from marginrank.operators.torch.features import DenseFeatures

ROWS, COLUMNS = 32, 64  # size of a tile
ROWS_OF_A_SUM = 2048  # rows per partial sum of Xᵀz
SUMS = 64  # partial sums added at a time


@triton.jit  # type: ignore[untyped-decorator]
def _dot(X, v, scores, n_rows, n_columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    vector = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    first_of_row = rows.to(tl.int64) * n_columns
    total = tl.zeros((ROWS,), dtype=tl.float64)
    for first in range(0, n_columns, COLUMNS):
        columns = first + tl.arange(0, COLUMNS)
        inside = (rows < n_rows)[:, None] & (columns < n_columns)[None, :]
        tile = tl.load(X + first_of_row[:, None] + columns[None, :], mask=inside, other=0.0)
        entries = v + vector * n_columns + columns
        weights = tl.load(entries, mask=columns < n_columns, other=0.0)
        total += tl.sum(tile.to(tl.float64) * weights[None, :], axis=1)
    tl.store(scores + vector * n_rows + rows, total, mask=rows < n_rows)


@triton.jit  # type: ignore[untyped-decorator]
def _transpose_dot(  # type: ignore[no-untyped-def]
    X, z, sums, n_rows, n_columns, n_blocks,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, ROWS_OF_A_SUM: tl.constexpr,
):  # fmt: skip
    vector, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    columns = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), dtype=tl.float64)
    first = block * ROWS_OF_A_SUM
    for start in range(first, tl.minimum(first + ROWS_OF_A_SUM, n_rows), ROWS):
        rows = start + tl.arange(0, ROWS)
        inside = (rows < n_rows)[:, None] & (columns < n_columns)[None, :]
        first_of_row = rows.to(tl.int64) * n_columns
        tile = tl.load(X + first_of_row[:, None] + columns[None, :], mask=inside, other=0.0)
        weights = tl.load(z + vector * n_rows + rows, mask=rows < n_rows, other=0.0)
        total += tl.sum(tile.to(tl.float64) * weights[:, None], axis=0)
    at = (vector * n_blocks + block) * n_columns + columns
    tl.store(sums + at, total, mask=columns < n_columns)


@triton.jit  # type: ignore[untyped-decorator]
def _add_blocks(sums, totals, n_blocks, n_columns, SUMS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    vector = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), dtype=tl.float64)
    for first in range(0, n_blocks, SUMS):
        blocks = first + tl.arange(0, SUMS)
        inside = (blocks < n_blocks)[:, None] & (columns < n_columns)[None, :]
        at = (vector * n_blocks + blocks)[:, None] * n_columns + columns[None, :]
        total += tl.sum(tl.load(sums + at, mask=inside, other=0.0), axis=0)
    tl.store(totals + vector * n_columns + columns, total, mask=columns < n_columns)


class TritonFeatures(DenseFeatures):
    """A dense feature matrix on a GPU, multiplied by Triton kernels; float32 or float64."""

    def dot(self, v: Tensor) -> Tensor:
        return self.dots(v[None])[0]

    def transpose_dot(self, z: Tensor) -> Tensor:
        return self.transpose_dots(z[None])[0]

    def dots(self, vs: Tensor) -> Tensor:
        n_rows, n_columns = self.shape
        scores = self._empty(len(vs), n_rows)
        _dot[(len(vs), triton.cdiv(n_rows, ROWS))](
            self.X, vs.contiguous(), scores, n_rows, n_columns, ROWS=ROWS, COLUMNS=COLUMNS
        )
        return scores

    def transpose_dots(self, zs: Tensor) -> Tensor:
        n_rows, n_columns = self.shape
        n_blocks, n_tiles = triton.cdiv(n_rows, ROWS_OF_A_SUM), triton.cdiv(n_columns, COLUMNS)
        sums = self._empty(len(zs), n_blocks, n_columns)
        _transpose_dot[(len(zs), n_blocks, n_tiles)](
            self.X, zs.contiguous(), sums, n_rows, n_columns, n_blocks,
            ROWS=ROWS, COLUMNS=COLUMNS, ROWS_OF_A_SUM=ROWS_OF_A_SUM,
        )  # fmt: skip
        totals = self._empty(len(zs), n_columns)
        _add_blocks[(len(zs), n_tiles)](
            sums, totals, n_blocks, n_columns, SUMS=SUMS, COLUMNS=COLUMNS
        )
        return totals

    def restrict(self, columns: Integers) -> "TritonFeatures":
        return TritonFeatures(super().restrict(columns).X)

    def _empty(self, *shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.float64, device=self.device)
