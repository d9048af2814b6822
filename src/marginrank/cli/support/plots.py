"""Files of plots."""

from pathlib import Path
from typing import Any

from marginrank.cli.support.checks import check_writable
from marginrank.cli.support.files import naming


def check_plot(path: str | None) -> None:
    """Refuse, before the work is done, a plot that cannot be drawn or written."""
    if path is None:
        return
    from marginrank._utils.optional import require

    check_writable(path)
    formats = require("matplotlib.backend_bases", "plot").FigureCanvasBase.get_supported_filetypes()
    if _format(path) not in formats:
        raise ValueError(f"{path} must end in one of {', '.join(f'.{f}' for f in formats)}.")


def save_plot(ax: Any, path: str) -> None:
    """Write the figure of `ax` in the format that the ending of `path` names."""
    from marginrank._utils.atomic_files import atomic_write

    with naming(path), atomic_write(path) as file:
        ax.figure.savefig(file, format=_format(path))


def _format(path: str) -> str:
    return Path(path).suffix.lower().removeprefix(".")
