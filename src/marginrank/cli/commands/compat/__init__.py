"""The command ``marginrank compat``: drop-in replacements for SVM^rank and LIBLINEAR-ranksvm.

Flags are single letters, with the same syntax and meaning as in these programs.
"""

from marginrank._utils.parameters import Mention, ParameterError
from marginrank.cli.commands.compat import programs
from marginrank.cli.flags.commands import CompatFlags
from marginrank.cli.flags.declaration import as_flag
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.streams import write_out

PROGRAMS = {
    "svm_rank_learn": programs.LEARN,
    "svm_rank_classify": programs.CLASSIFY,
    "train": programs.TRAIN,
    "predict": programs.PREDICT,
}


def run(flags: CompatFlags, phases: Phases) -> None:
    """Run the drop-in replacement of another program, with the arguments of that program."""
    if flags.program not in PROGRAMS:
        raise ValueError(f"{flags.program} must be one of {', '.join(PROGRAMS)}.")
    program = PROGRAMS[flags.program]
    given = program.parse(flags.words or [])
    if given is None:
        write_out(program.help())
        return
    try:
        program.run(given)
    except ParameterError as error:
        raise ValueError(error.spelled(_as_flag_of_convert)) from error


def _as_flag_of_convert(mention: Mention) -> str:
    """Return a parameter that a message mentions as text.

    The replaced programs have no flags for options of reading, so these options are spelled as
    flags of `marginrank convert`.
    """
    reading = mention.name in ("missing", "zero_based")
    return f"marginrank convert {as_flag(mention)}" if reading else str(mention)
