"""What goes on, on stderr: bars on a terminal, a line a phase otherwise."""

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from typing import Any

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
            print(f"{subject}: {seconds:.2f} s", file=sys.stderr)

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
    def solving(self, verbose: bool) -> Iterator[bool]:
        """Show what a fit prints, all of it or its last line; yield whether it should print."""
        if verbose:
            with redirect_stdout(sys.stderr):
                yield True
        elif self.on_terminal:
            with _status("train") as lines, redirect_stdout(lines):
                yield True
        else:
            yield False


@contextmanager
def _reading_bar(what: str) -> Iterator[Read]:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("read {task.description}"), BarColumn(), DownloadColumn())
    bar = Progress(*columns, TransferSpeedColumn(), console=_stderr(), transient=True)
    with bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)


@contextmanager
def _status(what: str) -> Iterator["_Lines"]:
    from rich.markup import escape

    with _stderr().status(what) as status:
        yield _Lines(lambda line: status.update(f"{what}  {escape(line)}"))


class _Lines(io.TextIOBase):
    """A text stream that hands on each line."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show

    def write(self, text: str) -> int:
        if text.strip():
            self._show(text.strip())
        return len(text)


def _stderr() -> Any:
    from rich.console import Console

    return Console(stderr=True)
