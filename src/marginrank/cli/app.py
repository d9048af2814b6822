"""The typer application: one command a module."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from marginrank import __version__
from marginrank.cli import (
    compare,
    convert,
    demo,
    evaluate,
    features,
    inspect,
    predict,
    train,
    train_online,
    train_sparse,
)
from marginrank.cli._command import Command, TrainingCommand
from marginrank.cli._errors import exit_codes

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Help in rich's boxes takes twice as long as all the rest.
    rich_markup_mode=None,
    epilog="\b\nExample, from a file to a judged model:\n"
    "  marginrank train train.txt --model model.json\n"
    "  marginrank evaluate model.json test.txt",
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


def _add(command: Callable[..., Any], example: str, cls: type[Command] = Command) -> None:
    lines = "\n".join(f"  marginrank {line}" for line in example.splitlines())
    app.command(cls=cls, epilog=f"\b\nExample:\n{lines}")(exit_codes()(command))


_add(train.train, train.EXAMPLE, TrainingCommand)
_add(train_sparse.train_sparse, train_sparse.EXAMPLE, TrainingCommand)
_add(train_online.train_online, train_online.EXAMPLE, TrainingCommand)
_add(predict.predict, predict.EXAMPLE)
_add(evaluate.evaluate, evaluate.EXAMPLE)
_add(compare.compare, compare.EXAMPLE)
_add(convert.convert, convert.EXAMPLE)
_add(inspect.inspect, inspect.EXAMPLE)
_add(features.features, features.EXAMPLE)
_add(demo.demo, demo.EXAMPLE)
