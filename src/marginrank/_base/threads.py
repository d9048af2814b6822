"""How many threads, and who may use them."""

import numbers
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from marginrank._base.parameters import ParameterError, Wording, given

MOST_THREADS = 256  # asking for more than there are cores is harmless, for thousands is not


def effective_threads(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`: None all, −1 all, −2 all but one, and so on."""
    available = available_threads()
    if n_jobs is None:
        return available
    most = max(available, MOST_THREADS)
    integer = isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, bool)
    if not integer or n_jobs == 0 or n_jobs > most:
        raise ParameterError(
            given("n_jobs", n_jobs),
            " must be ",
            Wording("None or "),
            f"an integer other than 0, at most {most}.",
        )
    return int(n_jobs) if n_jobs > 0 else max(available + 1 + int(n_jobs), 1)


def available_threads() -> int:
    """Return how many threads "all" are: OMP_NUM_THREADS, or the cores this process may run on.

    The variable is not ours, but it is the one that joblib and clusters set to share a machine.
    """
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _BlasLimit:
    """Holds BLAS to one thread while anybody wants that; the last one to leave restores it."""

    def __init__(self) -> None:
        self._holders: list[int] = []  # threads
        self._limiter: Any = None
        # Held during a fork, so that the child never sees it half done. A fork may come out of a
        # signal handler that interrupted its owner: hence an RLock.
        self._lock = threading.RLock()
        os.register_at_fork(
            before=self._lock.acquire,
            after_in_parent=self._lock.release,
            after_in_child=self._after_fork,
        )

    def enter(self) -> None:
        with self._lock:
            if not self._holders:
                self._limiter = _controller().limit(limits=1, user_api="blas")
            self._holders.append(threading.get_ident())

    def leave(self) -> None:
        with self._lock:
            self._holders.remove(threading.get_ident())
            self._restore_if_unused()

    def _after_fork(self) -> None:
        """Forget the holders that do not exist in the child: all threads but this one."""
        this = threading.get_ident()
        self._holders = [holder for holder in self._holders if holder == this]
        self._restore_if_unused()
        self._lock.release()

    def _restore_if_unused(self) -> None:
        if not self._holders and self._limiter is not None:
            self._limiter.restore_original_limits()
            self._limiter = None


@contextmanager
def serial_blas() -> Iterator[None]:
    """Hold BLAS to one thread.

    Its vectors are short here, its threads would fight with those of the kernels for the cores, and
    its sums would depend on their number. Fits may overlap: the last one to end restores it.
    """
    _blas_limit.enter()
    try:
        yield
    finally:
        _blas_limit.leave()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


_blas_limit = _BlasLimit()
