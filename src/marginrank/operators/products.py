"""Sums of matrix products RᵀS, computed in single precision and added in double precision."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.threads import serial_blas
from marginrank._utils.types import Floats

Singles = NDArray[np.float32]

ROWS_PER_BLOCK = 2048  # few terms per sum in single precision, so few digits are lost
COLUMNS_PER_STRIP = 256  # columns that one thread computes at a time


def sum_of_products(
    blocks: Iterable[tuple[Singles, Singles]], n_columns: int, threads: int
) -> Floats:
    """Return the sum of the products RᵀS over blocks (R, S); the sum must be symmetric.

    Products are computed in single precision and added in double precision.
    """
    result = np.zeros((n_columns, n_columns))

    def add_strip(left: Singles, right: Singles, first: int) -> None:
        # Add the upper triangle in strips of fixed width: the same sums for any number of threads.
        last = min(first + COLUMNS_PER_STRIP, n_columns)
        # Set the limit in the thread: some libraries have limits per thread. Overflow is allowed.
        with serial_blas(), np.errstate(over="ignore", invalid="ignore"):
            result[:last, first:last] += left[:, :last].T @ right[:, first:last]

    starts = range(0, n_columns, COLUMNS_PER_STRIP)
    with ThreadPoolExecutor(threads) as pool:
        for left, right in blocks:
            list(pool.map(partial(add_strip, left, right), starts))
    for first in starts:
        strip = slice(first, first + COLUMNS_PER_STRIP)
        result[strip, :first] = result[:first, strip].T
    return result
