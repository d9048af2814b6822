"""Arrays of any length that are kept on disk while they are made."""

import os
from contextlib import ExitStack
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.types import Integers


class SpilledArrays:
    """Arrays that are written to files some entries at a time, and mapped when all are there.

    Parameters
    ----------
    folder : str
        An empty folder for the files.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._files: dict[str, IO[bytes]] = {}
        self._dtypes: dict[str, np.dtype[Any]] = {}
        self._ends: dict[str, int] = {}

    def __enter__(self) -> "SpilledArrays":
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files; maps of them stay."""
        self._stack.close()

    def __contains__(self, name: str) -> bool:
        """Whether there is an array of that name."""
        return name in self._files

    def append(self, name: str, entries: NDArray[Any]) -> None:
        """Write the next entries of an array, all of which have one type."""
        if name not in self._files:
            path = os.path.join(self._folder, name)
            self._files[name] = self._stack.enter_context(open(path, "xb"))  # noqa: SIM115
            self._dtypes[name] = entries.dtype
        assert entries.dtype == self._dtypes[name]
        self._files[name].write(np.ascontiguousarray(entries).reshape(-1).view(np.uint8).data)

    def append_lengths(self, name: str, lengths: Integers) -> None:
        """Write to an array of int64, which begins with 0, where more rows of some lengths end."""
        if name not in self._files:
            self.append(name, np.zeros(1, dtype=np.int64))
        ends = self._ends.get(name, 0) + np.cumsum(lengths, dtype=np.int64)
        self.append(name, ends)
        if ends.size:
            self._ends[name] = int(ends[-1])

    def array(self, name: str) -> NDArray[Any]:
        """Return an array, mapped read-only; nothing can be appended any more."""
        self._files[name].close()
        path = os.path.join(self._folder, name)
        if os.path.getsize(path) == 0:
            return np.empty(0, dtype=self._dtypes[name])
        return np.asarray(np.memmap(path, dtype=self._dtypes[name], mode="r"))

    def kept(self, name: str, entries: NDArray[Any]) -> NDArray[Any]:
        """Return an array that is on disk instead of in memory."""
        self.append(name, entries)
        return self.array(name)
