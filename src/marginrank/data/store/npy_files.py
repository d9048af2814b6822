"""Files of NumPy's .npy format, of which the array is read later or written some at a time."""

import math
import os
import zlib
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

HEADER = 10 + (1 << 16)  # bytes of a file in which its header ends


class NpyHeader(NamedTuple):
    """Position, shape and type of the array in a file."""

    start: int
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    @property
    def n_bytes(self) -> int:
        """Size of the file."""
        return self.start + math.prod(self.shape) * self.dtype.itemsize

    def array(self, content: NDArray[np.uint8]) -> NDArray[Any]:
        """Return the array in the bytes of the file, read-only; it is not copied."""
        flat = content[self.start :].view(self.dtype)
        array = np.asarray(flat.reshape(self.shape, order="F" if self.fortran else "C"))
        array.flags.writeable = False
        return array


def read_header(stream: IO[bytes]) -> NpyHeader:
    """Read the header; raise ValueError for arrays of objects and other versions."""
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("another version of the format")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.hasobject:
        raise ValueError("an array of objects")
    return NpyHeader(stream.tell(), shape, fortran, dtype)


class ArrayWriter:
    """A file whose array is written some rows at a time.

    Parameters
    ----------
    folder, name : str
        The file is `name`.npy in `folder`, where there must be none yet.
    dtype : dtype
        Of the array.
    shape : tuple of int
        Of the whole array.
    """

    def __init__(self, folder: str, name: str, dtype: Any, shape: tuple[int, ...]) -> None:
        self._dtype, self._shape = np.dtype(dtype), shape
        self._file = open(os.path.join(folder, f"{name}.npy"), "xb")  # noqa: SIM115
        self._n_bytes = self._crc = 0
        header = {
            "descr": np.lib.format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": shape,
        }
        np.lib.format.write_array_header_1_0(self, header)

    def write(self, content: bytes | memoryview) -> int:
        """Write some bytes, counted and summed."""
        self._n_bytes += len(content)
        self._crc = zlib.crc32(content, self._crc)
        return self._file.write(content)

    def append(self, rows: NDArray[Any]) -> None:
        """Write the next rows."""
        assert rows.dtype == self._dtype
        self.write(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)

    def entry(self) -> dict[str, Any]:
        """Return the entry of the file in the manifest of a store."""
        return {
            "dtype": self._dtype.str,
            "shape": list(self._shape),
            "bytes": self._n_bytes,
            "crc32": f"{self._crc:08x}",
        }

    def __enter__(self) -> "ArrayWriter":
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()
