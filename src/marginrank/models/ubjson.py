"""Where a UBJSON value ends, so that a cut file is refused before a library reads beyond it."""

from struct import error as StructError
from struct import unpack_from

INTEGERS = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q"}
SIZES = {b"i": 1, b"U": 1, b"I": 2, b"l": 4, b"L": 8, b"d": 4, b"D": 8, b"C": 1} | dict.fromkeys(
    (b"Z", b"N", b"T", b"F"), 0
)


def is_complete(content: bytes) -> bool:
    """Whether the content is one UBJSON value, from its first byte to its last."""
    try:
        return _Walk(content).value() == len(content)
    except (StructError, ValueError, RecursionError):
        return False


class _Walk:
    """A walk along the content; each method moves on and returns the place it has reached."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def value(self, kind: bytes | None = None) -> int:
        """Pass a value, whose type was told or comes first."""
        kind = kind or self._mark()
        if kind in b"[{":
            return self._container(with_keys=kind == b"{")
        return self._move(self._length() if kind in b"SH" else SIZES.get(kind, -1))

    def _mark(self) -> bytes:
        mark = self._content[self._at : self._at + 1]
        self._move(1)
        return mark

    def _next_is(self, mark: bytes) -> bool:
        if self._content[self._at : self._at + 1] != mark:
            return False
        self._at += 1
        return True

    def _move(self, size: int) -> int:
        if size < 0 or self._at + size > len(self._content):
            raise ValueError
        self._at += size
        return self._at

    def _length(self) -> int:
        kind = self._mark()
        (length,) = unpack_from(INTEGERS.get(kind, "no integer"), self._content, self._at)
        self._move(SIZES[kind])
        return int(length)

    def _container(self, with_keys: bool) -> int:
        kind = self._mark() if self._next_is(b"$") else None
        if not self._next_is(b"#"):
            while not self._next_is(b"}" if with_keys else b"]"):
                self._entry(kind, with_keys)
            return self._at
        count = self._length()
        if kind in SIZES and not with_keys:
            return self._move(count * SIZES[kind])
        for _ in range(count):
            self._entry(kind, with_keys)
        return self._at

    def _entry(self, kind: bytes | None, with_keys: bool) -> None:
        if with_keys:
            self._move(self._length())
        self.value(kind)
