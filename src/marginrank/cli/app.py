"""The typer application: one command a module."""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from marginrank import __version__
from marginrank.cli.commands import (
    compare,
    compat,
    convert,
    demo,
    evaluate,
    export,
    features,
    inspect,
    learning_curve,
    predict,
    train,
    train_additive,
    train_online,
    train_sparse,
    tune,
)
from marginrank.cli.support.command import Command, TrainingCommand
from marginrank.cli.support.errors import exit_codes
from marginrank.cli.support.flags import with_flags

# Help in rich's boxes takes twice as long as all the rest.
PLAIN: Any = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}


class Entry(NamedTuple):
    """A function that becomes a command, and what its help shows of it."""

    function: Callable[..., None]
    example: str
    kind: type[Command] = Command
    without: tuple[str, ...] = ()  # parameters that are no flags of it


COMMANDS = {
    "train": Entry(train.train, train.EXAMPLE, TrainingCommand),
    "train-sparse": Entry(train_sparse.train_sparse, train_sparse.EXAMPLE, TrainingCommand),
    "train-additive": Entry(train_additive.train_additive, train_additive.EXAMPLE, TrainingCommand),
    # Sizes of queries do not say where they end in a chunk.
    "train-online": Entry(
        train_online.train_online, train_online.EXAMPLE, TrainingCommand, without=("group",)
    ),
    "tune": Entry(tune.tune, tune.EXAMPLE, TrainingCommand),
    "predict": Entry(predict.predict, predict.EXAMPLE),
    "evaluate": Entry(evaluate.evaluate, evaluate.EXAMPLE),
    "compare": Entry(compare.compare, compare.EXAMPLE),
    "convert": Entry(convert.convert, convert.EXAMPLE),
    "export": Entry(export.export, export.EXAMPLE),
    "inspect": Entry(inspect.inspect, inspect.EXAMPLE),
    "features": Entry(features.features, features.EXAMPLE),
    "learning-curve": Entry(learning_curve.learning_curve, learning_curve.EXAMPLE),
    "compat": Entry(compat.compat, compat.EXAMPLE, compat.CompatCommand),
    "demo": Entry(demo.demo, demo.EXAMPLE),
}


@cache
def command(name: str) -> Command:
    """Return a command with its flags."""
    entry = COMMANDS[name]
    lines = "\n".join(f"  marginrank {line}" for line in entry.example.splitlines())
    function = exit_codes()(with_flags(entry.function, without=entry.without))
    alone = typer.Typer(**PLAIN)
    alone.command(name, cls=entry.kind, epilog=f"\b\nExample:\n{lines}")(function)
    made: Any = typer.main.get_command(alone)
    if isinstance(made, TrainingCommand):
        made.others = lambda: [command(n) for n, e in COMMANDS.items() if e.kind is TrainingCommand]
    return made  # type: ignore[no-any-return]


class Commands(TyperGroup):
    """The commands, of which the one that is called gets its flags: those of all take a while."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Return name, command and arguments."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else command(name), rest


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    epilog="\b\nExample, from a file to a judged model:\n"
    "  marginrank train train.txt --model model.json\n"
    "  marginrank evaluate model.json test.txt",
    **PLAIN,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"marginrank {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Learn to rank: train, judge and use linear RankSVM models."""


for _name, _entry in COMMANDS.items():
    app.command(_name, help=_entry.function.__doc__)(lambda: None)
