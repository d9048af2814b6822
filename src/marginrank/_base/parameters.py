"""Parameters: how one is declared, checked, and named in messages.

The parameters of a learner are the fields of a dataclass, each declared once: what values it takes,
its default, and what it is for. Checks, flags of the command line, model files and messages derive
from that. NumPy is not imported, as the help of the command line does not wait for it.
"""

import dataclasses
import math
import numbers
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

DECLARATION = "parameter"  # key of a field's metadata


@dataclass(frozen=True)
class Mention:
    """A parameter in a message: ``C``, or ``C=1.0`` with the code of a value.

    Python spells it so; the command line spells it as its flag.
    """

    name: str
    code: str | None = None

    def __str__(self) -> str:
        """Spell it as Python does."""
        return self.name if self.code is None else f"{self.name}={self.code}"


def given(name: str, value: Any) -> Mention:
    """Return the mention of a parameter with its value."""
    return Mention(name, repr(value))


class ParameterError(ValueError):
    """A wrong parameter; the message is made of text and of mentions of parameters.

    Examples
    --------
    >>> from marginrank._base.parameters import ParameterError, given
    >>> error = ParameterError(given("max_iter", 0), " must be an integer of at least 1.")
    >>> str(error)
    'max_iter=0 must be an integer of at least 1.'
    >>> error.spelled(lambda mention: f"--{mention.name} {mention.code}")
    '--max_iter 0 must be an integer of at least 1.'
    """

    def __init__(self, *parts: str | Mention) -> None:
        super().__init__(*parts)
        self.parts = parts

    def __str__(self) -> str:
        """Return the message in the words of Python."""
        return self.spelled(str)

    @property
    def parameter(self) -> str | None:
        """Name of the first parameter that the message mentions."""
        return next((part.name for part in self.parts if isinstance(part, Mention)), None)

    def spelled(self, spell: Callable[[Mention], str]) -> str:
        """Return the message with parameters in the words of another surface."""
        return "".join(part if isinstance(part, str) else spell(part) for part in self.parts)


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
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


class Constraint(Protocol):
    """What values a parameter takes."""

    @property
    def kind(self) -> type:
        """What the command line makes of a word: bool, int, float or str."""

    def check(self, name: str, value: Any) -> object:
        """Refuse a wrong value."""


@dataclass(frozen=True)
class Number:
    """A finite number above a bound, or at it if that is allowed."""

    above: float = 0.0
    allow_equal: bool = False
    kind: ClassVar[type] = float

    def check(self, name: str, value: Any) -> None:
        """Refuse a wrong value."""
        check_number(name, value, above=self.above, allow_equal=self.allow_equal)


@dataclass(frozen=True)
class Share:
    """A number from 0 to 1, which may be these or not."""

    allow_ends: bool = True
    kind: ClassVar[type] = float

    def check(self, name: str, value: Any) -> None:
        """Refuse a wrong value."""
        inside = _is_finite(value) and (0 <= value <= 1 if self.allow_ends else 0 < value < 1)
        if not inside:
            bounds = "from 0 to 1" if self.allow_ends else "above 0 and below 1"
            raise ParameterError(given(name, value), f" must be a number {bounds}.")


@dataclass(frozen=True)
class Integer:
    """An integer inside of bounds."""

    at_least: int
    at_most: float = math.inf
    kind: ClassVar[type] = int

    def check(self, name: str, value: Any) -> None:
        """Refuse a wrong value."""
        check_integer(name, value, at_least=self.at_least, at_most=self.at_most)


@dataclass(frozen=True)
class Flag:
    """True or False."""

    kind: ClassVar[type] = bool

    def check(self, name: str, value: Any) -> None:
        """Refuse a wrong value."""
        import numpy as np

        if not isinstance(value, (bool, np.bool_)):
            raise ParameterError(given(name, value), " must be True or False.")


@dataclass(frozen=True)
class Text:
    """Any text, such as the name of a file."""

    kind: ClassVar[type] = str

    def check(self, name: str, value: Any) -> None:
        """Refuse what is no text."""
        if not isinstance(value, str):
            raise ParameterError(given(name, value), " must be text.")


@dataclass(frozen=True)
class Choice:
    """One of some names, or of those that a function returns when they are needed."""

    names: tuple[str, ...] | Callable[[], Iterable[str]]
    kind: ClassVar[type] = str

    def check(self, name: str, value: Any) -> None:
        """Refuse a wrong value."""
        check_choice(name, value, self.names() if callable(self.names) else self.names)


@dataclass(frozen=True)
class AcceptedBy:
    """What a function takes without an error."""

    function: Callable[[Any], object]
    kind: type = str

    def check(self, name: str, value: Any) -> None:
        """Refuse a wrong value; the function knows the name."""
        self.function(value)


@dataclass(frozen=True)
class OrNone:
    """None, or what another constraint allows."""

    other: Constraint

    @property
    def kind(self) -> type:
        """As of the other constraint."""
        return self.other.kind

    def check(self, name: str, value: Any) -> None:
        """Refuse a wrong value."""
        if value is not None:
            self.other.check(name, value)


@dataclass(frozen=True)
class Parameter:
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
    """Refuse values that are not as declared, one by one."""
    for name, parameter in declared(parameters).items():
        parameter.constraint.check(name, getattr(parameters, name))
