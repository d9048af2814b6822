"""From exceptions to exit codes: 2 and one sentence for bad input, 130 for Ctrl-C."""

import re
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from marginrank.cli._streams import write_err
from marginrank.cli._text import printable

DEFECT = 1
BAD_INPUT = 2
INTERRUPTED = 130

# What the messages of the library call a parameter, and what the command line does.
FLAGS = (
    (r"\bpass zero_based=True", "give --zero-based"),
    (r"\bis beyond n_features=(\d+)", r"is beyond the \1 features of the model or --n-features"),
    (r"\bset qid=None", 'give --qid ""'),
    (r'\buse ndcg with gain="(\w+)"', r"give --gain \1"),
    (r"\bzero_based=True", "--zero-based"),
)
PARAMETERS = (
    "label qid features sample_weight query_weight comments group n_features missing layout dtype "
    "n_jobs C lam loss solver tol max_iter pair_selection pair_cost margin normalization "
    "random_state gain discount pairs top radius l1_ratio path parameter chunk_documents method"
)
# Neither in quotes nor in a path, such as runs/C=1/train.txt.
PARAMETER = re.compile(rf"(?<![^\s(])({PARAMETERS.replace(' ', '|')})=(?!\S*[/:])(?=([^\s.,;])?)")


@contextmanager
def exit_codes() -> Iterator[None]:
    """End the process as the shell expects, without a traceback."""
    try:
        with _plain_warnings():
            yield
    except KeyboardInterrupt as error:
        complain("interrupted; no file is half-written")
        raise typer.Exit(INTERRUPTED) from error
    except (BrokenPipeError, typer.Exit):
        raise
    except (ValueError, OSError, ImportError, MemoryError, RecursionError) as error:
        complain(_sentence(error))
        raise typer.Exit(BAD_INPUT) from error
    except Exception as error:
        complain(_defect(error))
        raise typer.Exit(DEFECT) from error


def complain(sentence: str) -> None:
    """Print one line on stderr."""
    write_err(f"marginrank: {printable(_with_flags(sentence))}")


def _with_flags(sentence: str) -> str:
    """Write parameters as flags: "C=-1" as "--C -1"."""
    for parameter, flag in FLAGS:
        sentence = re.sub(parameter, flag, sentence)
    return PARAMETER.sub(_flag, sentence)


def _flag(match: re.Match[str]) -> str:
    flag = "--" + match[1].replace("_", "-")
    return flag if match[2] is None else f"{flag} "


def _sentence(error: Exception) -> str:
    told = _one_line(error)
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename or 'a file without a name'}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "there is not enough memory for this" + (f": {told}" if told else ".")
    if isinstance(error, RecursionError):
        return "the input is nested too deeply to be read."
    return told or type(error).__name__


def _defect(error: Exception) -> str:
    """Say what nobody foresaw, and where, so that it can be reported."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"this is a defect of marginrank, please report it: {type(error).__name__} in "
        f"{Path(frame.filename).name}:{frame.lineno}: {_one_line(error)}"
    )


def _one_line(message: object) -> str:
    return " ".join(str(message).split())


@contextmanager
def _plain_warnings() -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        complain(f"warning: {_one_line(message)}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
