"""A thread that fills buffers ahead of whoever needs what is in them."""

import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Generic, TypeVar

Buffer = TypeVar("Buffer")
Filled = TypeVar("Filled")


class Stopped(Exception):
    """Nobody needs what is being read."""


class ReadAhead(Generic[Buffer, Filled]):
    """Calls a function for each of some numbers in a thread, as far ahead as there are buffers.

    A process that is forked meanwhile has no such thread and maybe half a queue: it is told so, and
    touches neither.

    Parameters
    ----------
    fill : callable
        Called with a number and with what takes a buffer; it returns what :meth:`following` gives.
        It calls :meth:`check` now and then.
    numbers : sequence of int
        In this order.
    buffers : sequence
        The buffers.
    """

    def __init__(
        self,
        fill: Callable[[int, "ReadAhead[Buffer, Filled]"], Filled],
        numbers: Sequence[int],
        buffers: Sequence[Buffer],
    ) -> None:
        self._fill = fill
        self._numbers = numbers
        self._free: SimpleQueue[Buffer | None] = SimpleQueue()
        self._filled: SimpleQueue[Filled | BaseException] = SimpleQueue()
        for buffer in buffers:
            self._free.put(buffer)
        self._stopped = False
        self._process = os.getpid()
        # Whoever leaves a sweep half done until the interpreter ends must not make it wait.
        self._thread = threading.Thread(target=self._run, name="marginrank-reader", daemon=True)

    def start(self) -> None:
        """Begin; to be followed by :meth:`stop`, whatever happens."""
        self._thread.start()

    def _run(self) -> None:
        try:
            for number in self._numbers:
                self.check()
                self._filled.put(self._fill(number, self))
        except Stopped:
            return
        except BaseException as error:  # nobody would see it here
            self._filled.put(error)

    def check(self) -> None:
        """Raise if nobody needs more."""
        if self._stopped:
            raise Stopped

    def take(self) -> Buffer:
        """Return a buffer, as soon as one is free."""
        buffer = self._free.get()
        self.check()
        assert buffer is not None
        return buffer

    def give_back(self, buffer: Buffer) -> None:
        """Let a buffer be filled again."""
        if self._process == os.getpid():
            self._free.put(buffer)

    def following(self) -> Filled:
        """Return what the function has returned for the next number, or raise what it raised."""
        if self._process != os.getpid():
            raise RuntimeError("a sweep cannot go on in a forked process; begin another one there.")
        if self._stopped:
            raise RuntimeError("a sweep cannot go on after another one has begun on its reader.")
        filled = self._filled.get()
        try:
            if isinstance(filled, BaseException):
                raise filled
            return filled
        finally:
            del filled  # an error that its own traceback refers to would keep the buffers

    def stop(self) -> None:
        """End the thread."""
        self._stopped = True
        if self._process == os.getpid() and self._thread.ident is not None:
            self._free.put(None)  # it may wait for one
            self._thread.join()
            # An error that nobody took refers to this through its traceback: buffers would stay.
            self._free, self._filled = SimpleQueue(), SimpleQueue()
