"""Number of threads for the compiled code and for BLAS; a `cached_property` without a lock."""

import numbers
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar, overload

from threadpoolctl import ThreadpoolController

from marginrank._utils.parameters import ParameterError, Wording, given

T = TypeVar("T")

MOST_THREADS = 256  # more threads than cores are harmless, thousands are not


def effective_threads(n_jobs: int | None) -> int:
    """Return the number of threads for a value of the parameter `n_jobs`.

    None and −1 mean all available threads, −2 all but one, and so on.
    """
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
    """Return OMP_NUM_THREADS if it is set, else the number of cores this process may run on."""
    # joblib and cluster schedulers set the variable if processes share a machine.
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Libraries(NamedTuple):
    """Controllers of threadpoolctl for the BLAS libraries of this process."""

    shared: list[Any]  # libraries with one number of threads per process
    local: list[Any]  # libraries with one number of threads per calling thread


class _SharedLimit:
    """Limits shared BLAS libraries to one thread from the first `enter` to the last `leave`."""

    def __init__(self) -> None:
        self._holders: list[int] = []  # ids of threads between `enter` and `leave`
        self._before: list[tuple[Any, int]] = []  # libraries and their numbers of threads
        # The lock is held during a fork, so that the child never sees a half-done change. It is an
        # RLock, because a signal handler that interrupts its owner may fork.
        self._lock = threading.RLock()
        os.register_at_fork(
            before=self._lock.acquire,
            after_in_parent=self._lock.release,
            after_in_child=self._after_fork,
        )

    def enter(self) -> None:
        with self._lock:
            if not self._holders:
                self._before = [(library, library.num_threads) for library in _libraries().shared]
                for library, _ in self._before:
                    _drop_owner(library)
                    library.set_num_threads(1)
            self._holders.append(threading.get_ident())

    def leave(self) -> None:
        with self._lock:
            self._holders.remove(threading.get_ident())
            self._restore_if_unused()

    def _after_fork(self) -> None:
        this = threading.get_ident()  # the only thread that exists in the child
        self._holders = [holder for holder in self._holders if holder == this]
        self._restore_if_unused()
        self._lock.release()

    def _restore_if_unused(self) -> None:
        if not self._holders:
            for library, n_threads in self._before:
                _drop_owner(library)
                library.set_num_threads(n_threads)
                _drop_owner(library)
            self._before = []


@contextmanager
def serial_blas() -> Iterator[None]:
    """Limit BLAS to one thread inside a with block.

    With more threads, results would depend on their number, and BLAS would compete with the threads
    of the compiled code. Blocks may overlap in several threads; the last one to end restores the
    original limit.
    """
    local = [(library, library.num_threads) for library in _libraries().local]
    _shared_limit.enter()
    try:
        for library, _ in local:
            library.set_num_threads(1)
        yield
    finally:
        for library, n_threads in local:
            library.set_num_threads(n_threads)
        _shared_limit.leave()


@cache
def _libraries() -> _Libraries:
    blas = [lib for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas"]
    shared = [library for library in blas if _is_shared(library)]
    return _Libraries(shared, [library for library in blas if library not in shared])


def _is_shared(library: Any) -> bool:
    """Whether the number of threads of a library is the same for all calling threads."""
    openmp = getattr(library, "threading_layer", None) == "openmp"
    return library.internal_api in ("openblas", "flexiblas") and not openmp


def _drop_owner(library: Any) -> None:
    """Allow the calling thread to set the number of threads of a library with threadpoolctl."""
    # Since 3.8, threadpoolctl ignores all threads except the first one that set the number.
    drop = getattr(library, "clear_controlling_thread", None)
    if drop is not None:
        drop(force=True)


_shared_limit = _SharedLimit()


class cached_property(Generic[T]):
    """A property that is computed once per instance, without a lock, as in Python 3.12.

    Before Python 3.12, all instances of a class shared the lock of functools.cached_property.
    Threads waited for each other, and a process that was forked during a computation waited
    forever. Without the lock, two threads may compute the same value twice.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "cached_property[T]": ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> "cached_property[T] | T":
        if instance is None:
            return self
        value = self._compute(instance)
        return vars(instance).setdefault(self._name, value)  # type: ignore[no-any-return]
