"""Where text comes from: paths, compressed or not, file objects and standard input."""

import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import IO, Any

from marginrank.io.compressed import decompressed, undamaged

Path = str | os.PathLike[str]
Source = Path | IO[bytes]
Progress = Callable[[int, int], None]

CHUNK = 1 << 24  # bytes of text in work at a time
BOM = b"\xef\xbb\xbf"


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
