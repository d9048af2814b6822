"""Triton kernels for dense float32 features: X is read once per product, and summed in float64.

PyTorch has no product of a float32 matrix and a float64 vector, and converting tiles to float64
first costs five times the memory traffic. The order of these sums depends on the shape of X alone.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from marginrank._utils.types import Integers
from marginrank.operators.torch.features import DenseFeatures

ROWS, COLUMNS = 32, 64  # of a tile
ROWS_OF_A_SUM = 2048  # per partial sum of Xᵀz; partial sums are added in order


@triton.jit  # type: ignore[untyped-decorator]
def _dot(X, v, scores, n_rows, n_columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    first_of_row = rows.to(tl.int64) * n_columns
    total = tl.zeros((ROWS,), dtype=tl.float64)
    for first in range(0, n_columns, COLUMNS):
        columns = first + tl.arange(0, COLUMNS)
        inside = (rows < n_rows)[:, None] & (columns < n_columns)[None, :]
        tile = tl.load(X + first_of_row[:, None] + columns[None, :], mask=inside, other=0.0)
        weights = tl.load(v + columns, mask=columns < n_columns, other=0.0)
        total += tl.sum(tile.to(tl.float64) * weights[None, :], axis=1)
    tl.store(scores + rows, total, mask=rows < n_rows)


@triton.jit  # type: ignore[untyped-decorator]
def _transpose_dot(  # type: ignore[no-untyped-def]
    X,
    z,
    sums,
    n_rows,
    n_columns,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS_OF_A_SUM: tl.constexpr,
):
    block = tl.program_id(0)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), dtype=tl.float64)
    for step in range(0, ROWS_OF_A_SUM, ROWS):
        rows = block * ROWS_OF_A_SUM + step + tl.arange(0, ROWS)
        inside = (rows < n_rows)[:, None] & (columns < n_columns)[None, :]
        first_of_row = rows.to(tl.int64) * n_columns
        tile = tl.load(X + first_of_row[:, None] + columns[None, :], mask=inside, other=0.0)
        weights = tl.load(z + rows, mask=rows < n_rows, other=0.0)
        total += tl.sum(tile.to(tl.float64) * weights[:, None], axis=0)
    tl.store(sums + block.to(tl.int64) * n_columns + columns, total, mask=columns < n_columns)


class TritonFeatures(DenseFeatures):
    """A contiguous float32 tensor, multiplied by Triton kernels."""

    def dot(self, v: Tensor) -> Tensor:
        n_rows, n_columns = self.shape
        scores = torch.empty(n_rows, dtype=torch.float64, device=self.device)
        _dot[(triton.cdiv(n_rows, ROWS),)](
            self.X, v.contiguous(), scores, n_rows, n_columns, ROWS=ROWS, COLUMNS=COLUMNS
        )
        return scores

    def transpose_dot(self, z: Tensor) -> Tensor:
        n_rows, n_columns = self.shape
        n_blocks = triton.cdiv(n_rows, ROWS_OF_A_SUM)
        sums = torch.empty((n_blocks, n_columns), dtype=torch.float64, device=self.device)
        _transpose_dot[(n_blocks, triton.cdiv(n_columns, COLUMNS))](
            self.X,
            z.contiguous(),
            sums,
            n_rows,
            n_columns,
            ROWS=ROWS,
            COLUMNS=COLUMNS,
            ROWS_OF_A_SUM=ROWS_OF_A_SUM,
        )
        return sums.sum(0)

    def restrict(self, columns: Integers) -> "TritonFeatures":
        return TritonFeatures(super().restrict(columns).X)
