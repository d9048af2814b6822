"""Parsing of command lines like those for SVM-light and LIBLINEAR: one-letter flags, then files."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

Check = Callable[[str], Any]


class Flag(NamedTuple):
    """A one-letter flag of SVM^rank or LIBLINEAR: how it is parsed, and its help."""

    help: str
    # Parses the value, or raises ValueError; None for a flag without value.
    read: Check | None = str
    default: Any = None
    unsupported: str | None = None  # reason why the flag is not supported; None if it is
    unused: bool = False  # whether the flag has no effect on the result


class ParsedArguments(NamedTuple):
    """The flags and files of a parsed command line; see :meth:`Program.parse`."""

    values: dict[str, Any]  # values of all flags, by their letters
    unused: list[str]  # given flags that have no effect
    files: list[str]


@dataclass(frozen=True)
class Program:
    """A replaced program of SVM^rank or LIBLINEAR: its flags, and the function that replaces it."""

    usage: str
    flags: dict[str, Flag]
    run: Callable[[ParsedArguments], None]
    n_files: tuple[int, int]  # smallest and largest number of files
    help_flags: tuple[str, ...] = ("-?", "-h", "--help")
    # Beginnings of words and their flags in `flags`: LIBLINEAR's flag -wi is written -w1, -w2, ….
    prefixes: dict[str, str] = field(default_factory=dict)

    def parse(self, words: Iterable[str]) -> ParsedArguments | None:
        """Parse the command-line arguments of the program; return None if help is requested."""
        rest = list(words)
        values = {letter: flag.default for letter, flag in self.flags.items()}
        unused = []
        while rest and rest[0].startswith("-") and rest[0] != "-":
            word = rest.pop(0)
            if word in self.help_flags and word not in self.flags:
                return None
            letter = self._check_flag(word)
            flag = self.flags[letter]
            values[letter] = _value(word, flag, rest)
            if flag.unused:
                unused.append(word)
        self._check_files(rest)
        return ParsedArguments(values, unused, rest)

    def _check_flag(self, word: str) -> str:
        """Return the key in `flags` for an argument; raise ValueError if it is not supported."""
        letter = next((f for p, f in self.prefixes.items() if word.startswith(p)), word)
        if letter in self.flags:
            reason = self.flags[letter].unsupported
            if reason is not None:
                raise ValueError(f"{word} is not supported: {reason}.")
            return letter
        start = self.flags.get(word[:2])
        advice = f"supported: {' '.join(self.flags)}"
        if start is not None and start.read is not None and start.unsupported is None:
            advice = f"write {word[:2]} {word[2:].removeprefix('=')}, with a space"
        raise ValueError(f"Unknown option {word} for {self.usage.split()[0]}; {advice}.")

    def _check_files(self, files: list[str]) -> None:
        least, most = self.n_files
        if not least <= len(files) <= most:
            raise ValueError(f"got {len(files)} files; usage: marginrank compat {self.usage}.")
        late = next((word for word in files if word.startswith("-") and word != "-"), None)
        if late is not None:
            raise ValueError(f"{late} comes after the files; flags come first: {self.usage}.")

    def help(self) -> str:
        """Return the help text: the usage, and one line per flag."""
        rows = [(letter, _described(flag)) for letter, flag in self.flags.items()]
        width = max(len(letter) for letter, _ in rows)
        lines = "".join(f"  {letter:{width}}  {text}\n" for letter, text in rows)
        return f"usage: marginrank compat {self.usage}\n\nFlags:\n{lines}"


def _value(word: str, flag: Flag, rest: list[str]) -> Any:
    if flag.read is None:
        return True
    if not rest:
        raise ValueError(f"{word} needs a value.")
    text = rest.pop(0)
    try:
        return flag.read(text)
    except ValueError as error:
        raise ValueError(f"{word} {text} {error}.") from error


def _described(flag: Flag) -> str:
    if flag.unsupported is not None:
        return f"{flag.help} (not supported: {flag.unsupported})"
    if flag.unused:
        return f"{flag.help} (no effect)"
    return flag.help if flag.default in (None, False) else f"{flag.help} (default {flag.default})"


def positive(text: str) -> float:
    """Parse a positive number; raise ValueError for any other text."""
    value: float = number(text)
    if not 0.0 < value < float("inf"):
        raise ValueError("must be a positive number")
    return value


def number(text: str, kind: type = float, name: str = "a number") -> Any:
    """Parse a number of type `kind`; raise ValueError for any other text."""
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"is not {name}") from None


integer = partial(number, kind=int, name="an integer")


def only(values: Iterable[int], reason: str) -> Check:
    """Return a function that parses an integer and accepts only these values.

    `reason` explains in the error message why other values are not supported.
    """
    allowed = tuple(values)

    def read(text: str) -> int:
        value: int = integer(text)
        if value not in allowed:
            raise ValueError(f"is not supported: {reason}")
        return value

    return read
