"""Where text comes from: paths, compressed or not, file objects and standard input."""

import bz2
import gzip
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import IO, Any, Protocol

from marginrank._utils.optional import require

Path = str | os.PathLike[str]
Source = Path | IO[bytes]
Progress = Callable[[int, int], None]

CHUNK = 1 << 24  # bytes of text in work at a time
BOM = b"\xef\xbb\xbf"
INPUT = 1 << 16  # bytes read at a time; Zstandard returns all that is in them at once
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, OSError)  # bz2 raises a bare OSError


def as_list(source: Source | Sequence[Source]) -> list[Source]:
    """Return one or several sources as a list."""
    sources: list[Any] = list(source) if isinstance(source, (list, tuple)) else [source]
    if not sources:
        raise ValueError("source is an empty list; give at least one file.")
    return sources


def name_all(sources: Sequence[Source]) -> str:
    """Return what to call several sources in messages."""
    first = source_name(sources[0])
    return first if len(sources) == 1 else f"{first} with {len(sources) - 1} more"


def source_name(source: Source) -> str:
    """Return what to call a source in messages."""
    if isinstance(source, (str, os.PathLike)):
        return "<stdin>" if source == "-" else os.fspath(source)
    return str(getattr(source, "name", "<file>"))


def open_source(source: Source, stack: ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    """Open a source for reading; return the stream and the raw file below it, for its position."""
    if source == "-":
        return sys.stdin.buffer, sys.stdin.buffer
    if not isinstance(source, (str, os.PathLike)):
        if isinstance(source.read(0), str):
            raise ValueError(
                f"{source_name(source)} is a text file object; open it with mode 'rb'."
            )
        return source, source
    path = os.fspath(source)
    raw = stack.enter_context(open(path, "rb", buffering=0))  # noqa: SIM115
    stream = decompressed(path, raw)
    return (raw if stream is None else stack.enter_context(stream)), raw


def texts_of(source: Source, progress: Progress | None) -> Iterator[tuple[bytes, int, int]]:
    """Yield (text, first, last) with whole lines text[first:last] of a source."""
    with ExitStack() as stack:
        stream, raw = open_source(source, stack)
        regular = isinstance(source, (str, os.PathLike)) and stat.S_ISREG(
            os.fstat(raw.fileno()).st_mode
        )
        total = os.fstat(raw.fileno()).st_size if regular else 0
        stack.enter_context(undamaged(source_name(source)))
        for lines in whole_lines(stream, ahead=regular):
            yield lines
            if progress is not None and total:
                progress(raw.tell(), total)


def printable(message: bytes) -> str:
    """Decode a message that quotes a file, and escape what a terminal would obey or not show."""
    text = message.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def whole_lines(stream: IO[bytes], ahead: bool) -> Iterator[tuple[bytes, int, int]]:
    """Yield (text, first, last) with whole lines text[first:last], without copying the chunks."""
    unended: list[bytes] = []  # pieces of a line that has not ended yet
    begins = True
    for chunk in _chunks(stream, ahead):
        first = len(BOM) if begins and chunk.startswith(BOM) else 0
        begins = False
        last = chunk.rfind(b"\n") + 1
        if unended and last > 0:
            head = chunk.find(b"\n") + 1
            line = b"".join([*unended, chunk[:head]])
            yield line, 0, len(line)
            unended, first = [], head
        if last > first:
            yield chunk, first, last
        if last < len(chunk):
            unended.append(chunk[max(first, last) :])
    if unended:
        line = b"".join(unended)
        yield line, 0, len(line)


def _chunks(stream: IO[bytes], ahead: bool) -> Iterator[bytes]:
    """Yield what a stream holds; `ahead` reads the next chunk while one is in work."""
    if not ahead:
        yield from iter(lambda: stream.read(CHUNK), b"")
        return
    with ThreadPoolExecutor(1) as thread:
        pending = thread.submit(stream.read, CHUNK)
        while chunk := pending.result():
            pending = thread.submit(stream.read, CHUNK)
            yield chunk


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
