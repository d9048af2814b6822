"""Progress bars for terminals, drawn by the library rich."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from marginrank.cli.support.streams import printable
from marginrank.fit.stream_progress import StreamProgress


def _stderr() -> Console:
    return Console(stderr=True)


@contextmanager
def status_line(text: str) -> Iterator[Callable[[str], None]]:
    """Show a line of text with a spinner on the terminal; yield a function that sets the text."""
    with _stderr().status(text) as status:
        yield status.update


@contextmanager
def reading_bar(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show a progress bar for reading a file; yield a callback(bytes_read, bytes_in_total)."""
    columns = (TextColumn("read {task.description}", markup=False), BarColumn(), DownloadColumn())
    bar = Progress(*columns, TransferSpeedColumn(), console=_stderr(), transient=True)
    with bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)


def sweep_bar(progress: StreamProgress) -> Live:
    """Return a progress bar for the current pass over X, with the state of the fit below it."""
    bar = Progress(TextColumn("pass"), BarColumn(), MofNCompleteColumn(), TextColumn("rows"))
    task = bar.add_task("", total=progress.n_rows)

    def shown() -> Group:
        bar.update(task, completed=progress.rows_of_sweep)
        return Group(bar, Text(progress.status))

    return Live(get_renderable=shown, console=_stderr(), transient=True)


@contextmanager
def searching_bar() -> Iterator[Callable[[int, int | None, str], None]]:
    """Show a progress bar for a parameter search; yield a callback(n_done, n_total, best_model)."""
    bar = Progress(TextColumn("tune"), BarColumn(), MofNCompleteColumn(), TextColumn("models"))
    task, below = bar.add_task("", total=None), Text()

    def update(done: int, total: int | None, best: str) -> None:
        bar.update(task, completed=done, total=total)
        below.plain = printable(best)

    with Live(Group(bar, below), console=_stderr(), transient=True):
        yield update
