"""The command ``marginrank``.

Each command is a module of its own. None of them imports NumPy or scikit-learn before it runs, so
that the help is there at once.
"""

import sys

from marginrank._utils.optional import require
from marginrank.cli.support import streams as _streams


def main(words: list[str] | None = None) -> None:
    """Run the command line and exit; its words are those of the process by default."""
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
    except KeyboardInterrupt:  # before a command could start
        sys.exit(130)


def svm_rank_learn() -> None:
    """Run as SVM^rank's program."""
    main(["compat", "svm_rank_learn", *sys.argv[1:]])


def svm_rank_classify() -> None:
    """Run as SVM^rank's program."""
    main(["compat", "svm_rank_classify", *sys.argv[1:]])


def liblinear_train() -> None:
    """Run as LIBLINEAR-ranksvm's program."""
    main(["compat", "train", *sys.argv[1:]])


def liblinear_predict() -> None:
    """Run as LIBLINEAR-ranksvm's program."""
    main(["compat", "predict", *sys.argv[1:]])


def _complain(sentence: str) -> int:
    print(f"marginrank: {sentence}", file=sys.stderr)
    return 2
