"""Parameters of estimators and commands: declarations, checks and error messages.

The parameters of a learner are the fields of a dataclass. Each is declared once, with its
constraint, default and help; checks, command-line flags, model files and messages are derived from
the declaration. NumPy is not imported, so ``marginrank --help`` starts fast.
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
    """The name of a parameter or learner inside a message, such as ``C`` or ``C=1.0``.

    The command line shows a parameter as a flag, and a learner as a command. `code` is the value,
    as Python code.
    """

    name: str
    code: str | None = None

    def __str__(self) -> str:
        return self.name if self.code is None else f"{self.name}={self.code}"


class Wording(NamedTuple):
    """A part of a message with one text for Python and another (`plain`) for the command line."""

    python: str
    plain: str = ""

    def __str__(self) -> str:
        return self.python


Part = str | Mention | Wording


def given(name: str, value: Any) -> Mention:
    """Return a parameter with its value, such as ``C=1.0``, as a part of an error message."""
    if isinstance(value, int) and value.bit_length() > LONGEST_INTEGER:
        return Mention(name, f"<integer of {value.bit_length():,} bits>")
    return Mention(name, repr(value))


class Message(str):
    """The text of an error or warning, which can be reworded for the command line.

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
        """Return the message for the command line; `spell` converts a parameter to a flag."""
        plain = (part.plain if isinstance(part, Wording) else part for part in self.parts)
        return "".join(spell(part) if isinstance(part, Mention) else part for part in plain)


class ParameterError(ValueError):
    """A ValueError for an invalid parameter; its message can be reworded for the command line.

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
        """Name of the first parameter that the message mentions, or None."""
        return next((part.name for part in self.parts if isinstance(part, Mention)), None)

    def spelled(self, spell: Callable[[Mention], str]) -> str:
        return self.message.spelled(spell)


@contextmanager
def calling(name: str, other: str) -> Iterator[None]:
    """Rename the parameter `name` to `other` in ParameterErrors that the with block raises."""
    try:
        yield
    except ParameterError as error:
        parts = [
            part._replace(name=other) if isinstance(part, Mention) and part.name == name else part
            for part in error.parts
        ]
        raise ParameterError(*parts) from None


def check_number(name: str, value: Any, *, above: float = 0.0, allow_equal: bool = False) -> float:
    """Return `value` as a float; raise ParameterError unless it is finite and greater than `above`.

    With `allow_equal`, a value equal to `above` is valid too.
    """
    if not (_is_finite(value) and (value > above or (allow_equal and value == above))):
        relation = "at least" if allow_equal else "more than"
        raise ParameterError(given(name, value), f" must be a finite number, {relation} {above:g}.")
    return float(value)


def check_integer(name: str, value: Any, *, at_least: int, at_most: float = math.inf) -> int:
    """Return `value` as an int; raise ParameterError unless it is an integer within bounds."""
    valid = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not (valid and at_least <= value <= at_most):
        bounds = (
            f"of at least {at_least}" if at_most == math.inf else f"from {at_least} to {at_most}"
        )
        raise ParameterError(given(name, value), f" must be an integer {bounds}.")
    return int(value)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return `value`; raise ParameterError unless it is one of `choices`."""
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
    """Return `value` as a float; raise ParameterError unless it is between 0 and 1.

    With `allow_ends`, 0 and 1 are valid too.
    """
    if not (_is_finite(value) and (0 <= value <= 1 if allow_ends else 0 < value < 1)):
        bounds = "from 0 to 1" if allow_ends else "above 0 and below 1"
        raise ParameterError(given(name, value), f" must be a number {bounds}.")
    return float(value)


def check_flag(name: str, value: Any) -> None:
    """Raise ParameterError unless `value` is True or False."""
    if not isinstance(value, bool):
        import numpy as np

        if not isinstance(value, np.bool_):
            raise ParameterError(given(name, value), " must be True or False.")


def check_text(name: str, value: Any) -> None:
    """Raise ParameterError unless `value` is a str."""
    if not isinstance(value, str):
        raise ParameterError(given(name, value), " must be text.")


class Constraint(NamedTuple):
    """The values that a parameter accepts: type on the command line, check, and choices if any."""

    kind: type  # type of a value on the command line: bool, int, float or str
    check: Callable[[str, Any], object]  # raises ParameterError, given name and value
    names: Callable[[], Iterable[str]] = tuple  # the choices, if it is a choice


def number(*, above: float = 0.0, allow_equal: bool = False) -> Constraint:
    """Return the constraint "a finite number greater than `above`", for a parameter declaration.

    With `allow_equal`, a value equal to `above` is valid too.
    """
    return Constraint(float, partial(check_number, above=above, allow_equal=allow_equal))


def share(*, allow_ends: bool = True) -> Constraint:
    """Return the constraint "a number between 0 and 1", for a parameter declaration.

    With `allow_ends`, 0 and 1 are valid too.
    """
    return Constraint(float, partial(check_share, allow_ends=allow_ends))


def integer(*, at_least: int, at_most: float = math.inf) -> Constraint:
    """Return the constraint "an integer within these bounds", for a parameter declaration."""
    return Constraint(int, partial(check_integer, at_least=at_least, at_most=at_most))


def choice(names: Sequence[str] | Callable[[], Iterable[str]]) -> Constraint:
    """Return the constraint "one of `names`", for a parameter declaration.

    `names` is a list, or a function that returns a list.
    """
    find = names if callable(names) else lambda: names
    return Constraint(str, lambda name, value: check_choice(name, value, find()), find)


def accepted_by(function: Callable[[Any], object], kind: type = str) -> Constraint:
    """Return the constraint "`function(value)` raises no error", for a parameter declaration."""
    return Constraint(kind, lambda name, value: function(value))


def or_none(other: Constraint) -> Constraint:
    """Return the constraint "None, or a valid value of `other`", for a parameter declaration."""

    def check(name: str, value: Any) -> None:
        if value is not None:
            other.check(name, value)

    return other._replace(check=check)


FLAG = Constraint(bool, check_flag)
TEXT = Constraint(str, check_text)


class Parameter(NamedTuple):
    """The declaration of a parameter: constraint, help text and command-line flag."""

    constraint: Constraint
    help: str  # one sentence
    panel: str  # heading under which the help of a command lists it
    letter: str | None = None  # short flag, such as "-C"
    has_flag: bool = True  # whether commands that train have a flag for it
    unset: str | None = None  # for help: what happens without a value, if the default is None
    metavar: str | None = None  # for help: what a value is, such as FILE; None follows the type

    def field(self, default: Any = dataclasses.MISSING) -> Any:
        """Return a dataclass field with this declaration; without a default, it is required."""
        return dataclasses.field(default=default, metadata={DECLARATION: self})


def declared(kind: Any) -> dict[str, Parameter]:
    """Return the parameter declarations of a dataclass (or of an instance), by parameter name."""
    return {
        field.name: field.metadata[DECLARATION]
        for field in dataclasses.fields(kind)
        if DECLARATION in field.metadata
    }


def check_parameters(parameters: Any) -> None:
    """Raise ParameterError if a field of the dataclass `parameters` has an invalid value."""
    for name, parameter in declared(parameters).items():
        parameter.constraint.check(name, getattr(parameters, name))
