"""Which parts of a sweep are done, while it goes on."""

from collections.abc import Sequence
from functools import partial
from threading import Lock

from distributed import Future

from marginrank.operators.parts.matrix import OnRead


class SweepWatch:
    """Tells of the parts of a sweep, each once: when its bundle is done, or when the sweep ends.

    Parameters
    ----------
    on_read : callable
        Called with the rows of each part and 0, the bytes read from disk; never by two threads at
        once.
    rows : sequence of sequence of int
        Rows of the parts of each bundle.
    """

    def __init__(self, on_read: OnRead, rows: Sequence[Sequence[int]]) -> None:
        self._on_read = on_read
        self._left = dict(enumerate(rows))
        self._lock = Lock()

    def follow(self, futures: Sequence[Future]) -> None:
        """Tell of bundles when these futures, one for each, are there."""
        for bundle, future in enumerate(futures):
            future.add_done_callback(partial(self._done, bundle))

    def end(self) -> None:
        """Tell of what is left: callbacks come late, or never."""
        for bundle in list(self._left):
            self._done(bundle)

    def _done(self, bundle: int, _: Future | None = None) -> None:
        with self._lock:
            for n_rows in self._left.pop(bundle, ()):
                self._on_read(n_rows, 0)
