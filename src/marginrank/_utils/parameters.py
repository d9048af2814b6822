"""Parameters: how one is declared, checked, and named in messages.

The parameters of a learner are the fields of a dataclass, each declared once: what values it takes,
its default, and what it is for. Checks, flags of the command line, model files and messages derive
from that. NumPy is not imported, as the help of the command line does not wait for it.
"""

import dataclasses
import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

LONGEST_INTEGER = 256  # bits of an integer that messages show
DECLARATION = "parameter"  # key of a field's metadata


class Mention(NamedTuple):
    """A parameter in a message: ``C``, or ``C=1.0`` with the code of a value; or a learner.

    Python spells it so; the command line spells it as its flag or its command.
    """

    name: str
    code: str | None = None

    def __str__(self) -> str:
        """Spell it as Python does."""
        return self.name if self.code is None else f"{self.name}={self.code}"


class Wording(NamedTuple):
    """What Python says with names and objects of its own, and how surfaces without them say it."""

    python: str
    plain: str = ""

    def __str__(self) -> str:
        """Say it as Python does."""
        return self.python


Part = str | Mention | Wording


def given(name: str, value: Any) -> Mention:
    """Return the mention of a parameter with its value."""
    if isinstance(value, int) and value.bit_length() > LONGEST_INTEGER:
        return Mention(name, f"<integer of {value.bit_length():,} bits>")
    return Mention(name, repr(value))


class Message(str):
    """Text with mentions of parameters; as text, it is in the words of Python.

    Examples
    --------
    >>> from marginrank._utils.parameters import Mention, Message
    >>> message = Message("increase ", Mention("max_iter"), ".")
    >>> message
    'increase max_iter.'
    >>> message.spelled(lambda mention: f"--{mention.name}")
    'increase --max_iter.'
    """

    parts: tuple[Part, ...]

    def __new__(cls, *parts: Part) -> "Message":
        """Put the parts together, which may be messages themselves."""
        message = super().__new__(cls, "".join(map(str, parts)))
        message.parts = tuple(chain.from_iterable(map(_split, parts)))
        return message

    def spelled(self, spell: Callable[[Mention], str]) -> str:
        """Return the text with parameters in the words of another surface."""
        return "".join(_spelled(part, spell) for part in self.parts)


def _spelled(part: Part, spell: Callable[[Mention], str]) -> str:
    if isinstance(part, Mention):
        return spell(part)
    return part.plain if isinstance(part, Wording) else part


def _split(part: Part) -> tuple[Part, ...]:
    return part.parts if isinstance(part, Message) else (part,)


class ParameterError(ValueError):
    """A wrong parameter; the message is made of text and of mentions of parameters.

    Examples
    --------
    >>> from marginrank._utils.parameters import ParameterError, given
    >>> error = ParameterError(given("max_iter", 0), " must be an integer of at least 1.")
    >>> str(error)
    'max_iter=0 must be an integer of at least 1.'
    >>> error.spelled(lambda mention: f"--{mention.name} {mention.code}")
    '--max_iter 0 must be an integer of at least 1.'
    """

    def __init__(self, *parts: Part) -> None:
        super().__init__(*parts)
        self.message = Message(*parts)

    def __str__(self) -> str:
        """Return the message in the words of Python."""
        return str(self.message)

    @property
    def parts(self) -> tuple[Part, ...]:
        """What the message is made of."""
        return self.message.parts

    @property
    def parameter(self) -> str | None:
        """Name of the first parameter that the message mentions."""
        return next((part.name for part in self.parts if isinstance(part, Mention)), None)

    def spelled(self, spell: Callable[[Mention], str]) -> str:
        """Return the message with parameters in the words of another surface."""
        return self.message.spelled(spell)


@contextmanager
def calling(name: str, other: str) -> Iterator[None]:
    """Let errors call a parameter by another name, that which it has where the block is."""
    try:
        yield
    except ParameterError as error:
        parts = [
            part._replace(name=other) if isinstance(part, Mention) and part.name == name else part
            for part in error.parts
        ]
        raise ParameterError(*parts) from None


def check_number(name: str, value: Any, *, above: float = 0.0, allow_equal: bool = False) -> float:
    """Return a finite number above a bound."""
    if not (_is_finite(value) and (value > above or (allow_equal and value == above))):
        relation = "at least" if allow_equal else "more than"
        raise ParameterError(given(name, value), f" must be a finite number, {relation} {above:g}.")
    return float(value)


def check_integer(name: str, value: Any, *, at_least: int, at_most: float = math.inf) -> int:
    """Return an integer inside of bounds."""
    valid = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not (valid and at_least <= value <= at_most):
        bounds = (
            f"of at least {at_least}" if at_most == math.inf else f"from {at_least} to {at_most}"
        )
        raise ParameterError(given(name, value), f" must be an integer {bounds}.")
    return int(value)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return one of the allowed names."""
    allowed = list(choices)
    if not isinstance(value, str) or value not in allowed:
        names = ", ".join(map(repr, allowed))
        raise ParameterError(given(name, value), f" must be one of {names}.")
    return value


def _is_finite(value: Any) -> bool:
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer or a fraction beyond the range of floats
        return False


def check_share(name: str, value: Any, *, allow_ends: bool = True) -> float:
    """Return a number from 0 to 1, which may be these or not."""
    if not (_is_finite(value) and (0 <= value <= 1 if allow_ends else 0 < value < 1)):
        bounds = "from 0 to 1" if allow_ends else "above 0 and below 1"
        raise ParameterError(given(name, value), f" must be a number {bounds}.")
    return float(value)


def check_flag(name: str, value: Any) -> bool:
    """Return True or False."""
    if not isinstance(value, bool):
        import numpy as np

        if not isinstance(value, np.bool_):
            raise ParameterError(given(name, value), " must be True or False.")
    return bool(value)


def check_text(name: str, value: Any) -> str:
    """Return text."""
    if not isinstance(value, str):
        raise ParameterError(given(name, value), " must be text.")
    return value


class Constraint(NamedTuple):
    """What values a parameter takes.

    Attributes
    ----------
    kind : type
        What the command line makes of a word: bool, int, float or str.
    check : callable
        Refuses a wrong value, given the name of the parameter and the value.
    names : callable
        Returns the names to choose from, if it is a choice.
    """

    kind: type
    check: Callable[[str, Any], object]
    names: Callable[[], Iterable[str]] = tuple


def number(*, above: float = 0.0, allow_equal: bool = False) -> Constraint:
    """Take finite numbers above a bound, or also at it."""
    return Constraint(float, partial(check_number, above=above, allow_equal=allow_equal))


def share(*, allow_ends: bool = True) -> Constraint:
    """Take numbers from 0 to 1."""
    return Constraint(float, partial(check_share, allow_ends=allow_ends))


def integer(*, at_least: int, at_most: float = math.inf) -> Constraint:
    """Take integers inside of bounds."""
    return Constraint(int, partial(check_integer, at_least=at_least, at_most=at_most))


def choice(names: Sequence[str] | Callable[[], Iterable[str]]) -> Constraint:
    """Take one of some names, or of those that a function returns when they are needed."""
    find = names if callable(names) else lambda: names
    return Constraint(str, lambda name, value: check_choice(name, value, find()), find)


def accepted_by(function: Callable[[Any], object], kind: type = str) -> Constraint:
    """Take what a function takes without an error; it knows the name of the parameter."""
    return Constraint(kind, lambda name, value: function(value))


def or_none(other: Constraint) -> Constraint:
    """Take None, and what another constraint does."""

    def check(name: str, value: Any) -> None:
        if value is not None:
            other.check(name, value)

    return other._replace(check=check)


FLAG = Constraint(bool, check_flag)
TEXT = Constraint(str, check_text)


class Parameter(NamedTuple):
    """The declaration of a parameter, but for its name and default, which a field adds.

    Attributes
    ----------
    constraint : Constraint
        What values it takes.
    help : str
        What it is for, in a sentence; a choice names what there is to choose from.
    panel : str
        Heading under which the help of a command lists it.
    letter : str or None
        A short flag, such as "-C".
    has_flag : bool
        Whether a command that learns takes it as a flag.
    """

    constraint: Constraint
    help: str
    panel: str
    letter: str | None = None
    has_flag: bool = True

    def field(self, default: Any = dataclasses.MISSING) -> Any:
        """Return a field of a dataclass; without a default it is required."""
        return dataclasses.field(default=default, metadata={DECLARATION: self})


def declared(kind: Any) -> dict[str, Parameter]:
    """Return the declarations of a dataclass or of an instance, by name."""
    return {
        field.name: field.metadata[DECLARATION]
        for field in dataclasses.fields(kind)
        if DECLARATION in field.metadata
    }


def check_parameters(parameters: Any) -> None:
    """Raise ValueError for values that are not as declared, one by one."""
    for name, parameter in declared(parameters).items():
        parameter.constraint.check(name, getattr(parameters, name))
