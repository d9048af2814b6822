"""How many threads, and who may use them."""

import numbers
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from marginrank import _core

MOST_THREADS = 256  # asking for more than there are cores is harmless, for thousands is not


def effective_threads(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`: None all, −1 all, −2 all but one, and so on.

    One in a process that was forked, where OpenMP cannot start threads.
    """
    available: int = 1 if _forked else _core.max_threads()
    if n_jobs is None:
        return available
    most = max(available, MOST_THREADS)
    integer = isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, bool)
    if not integer or n_jobs == 0 or n_jobs > most:
        raise ValueError(
            f"n_jobs={n_jobs!r} must be None or an integer other than 0, at most {most}."
        )
    if _forked:
        return 1
    return int(n_jobs) if n_jobs > 0 else max(available + 1 + int(n_jobs), 1)


@contextmanager
def serial_blas() -> Iterator[None]:
    """Hold BLAS to one thread.

    Its vectors are short here, its threads would fight with those of the kernels for the cores, and
    its sums would depend on their number. Fits may overlap: the last one to end restores it.
    """
    with _lock:
        _limits.append(None if _limits else _controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            if len(_limits) == 1:
                _limits[0].restore_original_limits()
                _limits.clear()
            else:
                _limits.pop()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


_lock = threading.Lock()
_limits: list[Any] = []


def _after_fork() -> None:
    """Remember that threads of OpenMP did not survive: waiting for them would never end."""
    global _forked
    _forked = True


_forked = False
os.register_at_fork(after_in_child=_after_fork)
