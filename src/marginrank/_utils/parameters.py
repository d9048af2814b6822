"""Declarations of parameters, their checks, and messages that mention them.

The parameters of a learner are the fields of a dataclass, each declared once: constraint, default
and help. Checks, flags of the command line, model files and messages derive from that. NumPy is not
imported, because the command line's help should not wait for it.
"""

import dataclasses
import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

LONGEST_INTEGER = 256  # messages show integers with at most this many bits
DECLARATION = "parameter"  # key of a field's metadata


class Mention(NamedTuple):
    """A parameter or a learner in a message: ``C``, or ``C=1.0`` with the code of a value.

    The command line shows a parameter as a flag, and a learner as a command.
    """

    name: str
    code: str | None = None

    def __str__(self) -> str:
        return self.name if self.code is None else f"{self.name}={self.code}"


class Wording(NamedTuple):
    """Text with separate wordings for Python and for the command line."""

    python: str
    plain: str = ""

    def __str__(self) -> str:
        return self.python


Part = str | Mention | Wording


def given(name: str, value: Any) -> Mention:
    """Return a Mention of a parameter and its value, for a message."""
    if isinstance(value, int) and value.bit_length() > LONGEST_INTEGER:
        return Mention(name, f"<integer of {value.bit_length():,} bits>")
    return Mention(name, repr(value))


class Message(str):
    """Text with mentions of parameters; as a str, it has Python's wording.

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
        message = super().__new__(cls, "".join(map(str, parts)))
        split = (part.parts if isinstance(part, Message) else (part,) for part in parts)
        message.parts = tuple(chain.from_iterable(split))
        return message

    def spelled(self, spell: Callable[[Mention], str]) -> str:
        """Return the text for the command line, with `spell` applied to mentions."""
        plain = (part.plain if isinstance(part, Wording) else part for part in self.parts)
        return "".join(spell(part) if isinstance(part, Mention) else part for part in plain)


class ParameterError(ValueError):
    """An invalid parameter; the message consists of text and mentions of parameters.

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
        return str(self.message)

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.message.parts

    @property
    def parameter(self) -> str | None:
        """Name of the first parameter that the message mentions."""
        return next((part.name for part in self.parts if isinstance(part, Mention)), None)

    def spelled(self, spell: Callable[[Mention], str]) -> str:
        return self.message.spelled(spell)


@contextmanager
def calling(name: str, other: str) -> Iterator[None]:
    """Rename the parameter `name` to `other` in each ParameterError that the block raises."""
    try:
        yield
    except ParameterError as error:
        parts = [
            part._replace(name=other) if isinstance(part, Mention) and part.name == name else part
            for part in error.parts
        ]
        raise ParameterError(*parts) from None


def check_number(name: str, value: Any, *, above: float = 0.0, allow_equal: bool = False) -> float:
    """Return `value` as a float; raise unless it is finite and above a bound."""
    if not (_is_finite(value) and (value > above or (allow_equal and value == above))):
        relation = "at least" if allow_equal else "more than"
        raise ParameterError(given(name, value), f" must be a finite number, {relation} {above:g}.")
    return float(value)


def check_integer(name: str, value: Any, *, at_least: int, at_most: float = math.inf) -> int:
    """Return `value` as an int; raise unless it is an integer within bounds."""
    valid = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not (valid and at_least <= value <= at_most):
        bounds = (
            f"of at least {at_least}" if at_most == math.inf else f"from {at_least} to {at_most}"
        )
        raise ParameterError(given(name, value), f" must be an integer {bounds}.")
    return int(value)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return `value`; raise unless it is one of the allowed names."""
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
    """Return `value` as a float; raise unless it is between 0 and 1."""
    if not (_is_finite(value) and (0 <= value <= 1 if allow_ends else 0 < value < 1)):
        bounds = "from 0 to 1" if allow_ends else "above 0 and below 1"
        raise ParameterError(given(name, value), f" must be a number {bounds}.")
    return float(value)


def check_flag(name: str, value: Any) -> None:
    """Raise ValueError unless `value` is True or False."""
    if not isinstance(value, bool):
        import numpy as np

        if not isinstance(value, np.bool_):
            raise ParameterError(given(name, value), " must be True or False.")


def check_text(name: str, value: Any) -> None:
    """Raise ValueError unless `value` is text."""
    if not isinstance(value, str):
        raise ParameterError(given(name, value), " must be text.")


class Constraint(NamedTuple):
    """The values that a parameter accepts."""

    kind: type  # type of a value on the command line: bool, int, float or str
    check: Callable[[str, Any], object]  # raises ParameterError, given name and value
    names: Callable[[], Iterable[str]] = tuple  # the choices, if it is a choice


def number(*, above: float = 0.0, allow_equal: bool = False) -> Constraint:
    """Return a constraint: finite numbers above a bound, or equal to it with `allow_equal`."""
    return Constraint(float, partial(check_number, above=above, allow_equal=allow_equal))


def share(*, allow_ends: bool = True) -> Constraint:
    """Return a constraint: numbers between 0 and 1, or equal to them with `allow_ends`."""
    return Constraint(float, partial(check_share, allow_ends=allow_ends))


def integer(*, at_least: int, at_most: float = math.inf) -> Constraint:
    """Return a constraint: integers within bounds."""
    return Constraint(int, partial(check_integer, at_least=at_least, at_most=at_most))


def choice(names: Sequence[str] | Callable[[], Iterable[str]]) -> Constraint:
    """Return a constraint: one of the names, which may be given as a function."""
    find = names if callable(names) else lambda: names
    return Constraint(str, lambda name, value: check_choice(name, value, find()), find)


def accepted_by(function: Callable[[Any], object], kind: type = str) -> Constraint:
    """Return a constraint: the values for which a function raises no error."""
    return Constraint(kind, lambda name, value: function(value))


def or_none(other: Constraint) -> Constraint:
    """Return a constraint: None, or the values of another constraint."""

    def check(name: str, value: Any) -> None:
        if value is not None:
            other.check(name, value)

    return other._replace(check=check)


FLAG = Constraint(bool, check_flag)
TEXT = Constraint(str, check_text)


class Parameter(NamedTuple):
    """The declaration of a parameter, without its name and default, which a field adds."""

    constraint: Constraint
    help: str  # one sentence
    panel: str  # heading under which the help of a command lists it
    letter: str | None = None  # short flag, such as "-C"
    has_flag: bool = True  # whether commands that train have a flag for it
    unset: str | None = None  # for help: what happens without a value, if the default is None

    def field(self, default: Any = dataclasses.MISSING) -> Any:
        """Return a field of a dataclass; without a default it is required."""
        return dataclasses.field(default=default, metadata={DECLARATION: self})


def declared(kind: Any) -> dict[str, Parameter]:
    """Return the declared parameters of a dataclass or of an instance, by name."""
    return {
        field.name: field.metadata[DECLARATION]
        for field in dataclasses.fields(kind)
        if DECLARATION in field.metadata
    }


def check_parameters(parameters: Any) -> None:
    """Raise ValueError if a parameter's value violates its declared constraint."""
    for name, parameter in declared(parameters).items():
        parameter.constraint.check(name, getattr(parameters, name))
