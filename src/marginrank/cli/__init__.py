"""The command ``marginrank``.

Each command is a module of its own. None of them imports NumPy or scikit-learn before it runs, so
that the help is there at once.
"""

import sys

from marginrank._optional import require


def main() -> None:
    """Run the command line and exit."""
    try:
        require("typer", "cli")
        require("rich", "cli")
        from marginrank.cli.app import app

        app(prog_name="marginrank")
    except ImportError as error:
        sys.exit(_complain(error))
    except KeyboardInterrupt:  # before a command could start
        sys.exit(130)


def _complain(error: ImportError) -> int:
    print(f"marginrank: {error}", file=sys.stderr)
    return 2
