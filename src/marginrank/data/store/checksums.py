"""CRC-32 of what is written, and of large arrays by several threads."""

import zlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import IO

import numpy as np
from numpy.typing import NDArray

CHUNK = 1 << 24  # bytes in work at a time
POLYNOMIAL = 0xEDB88320  # of CRC-32; the highest bit of a number is the coefficient of x⁰


class Checksummed:
    """A file that counts and sums what is written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.n_bytes = 0
        self.crc = 0

    def write(self, text: bytes | memoryview) -> int:
        """Write some bytes."""
        self.n_bytes += len(text)
        self.crc = zlib.crc32(text, self.crc)
        return self.file.write(text)


def crc32(content: NDArray[np.uint8], threads: int) -> int:
    """Return the CRC-32 of an array of bytes."""
    chunks = [content.data[at : at + CHUNK] for at in range(0, content.size, CHUNK)]
    if threads == 1 or len(chunks) < 2:
        return joined_crc32(map(_crc32, chunks), map(len, chunks))
    with ThreadPoolExecutor(threads) as pool:  # zlib lets go of the interpreter
        return joined_crc32(pool.map(_crc32, chunks), map(len, chunks))


def _crc32(chunk: memoryview) -> int:
    return zlib.crc32(chunk)


def joined_crc32(checksums: Iterable[int], sizes: Iterable[int]) -> int:
    """Return the CRC-32 of chunks put together: that of AB is that of A, shifted by B, plus B's."""
    crc = 0
    for following, size in zip(checksums, sizes, strict=True):
        crc = _product(crc, _shift(size)) ^ following
    return crc


@cache
def _shift(n_bytes: int) -> int:
    """Return x to the power of 8 n_bytes, modulo the polynomial."""
    power, square = 1 << 31, 1 << 23  # x⁰ and x⁸
    while n_bytes:
        if n_bytes & 1:
            power = _product(power, square)
        square = _product(square, square)
        n_bytes >>= 1
    return power


def _product(a: int, b: int) -> int:
    """Multiply two polynomials over the integers modulo 2."""
    product = 0
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            product ^= b
        b = b >> 1 ^ (POLYNOMIAL if b & 1 else 0)
    return product
