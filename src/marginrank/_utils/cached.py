"""Attributes that are computed when they are first asked for."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):
    """Like that of functools since Python 3.12: without a lock.

    Before, one lock served all instances of a class: threads waited for each other's sweeps, and a
    process forked meanwhile waited forever. Two threads that ask at once both compute the value.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Remember the name of the attribute."""
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "cached_property[T]": ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> "cached_property[T] | T":
        """Compute the value and put it where Python finds it before it comes here again."""
        if instance is None:
            return self
        value = self._compute(instance)
        return vars(instance).setdefault(self._name, value)  # type: ignore[no-any-return]
