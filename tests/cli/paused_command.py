"""Run the command, and wait at some lines of its progress for what a test does then.

The first word names them: how each begins, separated by "|". A line is followed by a pause that a
signal ends, or a reader of the progress that goes away. So no test depends on how long a fit takes.
"""

import io
import os
import select
import signal
import sys

from marginrank.cli import main


class PausedStream(io.TextIOWrapper):
    """Text that is written at once; the process waits after some lines."""

    def __init__(self, buffer, beginnings):
        super().__init__(buffer, encoding="utf-8", line_buffering=True)
        self._beginnings = beginnings
        self._line = ""
        self._signals, woken = os.pipe()
        os.set_blocking(woken, False)
        signal.set_wakeup_fd(woken)

    def write(self, text):
        n_written = super().write(text)
        *lines, self._line = (self._line + text).split("\n")
        if any(self._beginnings and line.startswith(self._beginnings[0]) for line in lines):
            del self._beginnings[0]
            self.flush()
            self._pause()
        return n_written

    def _pause(self):
        """Wait for a signal, even one that has come already, or until nobody reads any more."""
        poll = select.poll()
        poll.register(self._signals, select.POLLIN)
        poll.register(self.fileno(), 0)
        if any(descriptor == self._signals for descriptor, _ in poll.poll()):
            os.read(self._signals, 1)


if __name__ == "__main__":
    # A shell starts commands in the background with Ctrl-C ignored, and tests inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    beginnings = sys.argv.pop(1).split("|")
    sys.stderr = PausedStream(sys.stderr.buffer, beginnings)
    main()
