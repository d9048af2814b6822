"""Reading of text in large chunks from paths (also compressed), file objects or standard input.

A *source* is one of these: a path, "-" for standard input, or a binary file object.
"""

import bz2
import gzip
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from typing import IO, Any

from marginrank._utils.optional import require

Path = str | os.PathLike[str]
Source = Path | IO[bytes]
Progress = Callable[[int, int], None]

CHUNK = 1 << 24  # bytes of text parsed at a time
BOM = b"\xef\xbb\xbf"
INPUT = 1 << 16  # compressed bytes read at a time
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, OSError)  # bz2 raises OSError for damaged files


def as_list(source: Source | Sequence[Source]) -> list[Source]:
    """Return a list of sources (paths, file objects or "-"), given one source or several."""
    sources: list[Any] = list(source) if isinstance(source, (list, tuple)) else [source]
    if not sources:
        raise ValueError("source is an empty list; pass at least one file.")
    return sources


def name_all(sources: Sequence[Source]) -> str:
    """Return one name for all sources in error messages, such as "a.txt with 2 more"."""
    first = source_name(sources[0])
    return first if len(sources) == 1 else f"{first} with {len(sources) - 1} more"


def source_name(source: Source) -> str:
    """Return the name of a text source for error messages: its path, "<stdin>" or "<file>"."""
    if isinstance(source, (str, os.PathLike)):
        return "<stdin>" if source == "-" else os.fspath(source)
    return str(getattr(source, "name", "<file>"))


def numbered_lines(source: Source, progress: Progress | None) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line without line end) for the lines of a text source.

    Raise ValueError for a line longer than two chunks (32 MiB), so that memory is bounded.
    """
    before = 0
    for text, first, last in texts_of(source, progress, longest=CHUNK):
        lines = text[first:last].removesuffix(b"\n").split(b"\n")
        yield from enumerate(lines, before + 1)
        before += len(lines)


def texts_of(
    source: Source, progress: Progress | None, longest: int | None = None
) -> Iterator[tuple[bytes, int, int]]:
    """Yield the chunks of a source as (text, first, last), where text[first:last] has whole lines.

    `progress` is called with the number of bytes read so far and the size of the file (0 if
    unknown). A line that is more than one chunk (16 MiB) longer than `longest` raises ValueError.
    """
    with ExitStack() as stack:
        total = 0  # size of a regular file, else 0
        if source == "-":
            raw: IO[bytes] = sys.stdin.buffer
            stream: Any = raw
        elif isinstance(source, (str, os.PathLike)):
            path = os.fspath(source)
            raw = stack.enter_context(open(path, "rb", buffering=0))
            stream = decompressed(path, raw)
            status = os.fstat(raw.fileno())
            total = status.st_size if stat.S_ISREG(status.st_mode) else 0
        else:
            if isinstance(source.read(0), str):
                raise ValueError(
                    f"{source_name(source)} is a text file object; open it with mode 'rb'."
                )
            stream = raw = source
        name = source_name(source)
        stack.enter_context(_undamaged(name))
        for lines in _whole_lines(stream, ahead=total > 0, longest=longest, name=name):
            yield lines
            if progress is not None and total:
                progress(raw.tell(), total)


def printable(message: bytes) -> str:
    """Return bytes of a file as text for a message, with unprintable characters escaped."""
    text = message.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _whole_lines(
    stream: IO[bytes], ahead: bool, longest: int | None, name: str
) -> Iterator[tuple[bytes, int, int]]:
    """Yield (text, first, last), where text[first:last] has whole lines of a stream.

    Chunks of the stream are not copied; only a line that spans chunks is joined.
    """
    unended: list[bytes] = []  # chunks of a line whose end has not been read yet
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
            if longest is not None and sum(map(len, unended)) > longest:
                raise ValueError(
                    f"{name}: a line is longer than {longest >> 20} MiB; check the format."
                )
    if unended:
        line = b"".join(unended)
        yield line, 0, len(line)


def _chunks(stream: IO[bytes], ahead: bool) -> Iterator[bytes]:
    """Yield a stream in chunks of 16 MiB; with `ahead`, a thread reads the next one meanwhile."""
    if not ahead:
        yield from iter(lambda: stream.read(CHUNK), b"")
        return
    with ThreadPoolExecutor(1) as thread:
        pending = thread.submit(stream.read, CHUNK)
        while chunk := pending.result():
            pending = thread.submit(stream.read, CHUNK)
            yield chunk


def decompressed(path: str, file: IO[bytes]) -> Any:
    """Return a stream that decompresses `file` if `path` ends in .gz, .bz2, .xz or .zst.

    For other paths, return `file` itself.
    """
    ending = _ending(path)
    if ending == ".gz":
        return gzip.open(file)
    begin = {".bz2": bz2.BZ2Decompressor, ".xz": lzma.LZMADecompressor, ".zst": _ZstdStream}
    return _Streams(file, begin[ending]) if ending in begin else file


def compressed(path: str, file: IO[bytes]) -> Any:
    """Return a context manager for a stream that compresses to `file`.

    The format follows from the ending of `path`: .gz, .bz2, .xz or .zst. For other endings, the
    stream is `file` itself.
    """
    ending = _ending(path)
    if ending == ".zst":
        compressor = require("zstandard", "zstd").ZstdCompressor(write_checksum=True)
        return compressor.stream_writer(file, closefd=False)
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    return openers[ending](file, "wb") if ending in openers else nullcontext(file)


@contextmanager
def _undamaged(name: str) -> Iterator[None]:
    """Convert errors of decompression in the block to a ValueError that names the file."""
    try:
        yield
    except DAMAGED as error:
        if getattr(error, "errno", None) is not None:  # the disk failed; the file is not damaged
            raise
        raise ValueError(
            f"{name}: the compressed file is damaged or truncated; create it again."
        ) from error


def _ending(path: str) -> str:
    return os.path.splitext(path)[1].lower()


class _ZstdStream:
    """Decompressor for one frame of Zstandard, with the interface of bz2.BZ2Decompressor."""

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
    """File-like object that decompresses a file of one or more concatenated compressed streams.

    Unlike the standard library, it does not ignore garbage after the last stream: only zeros may
    follow, as padding. A damaged or truncated stream raises an error such as EOFError.
    """

    def __init__(self, file: IO[bytes], begin: Callable[[], Any]) -> None:
        self._file = file
        self._begin = begin
        self._stream: Any = None
        self._input = b""

    def read(self, size: int) -> bytes:
        pieces: list[bytes] = []
        missing = size
        while missing > 0 and (stream := self._current()) is not None:
            pieces.append(stream.decompress(self._input, missing))
            self._input = stream.unused_data
            missing -= len(pieces[-1])
        return b"".join(pieces)

    def _current(self) -> Any:
        """Return the next decompressor, with its input read, or None at the end of the file."""
        if self._stream is not None and not self._stream.eof:
            if self._stream.needs_input:
                self._input = self._file.read(INPUT)
                if not self._input:
                    raise EOFError("the last stream is truncated")
            return self._stream
        while not (rest := self._input.lstrip(b"\0")):
            self._input = self._file.read(INPUT)
            if not self._input:
                return None
        self._stream, self._input = self._begin(), rest
        return self._stream
