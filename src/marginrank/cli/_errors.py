"""From exceptions to exit codes: 2 and one sentence for bad input, 130 for Ctrl-C."""

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

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
    "random_state gain discount pairs top radius l1_ratio path parameter"
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
    except BrokenPipeError:  # `| head` has seen enough; typer ends quietly
        raise
    except (ValueError, OSError, ImportError) as error:
        complain(_sentence(error))
        raise typer.Exit(BAD_INPUT) from error


def complain(sentence: str) -> None:
    """Print one line on stderr."""
    print(f"marginrank: {_with_flags(sentence)}", file=sys.stderr)


def _with_flags(sentence: str) -> str:
    """Write parameters as flags: "C=-1" as "--C -1"."""
    for parameter, flag in FLAGS:
        sentence = re.sub(parameter, flag, sentence)
    return PARAMETER.sub(_flag, sentence)


def _flag(match: re.Match[str]) -> str:
    flag = "--" + match[1].replace("_", "-")
    return flag if match[2] is None else f"{flag} "


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def _plain_warnings() -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        complain(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
