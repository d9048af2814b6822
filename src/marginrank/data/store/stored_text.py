"""Strings inside a memory map."""

from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.types import Integers


class StoredText(Sequence[str]):
    """A sequence of strings inside a memory map, each decoded when it is asked for.

    Parameters
    ----------
    text : ndarray of uint8
        All strings, one after the other, in UTF-8.
    offsets : ndarray of int64, shape (n + 1,)
        String i is ``text[offsets[i]:offsets[i + 1]]``.
    """

    def __init__(self, text: NDArray[np.uint8], offsets: Integers) -> None:
        self._bytes = text
        self._offsets = offsets

    def __len__(self) -> int:
        """Return the number of strings."""
        return self._offsets.size - 1

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        """Return a string, or a list of them."""
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(f"{at} is not one of the {len(self)} strings")
        at %= len(self)
        first, last = self._offsets[at : at + 2]
        return self._bytes[first:last].tobytes().decode("utf-8", "surrogatepass")


def encode_texts(texts: Sequence[str]) -> tuple[NDArray[np.uint8], Integers]:
    """Return the text and the offsets of a :class:`StoredText`."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets
