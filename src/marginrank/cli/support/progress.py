"""Progress of a command on stderr: bars on a terminal, otherwise one line per phase."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from typing import TYPE_CHECKING, Any

from marginrank.cli.support.streams import printable, write_err

if TYPE_CHECKING:
    from marginrank.fit.stream_progress import StreamProgress, Watch

Read = Callable[[int, int | None], None]


class Phases:
    """Timer of the phases of a command (read, solve, …), which also shows their progress.

    Methods that yield a callback show a progress bar, or yield None if stderr is not a terminal.
    """

    def __init__(self, import_seconds: float = 0.0) -> None:
        self.import_seconds = import_seconds
        self.seconds: dict[str, float] = {}
        self.on_terminal = sys.stderr.isatty()

    def add(self, name: str, seconds: float, what: str | None = None) -> None:
        """Add seconds to the time of the phase `name`; print a line if stderr is not a terminal."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        if not self.on_terminal:
            subject = name if what is None else f"{name} {what}"
            write_err(f"{printable(subject)}: {seconds:.2f} s")

    @contextmanager
    def phase(self, name: str, what: str | None = None) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.add(name, time.perf_counter() - start, what)

    @contextmanager
    def reading(self, what: str) -> Iterator[Read | None]:
        """Time the reading of a file; yield a callback(bytes_read, bytes_in_total), or None."""
        with self.phase("read", what), self._bar("reading_bar", printable(what)) as update:
            yield update

    @contextmanager
    def counting(self, what: str) -> Iterator[Callable[[int, int], None] | None]:
        """Show the progress of a loop; yield a callback(n_done, n_total), or None."""
        with self._bar("status_line", what) as show:
            yield show and (lambda done, total: show(f"{what} {done:,} of {total:,}"))

    def searching(self) -> AbstractContextManager[Callable[[int, int | None, str], None] | None]:
        """Show the progress of a search; yield a callback(n_done, n_total, best_model), or None."""
        return self._bar("searching_bar")

    @contextmanager
    def solving(self, verbose: bool) -> Iterator[Callable[[Any], None] | None]:
        """Show the progress of a fit; yield a callback for its iterations, or None.

        If `verbose`, each iteration is printed on stderr, even if it is not a terminal.
        """
        if verbose:
            yield _on_stderr(_print)
            return
        with self._bar("status_line", "train") as show:
            yield show and (
                lambda line: show(
                    f"train  iteration {line.iteration}  objective {line.objective:.8g}"
                    + (f"  gap {line.gap:.1e}" if hasattr(line, "gap") else "")
                )
            )

    @contextmanager
    def streaming(self, verbose: bool, progress: "StreamProgress") -> Iterator["Watch"]:
        """Show the progress of a fit that reads X from disk; yield the callbacks to pass to it."""
        from marginrank.fit.stream_progress import Watch

        if verbose:
            yield Watch(_on_stderr(progress.print_iteration), progress.on_read)
            return
        with self._bar("sweep_bar", progress):
            yield Watch(progress.on_iteration, progress.on_read)

    def _bar(self, name: str, *arguments: Any) -> AbstractContextManager[Any]:
        """Return the context manager `name` of cli.support.bars, empty if not on a terminal."""
        if not self.on_terminal:
            return nullcontext()
        from marginrank.cli.support import bars  # imported here, because rich is slow to import

        shown: AbstractContextManager[Any] = getattr(bars, name)(*arguments)
        return shown


def _on_stderr(print_line: Callable[[Any], None]) -> Callable[[Any], None]:
    def print_it(line: Any) -> None:
        with redirect_stdout(sys.stderr):
            print_line(line)

    return print_it


def _print(line: Any) -> None:
    from marginrank.models.fit_report import Pass, print_iteration, print_pass

    print_pass(line) if isinstance(line, Pass) else print_iteration(line)
