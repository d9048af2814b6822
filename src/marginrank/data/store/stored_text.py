"""Strings inside a memory map, and in another order."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.types import Integers


class Texts(Sequence[str], ABC):
    """A sequence of strings, each made when it is asked for."""

    @abstractmethod
    def _text(self, at: int) -> str:
        """Return a string by its number, from 0."""

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        """Return a string, or a list of them."""
        if isinstance(at, slice):
            return [self._text(i) for i in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(f"{at} is not one of the {len(self)} strings")
        return self._text(at % len(self))


class StoredText(Texts):
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

    def _text(self, at: int) -> str:
        first, last = self._offsets[at : at + 2]
        return self._bytes[first:last].tobytes().decode("utf-8", "surrogatepass")


class Reordered(Texts):
    """Strings of another sequence, in another order.

    Parameters
    ----------
    texts : sequence of str
        The strings.
    order : ndarray of int64
        String i is ``texts[order[i]]``.
    """

    def __init__(self, texts: Sequence[str], order: Integers) -> None:
        self._texts = texts
        self._order = order

    def __len__(self) -> int:
        """Return the number of strings."""
        return self._order.size

    def _text(self, at: int) -> str:
        return self._texts[int(self._order[at])]


def encode_texts(texts: Sequence[str]) -> tuple[NDArray[np.uint8], Integers]:
    """Return the text and the offsets of a :class:`StoredText`."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets
