"""Compressed files, told by how their names end."""

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, Protocol

from marginrank._utils.optional import require

INPUT = 1 << 16  # bytes read at a time; Zstandard returns all that is in them at once
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, OSError)  # bz2 raises a bare OSError


def decompressed(path: str, file: IO[bytes]) -> Any:
    """Return what reads the file at `path` that is open; None if it is not compressed."""
    openers: dict[str, Callable[[Any], Any]] = {
        ".gz": gzip.open,
        ".bz2": lambda file: _Streams(file, bz2.BZ2Decompressor),
        ".xz": lambda file: _Streams(file, lzma.LZMADecompressor),
        ".zst": lambda file: _Streams(file, _ZstdStream),
    }
    opener = openers.get(_ending(path))
    return None if opener is None else opener(file)


def compressed(path: str, file: IO[bytes]) -> Any:
    """Return what writes the file at `path` that is open; None if it is not to be compressed."""
    openers: dict[str, Callable[[Any, str], Any]] = {
        ".gz": gzip.open,
        ".bz2": bz2.open,
        ".xz": lzma.open,
        ".zst": _open_zstd,
    }
    opener = openers.get(_ending(path))
    return None if opener is None else opener(file, "wb")


@contextmanager
def undamaged(name: str) -> Iterator[None]:
    """Say by name that a compressed file is damaged."""
    try:
        yield
    except DAMAGED as error:
        if getattr(error, "errno", None) is not None:  # the disk's fault, not the file's
            raise
        raise ValueError(f"{name}: the compressed file is damaged or cut off.") from error


def _ending(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _open_zstd(file: IO[bytes], _: str) -> Any:
    compressor = require("zstandard", "zstd").ZstdCompressor(write_checksum=True)
    return compressor.stream_writer(file, closefd=False)


class _Stream(Protocol):
    """One stream, as the decompressors of the standard library have it."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _ZstdStream:
    """One frame of Zstandard."""

    needs_input = True

    def __init__(self) -> None:
        zstandard = require("zstandard", "zstd")
        self._error = zstandard.ZstdError
        self._frame = zstandard.ZstdDecompressor().decompressobj()

    @property
    def eof(self) -> bool:
        return bool(self._frame.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._frame.unused_data)

    def decompress(self, data: bytes, _: int) -> bytes:
        try:
            return bytes(self._frame.decompress(data))
        except self._error as error:
            raise EOFError(str(error)) from error


class _Streams:
    """Decompresses stream after stream, and notices where one is damaged or cut off.

    The standard library takes what follows the first stream for the end of the file if it does not
    begin like another one. Here only zeros may follow, as padding.
    """

    def __init__(self, file: IO[bytes], begin: Callable[[], _Stream]) -> None:
        self._file = file
        self._begin = begin
        self._stream: _Stream | None = None
        self._input = b""

    def __enter__(self) -> "_Streams":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self, size: int) -> bytes:
        """Return about `size` bytes, none at the end."""
        pieces: list[bytes] = []
        missing = size
        while missing > 0 and (stream := self._current()) is not None:
            pieces.append(stream.decompress(self._input, missing))
            self._input = stream.unused_data
            missing -= len(pieces[-1])
        return b"".join(pieces)

    def _current(self) -> _Stream | None:
        """Return the stream to go on with, and have input for it; None at the end of the file."""
        if self._stream is not None and not self._stream.eof:
            if self._stream.needs_input:
                self._input = self._file.read(INPUT)
                if not self._input:
                    raise EOFError("the last stream is cut off")
            return self._stream
        while not (rest := self._input.lstrip(b"\0")):
            self._input = self._file.read(INPUT)
            if not self._input:
                return None
        self._stream, self._input = self._begin(), rest
        return self._stream
