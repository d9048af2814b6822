"""The command-line program ``marginrank``.

``flags/`` declares the flags of all commands; ``--help`` imports nothing else. ``commands/`` has
one module per command, which is imported when the command runs. ``support/`` has functions that
several commands share.
"""

import sys
from functools import partial

from marginrank._utils.optional import require
from marginrank.cli.support import streams as _streams


def main(words: list[str] | None = None) -> None:
    """Run the command line and exit; `words` are the arguments, by default ``sys.argv[1:]``."""
    _streams.prepare()
    try:
        require("typer", "cli")
        require("rich", "cli")
        from marginrank.cli.app import app

        app(words, prog_name="marginrank")
    except ImportError as error:
        sys.exit(_complain(str(error)))
    except OSError as error:  # the help could not be written
        _streams.silence_stdout()
        sys.exit(_complain(f"standard output: {error.strerror or error}"))
    except KeyboardInterrupt:  # interrupted before a command could start
        sys.exit(130)


def _complain(sentence: str) -> int:
    print(f"marginrank: {sentence}", file=sys.stderr)
    return 2


def _run_as(program: str) -> None:
    main(["compat", program, *sys.argv[1:]])


svm_rank_learn = partial(_run_as, "svm_rank_learn")
svm_rank_classify = partial(_run_as, "svm_rank_classify")
liblinear_train = partial(_run_as, "train")
liblinear_predict = partial(_run_as, "predict")
