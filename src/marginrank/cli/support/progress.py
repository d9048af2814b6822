"""What goes on, on stderr: bars on a terminal, a line a phase otherwise."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from typing import TYPE_CHECKING, Any

from marginrank.cli.support.streams import write_err
from marginrank.cli.support.text import printable

if TYPE_CHECKING:
    from marginrank.fit.stream_progress import StreamProgress, Watch

Read = Callable[[int, int | None], None]


class Phases:
    """Times the phases of a command and shows the current one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.on_terminal = sys.stderr.isatty()

    def add(self, name: str, seconds: float, what: str | None = None) -> None:
        """Add the seconds of a phase to others of its name."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        if not self.on_terminal:
            subject = name if what is None else f"{name} {what}"
            write_err(f"{printable(subject)}: {seconds:.2f} s")

    @contextmanager
    def importing(self) -> Iterator[None]:
        """Time the imports that the help did not wait for."""
        start = time.perf_counter()
        yield
        self.seconds["import"] = time.perf_counter() - start

    @contextmanager
    def phase(self, name: str, what: str | None = None) -> Iterator[None]:
        """Time a phase."""
        start = time.perf_counter()
        yield
        self.add(name, time.perf_counter() - start, what)

    @contextmanager
    def reading(self, what: str) -> Iterator[Read | None]:
        """Time the reading of a file; yield what to tell of the bytes read, if anything."""
        bar = _reading_bar(what) if self.on_terminal else nullcontext()
        with self.phase("read", what), bar as update:
            yield update

    @contextmanager
    def counting(self, what: str) -> Iterator[Callable[[int, int], None] | None]:
        """Yield what to tell of how many of several things are done, if anything."""
        if not self.on_terminal:
            yield None
            return
        with _stderr().status(what) as status:
            yield lambda done, total: status.update(f"{what} {done:,} of {total:,}")

    @contextmanager
    def searching(self) -> Iterator[Callable[[int, int | None, str], None] | None]:
        """Yield what to tell of how many models are done, and of the best so far, if anything."""
        bar = _searching_bar() if self.on_terminal else nullcontext()
        with bar as update:
            yield update

    @contextmanager
    def solving(self, verbose: bool) -> Iterator[Callable[[Any], None] | None]:
        """Yield what to do with each iteration of a fit: print it, show the last, or nothing."""
        if verbose:
            yield _on_stderr(_print)
        elif self.on_terminal:
            with _stderr().status("train") as status:
                yield lambda line: status.update(
                    f"train  iteration {line.iteration}  objective {line.objective:.8g}"
                    + (f"  gap {line.gap:.1e}" if hasattr(line, "gap") else "")
                )
        else:
            yield None

    @contextmanager
    def streaming(self, verbose: bool, progress: "StreamProgress") -> Iterator["Watch"]:
        """Yield what a fit that reads X is to call: to print, to show the last, or to count."""
        from marginrank.fit.stream_progress import Watch

        if verbose:
            yield Watch(_on_stderr(progress.print_iteration), progress.on_read)
            return
        with _sweep_bar(progress) if self.on_terminal else nullcontext():
            yield Watch(progress.on_iteration, progress.on_read)


def _on_stderr(print_line: Callable[[Any], None]) -> Callable[[Any], None]:
    def print_it(line: Any) -> None:
        with redirect_stdout(sys.stderr):
            print_line(line)

    return print_it


def _print(line: Any) -> None:
    from marginrank.models.fit_report import Pass, print_iteration, print_pass

    print_pass(line) if isinstance(line, Pass) else print_iteration(line)


@contextmanager
def _reading_bar(what: str) -> Iterator[Read]:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("read {task.description}", markup=False), BarColumn(), DownloadColumn())
    bar = Progress(*columns, TransferSpeedColumn(), console=_stderr(), transient=True)
    with bar:
        task = bar.add_task(printable(what), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)


def _sweep_bar(progress: "StreamProgress") -> Any:
    """Show the sweep under way, and below it what the fit has done up to now."""
    from rich.console import Group
    from rich.live import Live
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.text import Text

    bar = Progress(TextColumn("sweep"), BarColumn(), MofNCompleteColumn(), TextColumn("rows"))
    task = bar.add_task("", total=progress.n_rows)

    def shown() -> Group:
        bar.update(task, completed=progress.rows_of_sweep)
        return Group(bar, Text(progress.status))

    return Live(get_renderable=shown, console=_stderr(), transient=True)


@contextmanager
def _searching_bar() -> Iterator[Callable[[int, int | None, str], None]]:
    """Show how many models are done, and below it the best so far, in as many lines as it takes."""
    from rich.console import Group
    from rich.live import Live
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.text import Text

    bar = Progress(TextColumn("tune"), BarColumn(), MofNCompleteColumn(), TextColumn("models"))
    task, below = bar.add_task("", total=None), Text()

    def update(done: int, total: int | None, best: str) -> None:
        bar.update(task, completed=done, total=total)
        below.plain = printable(best)

    with Live(Group(bar, below), console=_stderr(), transient=True):
        yield update


def _stderr() -> Any:
    from rich.console import Console

    return Console(stderr=True)
