"""Command lines as SVM-light and LIBLINEAR read them: flags of one letter, then files."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Check = Callable[[str], Any]


class Flag(NamedTuple):
    """A flag of a program, and what becomes of it here.

    Attributes
    ----------
    help : str
        What it is, for the help.
    read : callable or None
        Makes a value of the next word, or raises ValueError; None if no word follows.
    default : object
        The value where the flag is not given.
    refused : str or None
        Why the flag cannot be honoured.
    unused : bool
        It says how the program computes, not what: the result does not depend on it.
    """

    help: str
    read: Check | None = str
    default: Any = None
    refused: str | None = None
    unused: bool = False


class Given(NamedTuple):
    """What stands on a command line."""

    values: dict[str, Any]  # of all flags, by their letters
    unused: list[str]  # flags without effect
    files: list[str]


@dataclass(frozen=True)
class Program:
    """A program of others: its command line, and the function that does what it does."""

    usage: str
    flags: dict[str, Flag]
    run: Callable[[Given], None]
    n_files: tuple[int, int]  # at least, at most
    help_flags: tuple[str, ...] = ("-?", "-h", "--help")
    prefixes: dict[str, str] = field(default_factory=dict)  # "-w1" is the flag "-wi"

    def parse(self, words: Iterable[str]) -> Given | None:
        """Read the words after the program's name; None if they ask for help."""
        rest = list(words)
        values = {letter: flag.default for letter, flag in self.flags.items()}
        unused = []
        while rest and rest[0].startswith("-") and rest[0] != "-":
            word = rest.pop(0)
            if word in self.help_flags and word not in self.flags:
                return None
            letter = self._known(word)
            flag = self.flags[letter]
            values[letter] = _value(word, flag, rest)
            if flag.unused:
                unused.append(word)
        self._check_files(rest)
        return Given(values, unused, rest)

    def _known(self, word: str) -> str:
        """Return the flag that a word is; refuse one that is none, or cannot be honoured."""
        letter = next((f for p, f in self.prefixes.items() if word.startswith(p)), word)
        if letter not in self.flags:
            raise ValueError(f"{word} is no flag of {self.usage.split()[0]}; {self._advice(word)}.")
        refused = self.flags[letter].refused
        if refused is not None:
            raise ValueError(f"{word} cannot be honoured: {refused}.")
        return letter

    def _advice(self, word: str) -> str:
        """Tell which flags there are, or that a value is a word of its own."""
        flag = self.flags.get(word[:2])
        if flag is not None and flag.read is not None and flag.refused is None:
            return f"write {word[:2]} {word[2:].removeprefix('=')}, with a space between"
        return f"it has {' '.join(self.flags)}"

    def _check_files(self, files: list[str]) -> None:
        least, most = self.n_files
        if not least <= len(files) <= most:
            raise ValueError(f"{len(files)} files are given; usage: {self.usage}.")
        late = next((word for word in files if word.startswith("-") and word != "-"), None)
        if late is not None:
            raise ValueError(f"{late} comes after the files; flags come first: {self.usage}.")

    def help(self) -> str:
        """Return the usage, and a line a flag."""
        rows = [(letter, _described(flag)) for letter, flag in self.flags.items()]
        width = max(len(letter) for letter, _ in rows)
        lines = "".join(f"  {letter:{width}}  {text}\n" for letter, text in rows)
        return f"usage: marginrank compat {self.usage}\n\n{lines}"


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
    if flag.refused is not None:
        return f"{flag.help}: refused, as {flag.refused}"
    if flag.unused:
        return f"{flag.help}: taken, without effect on the result"
    return flag.help if flag.default in (None, False) else f"{flag.help} (default {flag.default})"


def positive(text: str) -> float:
    """Read a positive number."""
    value = number(text)
    if not 0.0 < value < float("inf"):
        raise ValueError("must be a positive number")
    return value


def number(text: str) -> float:
    """Read a number."""
    try:
        return float(text)
    except ValueError:
        raise ValueError("is not a number") from None


def integer(text: str) -> int:
    """Read an integer."""
    try:
        return int(text)
    except ValueError:
        raise ValueError("is not an integer") from None


def only(values: Iterable[int], why: str) -> Check:
    """Return what reads one of some integers, and says why another is refused."""
    allowed = tuple(values)

    def read(text: str) -> int:
        value = integer(text)
        if value not in allowed:
            raise ValueError(f"cannot be honoured: {why}")
        return value

    return read
