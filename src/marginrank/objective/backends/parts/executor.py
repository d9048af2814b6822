"""Who computes on the parts of X, and keeps what belongs to them.

A part is some of the queries with all their documents. What is done for it is a function of its
kernels: an executor calls that for every part, in this process or in others. What has an entry a
document is kept where it was made, and handed to later functions of the same part; what is small is
told. Which parts there are depends on the data alone, and so does every result.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from marginrank._utils.types import Integers
from marginrank.objective.losses import Loss

# task(kernels, *each, *common) returns what to keep, a tuple, and what to tell.
Task = Callable[..., tuple[tuple[Any, ...], Any]]
Tell = Callable[[Any], None]


@dataclass(frozen=True, eq=False)
class ByPart:
    """Something that every part has.

    Attributes
    ----------
    handles : tuple
        What a task has kept, by part, as the executor knows it.
    item : int
        Which of the things that it kept.
    """

    handles: tuple[Any, ...]
    item: int = 0


class Executor(ABC):
    """Calls functions of the parts."""

    @property
    @abstractmethod
    def bounds(self) -> Integers:
        """Part k has the documents bounds[k] … bounds[k + 1]."""

    @property
    def far(self) -> bool:
        """Whether calling a task costs more than most tasks do, as it has to travel."""
        return False

    @abstractmethod
    def run(
        self,
        task: Task,
        loss: Loss,
        each: Sequence[ByPart | None],
        common: Sequence[Any],
        *,
        tell: Tell | None = None,
        sweep: bool = False,
    ) -> tuple[Any, ...]:
        """Call a task for every part.

        Parameters
        ----------
        task : callable
            A function of a module, that changes nothing.
        loss : Loss
            What the kernels of the parts are for.
        each : sequence of ByPart or None
            Arguments that parts have of their own.
        common : sequence
            Arguments that are the same for all.
        tell : callable, optional
            Called with what the task tells, in the order of the parts. Without it nobody waits.
        sweep : bool
            Whether the task looks at X.

        Returns
        -------
        tuple
            The handles of what was kept.
        """

    @abstractmethod
    def place(self, values: Sequence[Any]) -> ByPart:
        """Give every part a value."""

    @abstractmethod
    def restrict(self, columns: Integers) -> "Executor":
        """Return the same parts with some columns of X alone (ascending)."""
