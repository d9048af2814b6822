"""Run the command, and wait at some lines of its progress for what a test does then.

The first word names them: how each begins, separated by "|". A line is followed by a pause that an
interrupt ends, or a reader of the progress that goes away. So no test depends on how long a fit
takes.
"""

import io
import select
import sys

from marginrank.cli import main


class PausedStream(io.TextIOWrapper):
    """Text that is written at once; the process waits after some lines."""

    def __init__(self, buffer, beginnings):
        super().__init__(buffer, encoding="utf-8", line_buffering=True)
        self._beginnings = beginnings
        self._line = ""

    def write(self, text):
        n_written = super().write(text)
        *lines, self._line = (self._line + text).split("\n")
        if any(self._beginnings and line.startswith(self._beginnings[0]) for line in lines):
            del self._beginnings[0]
            self.flush()
            wait_for_the_test(self.fileno())
        return n_written


def wait_for_the_test(descriptor):
    """Return when nobody reads any more; an interrupt is raised as ever."""
    reader = select.poll()
    reader.register(descriptor, 0)
    while not reader.poll(10):  # milliseconds, as a signal may come just before it
        pass


if __name__ == "__main__":
    beginnings = sys.argv.pop(1).split("|")
    sys.stderr = PausedStream(sys.stderr.buffer, beginnings)
    main()
