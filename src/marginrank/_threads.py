"""How many threads, and who may use them."""

import numbers
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from marginrank import _core

MOST_THREADS = 256  # asking for more than there are cores is harmless, for thousands is not


def effective_threads(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`: None all, −1 all, −2 all but one, and so on."""
    available: int = _core.max_threads()
    if n_jobs is None:
        return available
    most = max(available, MOST_THREADS)
    integer = isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, bool)
    if not integer or n_jobs == 0 or n_jobs > most:
        raise ValueError(
            f"n_jobs={n_jobs!r} must be None or an integer other than 0, at most {most}."
        )
    return int(n_jobs) if n_jobs > 0 else max(available + 1 + int(n_jobs), 1)


def serial_blas() -> Any:
    """Return a context in which BLAS uses one thread.

    Its vectors are short here, its threads would fight with those of the kernels for the cores, and
    its sums would depend on their number.
    """
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
