"""What a fit does that reads X again and again, from disk or on a cluster, in words."""

import math
from collections.abc import Callable
from typing import NamedTuple

from marginrank._utils.memory import readable
from marginrank.models.fit_report import Iteration, iteration_text
from marginrank.operators.parts.matrix import OnRead
from marginrank.solvers.result import Callback

WINDOW = 3  # iterations that tell how fast a fit comes closer


class Watch(NamedTuple):
    """What a fit calls with each iteration, and with rows and bytes that it has read."""

    callback: Callback | None = None
    on_read: OnRead | None = None


class StreamProgress:
    """Counts what was read, and says how far a fit is.

    Parameters
    ----------
    n_rows : int
        Rows of X: what a sweep reads.
    tol : float
        Relative distance to the optimum at which the fit ends.
    n_parts : int, optional
        Parts of X, to be shown where they are computed with at once.
    count_workers : callable, optional
        Returns how many workers there are; it is called once an iteration.

    Attributes
    ----------
    rows_read, bytes_read : int
        In all sweeps; bytes from disk alone.

    Examples
    --------
    >>> from marginrank.fit.stream_progress import StreamProgress
    >>> progress = StreamProgress(1000, 1e-6)
    >>> progress.on_read(600, 2_400_000)
    >>> progress.status, progress.rows_of_sweep
    ('look at the data once  read 2 MB', 600)
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
        self.rows_read = 0
        self.bytes_read = 0
        self._tol = tol
        self._n_parts = n_parts
        self._count_workers = count_workers
        self._n_workers = count_workers() if count_workers else None
        self._parts_of_sweep = 0
        self._swept = 0  # rows before the sweep under way
        self._last: Iteration | None = None
        self._on_all: list[Iteration] = []  # the last ones that are not on a sample

    def on_read(self, n_rows: int, n_bytes: int) -> None:
        """Take in that some rows, a part of X, were computed with, and bytes read for it."""
        self.rows_read += n_rows
        self.bytes_read += n_bytes
        self._parts_of_sweep += 1
        if self.rows_read - self._swept >= self.n_rows:
            self._begin_sweep()

    def on_iteration(self, line: Iteration) -> None:
        """Take in an iteration; a callback."""
        self._last = line
        if line.fraction == 1.0:
            self._on_all = [*self._on_all, line][-WINDOW:]
        if self._count_workers is not None:
            self._n_workers = self._count_workers()
        # A query that is longer than a part is read more than once a sweep.
        self._begin_sweep()

    def print_iteration(self, line: Iteration) -> None:
        """Print an iteration on a line, with what was read up to then; a callback."""
        self.on_iteration(line)
        told = [iteration_text(line), f"rows {self.rows_read:,}", *self._places(), self._left()]
        print(*filter(None, told), sep="  ")

    def _begin_sweep(self) -> None:
        self._swept = self.rows_read
        self._parts_of_sweep = 0

    @property
    def rows_of_sweep(self) -> int:
        """Rows that the sweep under way has read."""
        return self.rows_read - self._swept

    @property
    def status(self) -> str:
        """Where the fit is, for a line that changes."""
        return "  ".join(filter(None, [*self._stage(), *self._places(), self._left()]))

    def _stage(self) -> list[str]:
        if self._last is None:
            return ["look at the data once" if self.rows_read < self.n_rows else "train"]
        line = self._last
        return [
            f"train  iteration {line.iteration}",
            f"objective {line.objective:.8g}",
            f"gap {line.gap:.1e}",
            f"sweeps {line.sweeps:.1f}",
        ]

    def _places(self) -> list[str]:
        """Say where the rows came from: disk, parts, workers."""
        told = []
        if self.bytes_read:
            told.append(f"read {readable(self.bytes_read)}")
        if self._n_parts is not None:
            done = f"{self._parts_of_sweep} of " if self._parts_of_sweep else ""
            told.append(f"parts {done}{self._n_parts}")
        if self._n_workers is not None:
            told.append(f"workers {self._n_workers}")
        return told

    def _left(self) -> str:
        seconds = self.seconds_left
        return "" if seconds is None else f"about {duration_text(seconds)} left"

    @property
    def seconds_left(self) -> float | None:
        """How long the fit will take if it comes closer to the optimum as fast as just now.

        None before two iterations on all documents, while it does not come closer, and when it is
        close enough.
        """
        if len(self._on_all) < 2:
            return None
        first, last = self._on_all[0], self._on_all[-1]
        before, now = _relative_distance(first), _relative_distance(last)
        if not self._tol < now < before < math.inf:
            return None
        seconds_a_factor = (last.seconds - first.seconds) / math.log(before / now)
        return math.log(now / self._tol) * seconds_a_factor


def _relative_distance(line: Iteration) -> float:
    distance = min(line.estimate, line.gap)
    return distance / line.objective if line.objective > 0.0 else math.inf


def duration_text(seconds: float) -> str:
    """Return a time for people, no more exact than an estimate is.

    Examples
    --------
    >>> from marginrank.fit.stream_progress import duration_text
    >>> duration_text(42.3), duration_text(200.0), duration_text(9000.0)
    ('42 s', '3 min', '2.5 h')
    """
    if seconds < 99.5:
        return f"{max(seconds, 1.0):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5970.0 else f"{seconds / 3600:.1f} h"
