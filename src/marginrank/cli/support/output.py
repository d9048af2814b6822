"""Printing of results to stdout: tables for people, or one JSON object for programs."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from marginrank.cli.support.streams import for_stdout, write_out, writing_out

EVIDENCE = 0.05  # p-values below count as evidence of a difference


def print_json(result: Mapping[str, Any]) -> None:
    """Print a result as one JSON object; NaN and infinity become null."""
    write_out(json.dumps(_plain(result), allow_nan=False, indent=2) + "\n")


def print_line(sentence: str) -> None:
    """Print a line of text to stdout."""
    write_out(for_stdout(sentence) + "\n")


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_table(
    title: str, rows: Iterable[Sequence[Any]], header: Sequence[str] | None = None
) -> None:
    """Print a table with a title; columns that `header` names are numbers, except the first."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [[Text(for_stdout(text(value))) for value in row] for row in rows]
    console = Console(highlight=False)
    table = Table(
        box=box.SIMPLE_HEAD if console.is_terminal and header else None,
        show_header=header is not None,
        pad_edge=False,
    )
    for column in range(max(map(len, cells), default=0)):
        name = header[column] if header else ""
        table.add_column(
            Text(for_stdout(name)), justify="right" if column and name else "left", overflow="fold"
        )
    for row in cells:
        table.add_row(*row)
    with writing_out(), console.capture() as capture:  # rich may write while it captures
        # Print the title separately: rich would wrap a table's title at the width of the table.
        console.print(Text(for_stdout(title), style="bold"))
        console.print(table)
        console.print()
    write_out(capture.get())


def text(value: Any) -> str:
    """Return a value as text for a table cell: "yes", "1,000", "0.123457", or "-" for None."""
    if hasattr(value, "item"):
        value = value.item()
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def plus_minus(mean: float, error: float) -> str:
    """Return the text "mean ± error", or "mean" if the error is NaN."""
    return f"{mean:.4f}" if error != error else f"{mean:.4f} ± {error:.4f}"
