"""The typer application: it lists the commands, lays out their help, and runs them."""

from functools import cache
from importlib import import_module
from time import perf_counter
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from marginrank import __version__
from marginrank.cli.flags import commands, inspection, training, writing
from marginrank.cli.flags.declaration import CommandFlags, typer_function
from marginrank.cli.flags.shared import LETOR, OUTPUT, RESOURCES, TABLES
from marginrank.cli.support.errors import BAD_INPUT, complain, exit_codes
from marginrank.cli.support.progress import Phases

GROUPS: dict[str, dict[str, type[CommandFlags]]] = {
    "Train": {
        "tune": training.TuneFlags,
        "train": training.TrainFlags,
        "train-sparse": training.TrainSparseFlags,
        "train-additive": training.TrainAdditiveFlags,
        "train-online": training.TrainOnlineFlags,
        "fuse": commands.FuseFlags,
    },
    "Use and evaluate models": {
        "evaluate": commands.EvaluateFlags,
        "compare": commands.CompareFlags,
        "report": commands.ReportFlags,
        "explain": inspection.ExplainFlags,
        "predict": commands.PredictFlags,
        "export": commands.ExportFlags,
    },
    "Inspect and prepare data": {
        "inspect": inspection.InspectFlags,
        "check": inspection.CheckFlags,
        "features": inspection.FeaturesFlags,
        "learning-curve": inspection.LearningCurveFlags,
        "convert": writing.ConvertFlags,
        "clicks": writing.ClicksFlags,
    },
    "More": {"demo": commands.DemoFlags, "compat": commands.CompatFlags},
}
COMMANDS = {name: kind for group in GROUPS.values() for name, kind in group.items()}

START = """\
Usage: marginrank COMMAND [FLAGS]

marginrank trains models that rank documents, from labeled queries.

Start without data, to see what it does:
  marginrank demo

With labeled data, as LETOR text ("2 qid:1 1:0.5 2:0.1"), .csv or .parquet:
  marginrank inspect train.txt                   count queries, labels, features
  marginrank tune train.txt --model model.json   choose parameters and train
  marginrank evaluate model.json test.txt        NDCG and other metrics
  marginrank predict model.json test.txt         one score per document

All commands: marginrank --help. Flags of one: marginrank tune --help.
"""

FIRST, EXAMPLES = "Most used flags", "Examples"  # headings of the help
LAST = (RESOURCES, TABLES, LETOR)  # flags that few users need, at the end of the help

# Help without the library rich, whose boxes take twice as long to draw as everything else.
PLAIN: Any = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}


class Command(TyperCommand):
    """A typer command whose help lists the most used flags and an example before other flags."""

    first: tuple[str, ...] = ()
    example = ""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the arguments and the required flags as words for the usage line of the help."""
        parameters = {str(p.name): p for p in self.get_params(ctx)}
        named = {name: p for name, p in parameters.items() if p.param_type_name == "option"}
        pieces = [_usage_of(p) for name, p in parameters.items() if name not in named]
        for name in dict.fromkeys((*self.first, *named)):
            if named[name].required:
                pieces.append(f"{named[name].opts[0]} {named[name].metavar}")
        # A command that has no flag except --help does not need "[FLAGS]".
        return [*pieces, "[FLAGS]"] if len(named) > 1 else pieces

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the help: arguments, most used flags, examples, and a section for each heading."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], FIRST: [], EXAMPLES: []}
        parameters: dict[str, Any] = {str(p.name): p for p in self.get_params(ctx)}
        for name in dict.fromkeys((*self.first, *parameters)):
            parameter = parameters[name]
            heading = getattr(parameter, "rich_help_panel", None)
            record = parameter.get_help_record(ctx)
            if parameter.param_type_name == "argument":
                heading = "Arguments"
                record = (parameter.metavar, parameter.help)
            elif name in self.first:
                heading = FIRST
            elif name == "help":
                heading = OUTPUT
            if record is not None:
                sections.setdefault(str(heading), []).append(record)
        for heading in LAST:
            sections[heading] = sections.pop(heading, [])
        for heading, rows in sections.items():
            if rows or heading == EXAMPLES:
                with formatter.section(heading):
                    formatter.write_dl(rows) if rows else formatter.write(self.example)

    def flags(self) -> set[str]:
        return {flag for p in self.params for flag in (*p.opts, *p.secondary_opts)} | {"--help"}


class TrainingCommand(Command):
    """A command that trains a model.

    If a flag is unknown, the error message names the training commands that have it.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own = self.flags()
        words = args[: args.index("--")] if "--" in args else args
        for word in words:
            flag = word.partition("=")[0]
            if flag.startswith("--") and flag not in own:
                others = [name for name in GROUPS["Train"] if flag in command(name).flags()]
                if others:
                    names = " and ".join(filter(None, [", ".join(others[:-1]), others[-1]]))
                    complain(f"{flag} is a flag of {names}, not of {self.name}.")
                    raise typer.Exit(BAD_INPUT)
        return super().parse_args(ctx, args)


class CompatCommand(Command):
    """The command ``compat``, which accepts the flags of another program (such as SVM^rank)."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Leave all flags unparsed, for the replacement of the other program to parse."""
        ours = not args or args[0] == "--help"
        return super().parse_args(ctx, args if ours else ["--", *args])


def _usage_of(argument: Any) -> str:
    several = argument.nargs == -1 and "[" not in argument.metavar
    return f"{argument.metavar}..." if several else str(argument.metavar)


def _example_line(line: str) -> str:
    """Return a line of the examples for the help; the program's name precedes all but comments."""
    return f"  {line}\n" if line.startswith("#") else f"  marginrank {line}\n"


@cache
def command(name: str) -> Command:
    """Return the typer command with this name, with all its flags."""
    kind = COMMANDS[name]

    def run(flags: CommandFlags) -> None:
        # Import NumPy and the solvers here, not for --help.
        start = perf_counter()
        module = import_module(f"marginrank.cli.commands.{name.replace('-', '_')}")
        module.run(flags, Phases(perf_counter() - start))

    training_or_not = TrainingCommand if name in GROUPS["Train"] else Command
    cls = CompatCommand if name == "compat" else training_or_not
    alone = typer.Typer(**PLAIN)
    alone.command(name, cls=cls)(exit_codes()(typer_function(kind, run)))
    made: Any = typer.main.get_command(alone)
    made.first = kind.first
    made.example = "".join(_example_line(line) for line in kind.example.splitlines())
    return made  # type: ignore[no-any-return]


class Commands(TyperGroup):
    """The typer group of all commands; only the called command is built, to start faster."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else command(name), rest

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands for --help: the first sentence of each, in groups."""
        width = max(map(len, COMMANDS))  # width of the first column in all groups
        for heading, group in GROUPS.items():
            rows = [(f"{n:{width}}", str(k.__doc__).partition("\n")[0]) for n, k in group.items()]
            with formatter.section(heading):
                formatter.write_dl(rows)


app = typer.Typer(
    cls=Commands,
    invoke_without_command=True,
    epilog="\b\nExample, from a file to an evaluated model:\n"
    "  marginrank tune train.txt --model model.json\n"
    "  marginrank evaluate model.json test.txt",
    **PLAIN,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"marginrank {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Train and evaluate models that rank the documents of a query (RankSVM and relatives).

    New here? Run marginrank without arguments.
    """
    if context.invoked_subcommand is None:
        typer.echo(START, err=True, nl=False)
        raise typer.Exit(BAD_INPUT)


for _name, _kind in COMMANDS.items():
    app.command(_name, help=_kind.__doc__)(lambda: None)
