"""Flags: made from declarations, given to a command as a few objects, and named in messages."""

import inspect
from collections.abc import Callable, Collection
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any

import typer

from marginrank._utils.parameters import Mention, Parameter, declared

Command = Callable[..., None]

COMMANDS = {"RankSVM": "marginrank train"}  # of the learners that messages advise to use


def flag(name: str) -> str:
    """Return how a parameter is spelled on the command line."""
    return f"--{name.replace('_', '-')}"


def as_flag(mention: Mention) -> str:
    """Spell what a message says of a parameter, "C=-1" as "--C -1", or of a learner."""
    if mention.name in COMMANDS:
        return COMMANDS[mention.name]
    spelled = flag(mention.name)
    if mention.code in (None, "", "True"):
        return spelled
    value = '""' if mention.code == "None" else mention.code
    return f"{spelled} {value}"


def with_flags(command: Command, *, without: Collection[str] = ()) -> Command:
    """Return a function with the flags that the dataclasses among a command's parameters declare.

    It calls the command with objects of these dataclasses. Where one has a field ``given``, that is
    the set of all flags on the command line. Parameters `without` flags keep their defaults.
    """
    parameters = inspect.signature(command).parameters.values()
    kinds: dict[str, Any] = {p.name: p.annotation for p in parameters if is_dataclass(p.annotation)}
    flags = {n: [p for p in _flags(kind) if p.name not in without] for n, kind in kinds.items()}

    @wraps(command)
    def with_objects(context: typer.Context, **values: Any) -> None:
        given = frozenset(name for name in values if _is_given(context, name))
        for name, kind in kinds.items():
            arguments = {p.name: values.pop(p.name) for p in flags[name]}
            if any(field.name == "given" for field in fields(kind)):
                arguments["given"] = given
            values[name] = kind(**arguments)
        command(**values)

    shown = [_keyword("context", typer.Context)]
    for parameter in parameters:
        own = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        shown.extend(flags.get(parameter.name, [own]))
    with_objects.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    with_objects.__annotations__ = {p.name: p.annotation for p in shown}
    return with_objects


def _flags(kind: Any) -> list[inspect.Parameter]:
    """Return the flags of a dataclass as typer understands them."""
    defaults = {field.name: field.default for field in fields(kind)}
    return [
        _flag(name, parameter, defaults[name])
        for name, parameter in declared(kind).items()
        if parameter.has_flag
    ]


def _flag(name: str, parameter: Parameter, default: Any) -> inspect.Parameter:
    spellings = [flag(name)] if parameter.letter is None else [flag(name), parameter.letter]
    kind: Any = parameter.constraint.kind
    if kind is bool and default is True:
        spellings = [f"{flag(name)}/{flag(f'no_{name}')}"]
    if default is None:
        kind = kind | None
    required = default is MISSING
    option = typer.Option(
        *spellings, help=parameter.help, rich_help_panel=parameter.panel, show_default=not required
    )
    annotation: Any = Annotated[kind, option]
    return _keyword(name, annotation, inspect.Parameter.empty if required else default)


def _keyword(
    name: str, annotation: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
