"""Triton kernels for exact sums of floats, which do not depend on the order of addition.

See :mod:`~marginrank.operators.torch.fixed_point`.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

TILE = 128  # entries of a segment that are loaded at a time
BLOCK = 2048  # entries per partial sum of a vector
ROWS = 4096  # rows of a table that are loaded at a time
N_SUMS = 5  # number of totals of an evaluation: see LossSums
EXACT = {"enable_fp_fusion": False}  # products are rounded before they are added, as on the host


@triton.jit
def exponent(x):  # type: ignore[no-untyped-def]
    """Return the binary exponent of numbers x ≥ 0, as frexp does; −1022 for zero."""
    return ((x.to(tl.int64, bitcast=True) >> 52) & 2047) - 1022


@triton.jit
def power_of_two(number):  # type: ignore[no-untyped-def]
    """Return 2 to the power of an integer, by setting the bits of the float."""
    return ((number + 1023) << 52).to(tl.float64, bitcast=True)


@triton.jit
def rounded(x):  # type: ignore[no-untyped-def]
    """Return floats rounded to the nearest integers; ties go to even integers."""
    size = tl.abs(x)
    near = (size + 4503599627370496.0) - 4503599627370496.0
    near = tl.where(size < 4503599627370496.0, near, size)
    return tl.where(x < 0, -near, near)


@triton.jit  # type: ignore[untyped-decorator]
def largest(values, factors, origin, begin, end, HAS_FACTORS: tl.constexpr, TILE: tl.constexpr):  # type: ignore[no-untyped-def]
    """Return the maximum of |factor · (value − origin)| over the entries from `begin` to `end` − 1.

    The result is NaN if a value is not finite. Without HAS_FACTORS, all factors are one.
    """
    size, poison = tl.zeros((TILE,), tl.float64), tl.zeros((TILE,), tl.float64)
    for first in range(begin, end, TILE):
        at = first + tl.arange(0, TILE)
        x = tl.load(values + at, mask=at < end, other=0.0) - origin
        if HAS_FACTORS:
            x *= tl.load(factors + at, mask=at < end, other=0.0)
        x = tl.where(at < end, x, 0.0)
        size = tl.maximum(size, tl.abs(x))
        poison += x - x
    return tl.max(size) + tl.sum(poison)


@triton.jit  # type: ignore[untyped-decorator]
def _sum(values, stride, begin, end, count, TILE: tl.constexpr):  # type: ignore[no-untyped-def]
    # Return the sum of values[begin:end] at a stride, exact except for the last digit. The integers
    # have room for `count` entries.
    size, poison = tl.zeros((TILE,), tl.float64), tl.zeros((TILE,), tl.float64)
    for first in range(begin, end, TILE):
        at = first + tl.arange(0, TILE)
        x = tl.load(values + at * stride, mask=at < end, other=0.0)
        size = tl.maximum(size, tl.abs(x))
        poison += x - x
    most = tl.max(size) + tl.sum(poison)
    spare = 62 - exponent(count)
    shift = tl.minimum(spare - exponent(most), 1000)
    scale, finer = power_of_two(shift), power_of_two(spare)
    high, low = tl.zeros((TILE,), tl.int64), tl.zeros((TILE,), tl.int64)
    for first in range(begin, end, TILE):
        at = first + tl.arange(0, TILE)
        x = tl.load(values + at * stride, mask=at < end, other=0.0) * scale
        high += rounded(x).to(tl.int64)
        low += rounded((x - rounded(x)) * finer).to(tl.int64)
    unit = power_of_two(-shift) + 0.0 * most
    total = tl.sum(high).to(tl.float64) * unit
    return total + tl.sum(low).to(tl.float64) * (unit * power_of_two(-spare))


@triton.jit  # type: ignore[untyped-decorator]
def _segment_sums(columns, n_entries, slopes, offsets, weight, table, TILE: tl.constexpr):  # type: ignore[no-untyped-def]
    # Store the weighted sums of three columns over each segment, and the number of non-zero slopes.
    segment = tl.program_id(0)
    begin, end = tl.load(offsets + segment), tl.load(offsets + segment + 1)
    count = tl.maximum(end - begin, 1).to(tl.float64)
    row = table + 4 * segment
    factor = tl.load(weight + segment)
    total = _sum(columns, 1, begin, end, count, TILE)
    tl.store(row, tl.where(total < 0.0, 0.0, total) * factor)
    columns += n_entries
    tl.store(row + 1, _sum(columns, 1, begin, end, count, TILE) * factor)
    columns += n_entries
    tl.store(row + 2, _sum(columns, 1, begin, end, count, TILE) * factor)
    moved = tl.zeros((TILE,), tl.int64)
    for first in range(begin, end, TILE):
        at = first + tl.arange(0, TILE)
        moved += (tl.load(slopes + at, mask=at < end, other=0.0) != 0.0).to(tl.int64)
    tl.store(row + 3, tl.sum(moved).to(tl.float64))


@triton.jit  # type: ignore[untyped-decorator]
def _block_sums(values, n_entries, sums, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    first = tl.program_id(0).to(tl.int64) * BLOCK
    count = tl.full((), BLOCK, tl.int64)
    end = tl.minimum(first + count, n_entries)
    total = _sum(values, 1, first, end, count.to(tl.float64), BLOCK)
    tl.store(sums + tl.program_id(0), total)


@triton.jit  # type: ignore[untyped-decorator]
def _table_totals(table, n_rows, n_columns, totals, ROWS: tl.constexpr):  # type: ignore[no-untyped-def]
    # One program per column; the first also counts its non-zero entries.
    column = tl.program_id(0)
    begin, end = tl.zeros((), tl.int64), tl.zeros((), tl.int64) + n_rows
    total = _sum(table + column, n_columns, begin, end, tl.maximum(end, 1).to(tl.float64), ROWS)
    tl.store(totals + tl.where(column == 3, 4, column), total)
    if column == 0:
        positive = tl.zeros((ROWS,), tl.int64)
        for first in range(begin, end, ROWS):
            at = first + tl.arange(0, ROWS)
            x = tl.load(table + at * n_columns, mask=at < end, other=0.0)
            positive += (x != 0.0).to(tl.int64)
        tl.store(totals + 3, tl.sum(positive).to(tl.float64))


def segment_sums(columns: Tensor, slopes: Tensor, offsets: Tensor, weight: Tensor) -> Tensor:
    """Return three weighted column sums and a count for each segment, such as a query.

    The result has one row per segment. The count is the number of non-zero `slopes`. `weight` has
    one factor per segment.
    """
    table = torch.empty((weight.numel(), 4), dtype=torch.float64, device=columns.device)
    _segment_sums[(weight.numel(),)](
        columns, columns.shape[1], slopes, offsets, weight, table, TILE=TILE, **EXACT
    )
    return table


def table_totals(table: Tensor) -> Tensor:
    """Return the total loss and its rounding bounds, from a table with one row per query."""
    totals = torch.empty(N_SUMS, dtype=torch.float64, device=table.device)
    n_rows, n_columns = table.shape
    _table_totals[(n_columns,)](table, n_rows, n_columns, totals, ROWS=ROWS, **EXACT)
    return totals


def total(values: Tensor) -> Tensor:
    """Return the sum of all entries as a one-entry tensor; it does not depend on their order."""
    n_blocks = triton.cdiv(values.numel(), BLOCK)
    sums = torch.empty((n_blocks, 1), dtype=torch.float64, device=values.device)
    _block_sums[(n_blocks,)](values, values.numel(), sums, BLOCK=BLOCK, **EXACT)
    return table_totals(sums)[:1]
