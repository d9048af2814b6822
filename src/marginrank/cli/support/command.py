"""Commands as typer sees them: help under headings, and a word on flags of another command."""

from collections.abc import Callable, Iterable
from typing import Any

import typer
from typer.core import TyperCommand

from marginrank.cli.support.errors import BAD_INPUT, complain


class Command(TyperCommand):
    """A command whose help lists its flags under headings.

    The headings are the panels of typer, in plain text: rich's boxes take twice as long as all the
    rest.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and flags, a section a heading; --help ends the last one."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            heading = getattr(parameter, "rich_help_panel", None) or "Options"
            if parameter.param_type_name == "argument":
                heading = "Arguments"
            elif parameter.name == "help":
                heading = list(sections)[-1]
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(heading, []).append(record)
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)

    def flags(self) -> set[str]:
        """Return all spellings of its flags."""
        return {flag for p in self.params for flag in (*p.opts, *p.secondary_opts)} | {"--help"}


class TrainingCommand(Command):
    """A command that learns, and knows the others that do."""

    others: Callable[[], Iterable[Command]] = tuple

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Report a flag of another learner with the command that has it."""
        own = self.flags()
        words = args[: args.index("--")] if "--" in args else args
        for word in words:
            flag = word.partition("=")[0]
            if flag.startswith("--") and flag not in own:
                self._check_flag(flag)
        return super().parse_args(ctx, args)

    def _check_flag(self, flag: str) -> None:
        """End the command if another one has the flag."""
        able = [str(other.name) for other in self.others() if flag in other.flags()]
        if able:
            commands = " and ".join(filter(None, [", ".join(able[:-1]), able[-1]]))
            complain(f"{flag} is a flag of {commands}, not of {self.name}.")
            raise typer.Exit(BAD_INPUT)
