"""Where an error is: the number of the partition goes before its message."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Result = TypeVar("Result")


def in_partition(task: Callable[..., Result]) -> Callable[..., Result]:
    """Return a task whose first argument is the number of a partition, which its errors name."""

    @wraps(task)
    def named(number: int, *rest: Any, **options: Any) -> Result:
        try:
            return task(number, *rest, **options)
        except (ValueError, TypeError, OSError) as error:
            kind = next(k for k in (TypeError, OSError, ValueError) if isinstance(error, k))
            raise kind(f"partition {number}: {error}") from error

    return named
