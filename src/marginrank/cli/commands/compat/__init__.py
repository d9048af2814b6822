"""marginrank compat: the command lines of SVM^rank and LIBLINEAR-ranksvm.

Their flags are not ours: one letter each, read as these programs read them, with the meaning that
they have there.
"""

from typing import Annotated, Any

import typer

from marginrank._utils.parameters import Mention, ParameterError
from marginrank.cli.commands.compat import liblinear, svm_rank
from marginrank.cli.support.command import Command
from marginrank.cli.support.flags import as_flag
from marginrank.cli.support.streams import write_out

EXAMPLE = """\
compat svm_rank_learn -c 20.0 train.dat model.dat
compat svm_rank_classify test.dat model.dat predictions
compat train -s 8 -c 1 train.txt train.txt.model
compat predict test.txt train.txt.model output"""

PROGRAMS = {
    "svm_rank_learn": svm_rank.LEARN,
    "svm_rank_classify": svm_rank.CLASSIFY,
    "train": liblinear.TRAIN,
    "predict": liblinear.PREDICT,
}


class CompatCommand(Command):
    """A command whose words are another program's: none of them is a flag of ours."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take everything from the name of the program on as it is."""
        ours = not args or args[0] == "--help"
        return super().parse_args(ctx, args if ours else ["--", *args])


def compat(
    program: Annotated[
        str,
        typer.Argument(
            metavar="PROGRAM",
            help=f"The program to stand in for: {', '.join(PROGRAMS)}.",
            show_default=False,
        ),
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FLAGS] FILES",
            help="As for that program; -? lists its flags.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run as svm_rank_learn, svm_rank_classify, or LIBLINEAR-ranksvm's train and predict.

    Flags, files and the meaning of -c are those of the program. A flag that cannot be honoured is
    refused.
    """
    if program not in PROGRAMS:
        raise ValueError(f"{program} is none of the programs {', '.join(PROGRAMS)}.")
    chosen = PROGRAMS[program]
    given = chosen.parse(words or [])
    if given is None:
        write_out(chosen.help())
        return
    try:
        chosen.run(given)
    except ParameterError as error:
        raise ValueError(error.spelled(_as_told_here)) from error


def _as_told_here(mention: Mention) -> str:
    """Spell a parameter, for which these programs have no flag: text is read so by convert."""
    reading = mention.name in ("missing", "zero_based")
    return f"marginrank convert {as_flag(mention)}" if reading else str(mention)
