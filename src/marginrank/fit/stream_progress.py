"""Progress of fits that read X in parts, from disk or on a cluster."""

import math
from collections.abc import Callable
from typing import NamedTuple

from marginrank._utils.memory import readable
from marginrank.models.fit_report import Iteration, iteration_text
from marginrank.operators.parts.matrix import OnRead
from marginrank.solvers.result import Callback

WINDOW = 3  # number of last iterations that estimate the rate of convergence


class Watch(NamedTuple):
    """Callbacks of a fit: one is called per iteration, the other per part of X that was read."""

    callback: Callback | None = None
    on_read: OnRead | None = None


class StreamProgress:
    """Callbacks that count the rows and bytes read by a fit, and describe its progress as text.

    Parameters
    ----------
    n_rows : int
        Number of rows of X; a pass reads all of them.
    tol : float
        Relative suboptimality at which the fit stops.
    n_parts : int, optional
        Number of parts of X, to show how many are done.
    count_workers : callable, optional
        Returns the number of workers; called once per iteration.

    Examples
    --------
    >>> from marginrank.fit.stream_progress import StreamProgress
    >>> progress = StreamProgress(1000, 1e-6)
    >>> progress.on_read(600, 2_400_000)
    >>> progress.status, progress.rows_of_sweep
    ('first pass over the data  read 2 MB', 600)
    """

    def __init__(
        self,
        n_rows: int,
        tol: float,
        *,
        n_parts: int | None = None,
        count_workers: Callable[[], int] | None = None,
    ) -> None:
        self.n_rows = n_rows
        self.rows_read = 0  # rows read in all passes
        self.bytes_read = 0  # bytes read from disk
        self._tol = tol
        self._n_parts = n_parts
        self._count_workers = count_workers
        self._n_workers = count_workers() if count_workers else None
        self._parts_of_sweep = 0
        self._swept = 0  # rows read before the current pass
        self._last: Iteration | None = None
        self._on_all: list[Iteration] = []  # the last iterations on all documents

    def on_read(self, n_rows: int, n_bytes: int) -> None:
        """Count the rows of a part of X that was processed, and the bytes read for it."""
        self.rows_read += n_rows
        self.bytes_read += n_bytes
        self._parts_of_sweep += 1
        if self.rows_read - self._swept >= self.n_rows:
            self._begin_sweep()

    def on_iteration(self, line: Iteration) -> None:
        """Record an iteration of the fit; used as its callback."""
        self._last = line
        if line.fraction == 1.0:
            self._on_all = [*self._on_all, line][-WINDOW:]
        if self._count_workers is not None:
            self._n_workers = self._count_workers()
        # A query longer than a part is read more than once per pass.
        self._begin_sweep()

    def print_iteration(self, line: Iteration) -> None:
        """Print one line about an iteration of the fit; used as its callback."""
        self.on_iteration(line)
        shown = [iteration_text(line), f"rows {self.rows_read:,}", *self._sources(), self._left()]
        print(*filter(None, shown), sep="  ")

    def _begin_sweep(self) -> None:
        self._swept = self.rows_read
        self._parts_of_sweep = 0

    @property
    def rows_of_sweep(self) -> int:
        """Number of rows that the current pass over X has read so far."""
        return self.rows_read - self._swept

    @property
    def status(self) -> str:
        return "  ".join(filter(None, [*self._stage(), *self._sources(), self._left()]))

    def _stage(self) -> list[str]:
        if self._last is None:
            return ["first pass over the data" if self.rows_read < self.n_rows else "train"]
        line = self._last
        return [
            f"train  iteration {line.iteration}",
            f"objective {line.objective:.8g}",
            f"gap {line.gap:.1e}",
            f"passes {line.sweeps:.1f}",
        ]

    def _sources(self) -> list[str]:
        shown = []
        if self.bytes_read:
            shown.append(f"read {readable(self.bytes_read)}")
        if self._n_parts is not None:
            done = f"{self._parts_of_sweep} of " if self._parts_of_sweep else ""
            shown.append(f"parts {done}{self._n_parts}")
        if self._n_workers is not None:
            shown.append(f"workers {self._n_workers}")
        return shown

    def _left(self) -> str:
        seconds = self.seconds_left
        return "" if seconds is None else f"about {duration_text(seconds)} left"

    @property
    def seconds_left(self) -> float | None:
        """Estimated remaining seconds of the fit, from the recent rate of convergence.

        None before two iterations on all documents, and if the fit does not converge or is done.
        """
        if len(self._on_all) < 2:
            return None
        first, last = self._on_all[0], self._on_all[-1]
        before, now = _relative_distance(first), _relative_distance(last)
        if not self._tol < now < before < math.inf:
            return None
        rate = (last.seconds - first.seconds) / math.log(before / now)
        return math.log(now / self._tol) * rate


def _relative_distance(line: Iteration) -> float:
    distance = min(line.estimate, line.gap)
    return distance / line.objective if line.objective > 0.0 else math.inf


def duration_text(seconds: float) -> str:
    """Return a duration in seconds as a short text, such as "3 min".

    Examples
    --------
    >>> from marginrank.fit.stream_progress import duration_text
    >>> duration_text(42.3), duration_text(200.0), duration_text(9000.0)
    ('42 s', '3 min', '2.5 h')
    """
    if seconds < 99.5:
        return f"{max(seconds, 1.0):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5970.0 else f"{seconds / 3600:.1f} h"
