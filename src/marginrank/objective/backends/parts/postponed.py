"""Sums of score vectors that are not added up before a task needs them.

Where a task costs more than an addition, one that does nothing but add is a waste: the task that
needs the sum makes it, in the same order and so with the same bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from marginrank.objective.backends.interface import PartKernels, Scores
from marginrank.objective.backends.parts.executor import ByPart, Task

MOST_TERMS = 8  # of a sum, each of which takes memory until it is added up


@dataclass(frozen=True, eq=False)
class PostponedSum:
    """A vector plus multiples of others, from the first to the last.

    Attributes
    ----------
    base : ByPart or None
        The vector; None for zeros.
    steps : tuple of float
        What multiplies the others.
    vectors : tuple of ByPart
        The others.
    """

    base: ByPart | None = None
    steps: tuple[float, ...] = ()
    vectors: tuple[ByPart, ...] = ()

    @property
    def is_long(self) -> bool:
        """Whether it should be added up before more is added."""
        return len(self.steps) >= MOST_TERMS

    def plus(self, step: float, vector: ByPart) -> "PostponedSum":
        """Return the sum with one more term."""
        return PostponedSum(self.base, (*self.steps, step), (*self.vectors, vector))


class Call(NamedTuple):
    """A task, and the arguments that parts have of their own."""

    task: Task
    each: Sequence[ByPart | None]


def without_sums(task: Task, each: Sequence[Any]) -> Call:
    """Return a task that adds up those of its arguments that are sums."""
    if not any(isinstance(some, PostponedSum) for some in each):
        return Call(task, each)
    steps = [some.steps if isinstance(some, PostponedSum) else None for some in each]
    terms: list[ByPart | None] = []
    for some in each:
        terms += [some.base, *some.vectors] if isinstance(some, PostponedSum) else [some]
    return Call(partial(_on_sums, task, steps), terms)


def _on_sums(
    task: Task,
    steps: Sequence[tuple[float, ...] | None],
    kernels: PartKernels,
    *arguments: Any,
) -> tuple[tuple[Any, ...], Any]:
    """Call a task with the sums of terms, for those arguments that have steps."""
    left = iter(arguments)
    own = []
    for of_one in steps:
        total = next(left)
        if of_one is not None:
            total = _added_up(kernels, total, [(step, next(left)) for step in of_one])
        own.append(total)
    return task(kernels, *own, *left)


def _added_up(
    kernels: PartKernels, base: Scores | None, terms: Sequence[tuple[float, Scores]]
) -> Scores:
    total = kernels.zero() if base is None else base
    for step, vector in terms:
        total = kernels.add(total, step, vector)
    return total
