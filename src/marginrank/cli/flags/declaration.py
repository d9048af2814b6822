"""Declaration of flags as fields of dataclasses, which are parsed by typer."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from itertools import chain
from typing import Annotated, Any, ClassVar, dataclass_transform

import typer

from marginrank._utils.parameters import DECLARATION, Mention, Parameter, check_parameters, declared

# The command for an estimator, for messages that recommend an estimator.
COMMANDS = {"RankSVM": "marginrank train"}
METAVARS: dict[Any, str] = {int: "N", float: "NUMBER"}  # names of values in the help, by type


def flag(name: str) -> str:
    """Return the flag for a parameter: "--max-iter" for "max_iter"."""
    return f"--{name.replace('_', '-')}"


def as_flag(mention: Mention) -> str:
    """Return a parameter that a message mentions as text for the command line.

    C=-1 becomes "--C -1", and an estimator becomes its command, such as "marginrank train".
    """
    if mention.name in COMMANDS:
        return COMMANDS[mention.name]
    spelled = flag(mention.name)
    if mention.code in (None, "", "True"):
        return spelled
    value = '""' if mention.code == "None" else mention.code
    return f"{spelled} {value}"


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Flags:
    """Base class of groups of flags: a subclass is a dataclass whose fields are flags.

    Values are validated when an object is created.
    """

    def __init_subclass__(cls) -> None:
        """Turn the subclass into a frozen dataclass, without unused methods to save time."""
        dataclass(frozen=True, kw_only=True, eq=False, repr=False)(cls)

    def __post_init__(self) -> None:
        """Raise ValueError if the value of a flag is invalid."""
        check_parameters(self)


class CommandFlags:
    """Base class of declarations of a command's flags; the docstring is the command's help.

    An annotated attribute is a flag, an argument in typer's notation, or a group of flags (a
    subclass of `Flags`). Subclasses are not dataclasses, because all of them are imported for every
    command and creating a dataclass takes time.
    """

    example: ClassVar[str]
    first: ClassVar[tuple[str, ...]] = ()  # names of the flags at the top of the help
    without: ClassVar[tuple[str, ...]] = ()  # names of shared flags that the command lacks
    # Shared flags whose default depends on the command, with the text that help shows for it.
    defaults: ClassVar[tuple[tuple[str, str], ...]] = ()

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            if isinstance(field := getattr(type(self), name, None), Field):
                field.metadata[DECLARATION].constraint.check(name, value)
        vars(self).update(values)


def typer_function(
    kind: type[CommandFlags], run: Callable[[Any], None]
) -> Callable[[typer.Context], None]:
    """Return a function that typer can turn into a command: it calls `run` with parsed flags.

    `run` gets one object of class `kind`. If a group of flags in it has a field ``given``, this
    field is set to the names of all flags that the user has written.
    """
    groups: dict[str, Any] = {n: a for n, a in kind.__annotations__.items() if is_dataclass(a)}
    parsed = {
        name: _group_flags(annotation, kind.without, dict(kind.defaults))
        if name in groups
        else [_own_flag(name, annotation, getattr(kind, name, inspect.Parameter.empty))]
        for name, annotation in kind.__annotations__.items()
    }

    def function(context: typer.Context, **values: Any) -> None:
        given = frozenset(name for name in values if _is_given(context, name))
        for name, group in groups.items():
            arguments = {p.name: values.pop(p.name) for p in parsed[name]}
            if any(field.name == "given" for field in fields(group)):
                arguments["given"] = given
            values[name] = group(**arguments)
        run(kind(**values))

    shown = [_keyword("context", typer.Context), *chain.from_iterable(parsed.values())]
    function.__doc__ = kind.__doc__
    function.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    function.__annotations__ = {p.name: p.annotation for p in shown}
    return function


def _own_flag(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    if isinstance(default, Field):
        return _option(name, default.metadata[DECLARATION], default.default)
    return _keyword(name, annotation, default)


def _group_flags(
    group: Any, without: tuple[str, ...], shown: Mapping[str, str]
) -> list[inspect.Parameter]:
    defaults = {field.name: field.default for field in fields(group)}
    return [
        _option(name, parameter, defaults[name], shown.get(name))
        for name, parameter in declared(group).items()
        if parameter.has_flag and name not in without
    ]


def _option(
    name: str, parameter: Parameter, default: Any, shown: str | None = None
) -> inspect.Parameter:
    spellings = [flag(name)] if parameter.letter is None else [flag(name), parameter.letter]
    kind: Any = parameter.constraint.kind
    if kind is bool and default is True:
        spellings = [f"{flag(name)}/{flag(f'no_{name}')}"]
    metavar = parameter.metavar or METAVARS.get(kind, "NAME")
    if default is None:
        kind = kind | None
    required = default is MISSING
    option = typer.Option(
        *spellings,
        help=parameter.help + ("" if required else _shown_default(parameter, default, shown)),
        rich_help_panel=parameter.panel,
        show_default=False,
        metavar=None if kind is bool else metavar,
    )
    annotation: Any = Annotated[kind, option]
    return _keyword(name, annotation, inspect.Parameter.empty if required else default)


def _shown_default(parameter: Parameter, default: Any, shown: str | None) -> str:
    """Return the text " [default: …]" for the help of a flag; `shown` overrides the default."""
    if shown is None and default is None:
        shown = parameter.unset
    if shown is None and isinstance(default, bool):
        shown = "on" if default else None  # a flag without a value is off if it is not given
    elif shown is None and default is not None:
        shown = f"{default:g}" if isinstance(default, float) else str(default)
    return "" if shown is None else f" [default: {shown}]"


def _keyword(
    name: str, annotation: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
