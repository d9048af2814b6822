"""Executor interface: calls tasks on the parts of X, and keeps their results where they are.

A part is some of the queries with all their documents. A task is a function of its kernels: an
executor calls it for every part, in this process or in others. Vectors with one entry per document
stay where they were made, and are handed to later tasks of the same part; small results come back.
Which parts there are depends on the data alone, and so does every result.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from marginrank._utils.types import Integers
from marginrank.objective.losses import Loss
from marginrank.objective.protocols import Design, PairLoss

# task(kernels, *each, *common) returns the results to keep, a tuple, and the result to report.
Task = Callable[..., tuple[tuple[Any, ...], Any]]
Report = Callable[[Any], None]


class PartKernels(NamedTuple):
    """The design of a part, in this process, and the loss, if the task needs one."""

    design: Design
    loss: PairLoss | None

    @property
    def pair_loss(self) -> PairLoss:
        """The loss."""
        assert self.loss is not None
        return self.loss


@dataclass(frozen=True, eq=False)
class ByPart:
    """An object that every part has.

    Attributes
    ----------
    handles : tuple
        The results that a task has kept, by part, as the executor knows them.
    item : int
        Which of these results.
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
        """Whether calling a task costs more than most tasks do, because it is sent elsewhere."""
        return False

    @abstractmethod
    def run(
        self,
        task: Task,
        loss: Loss | None,
        each: Sequence[ByPart | None],
        common: Sequence[Any],
        *,
        report: Report | None = None,
        sweep: bool = False,
    ) -> tuple[Any, ...]:
        """Call a task for every part.

        Parameters
        ----------
        task : callable
            A function of a module, without side effects.
        loss : Loss or None
            The loss of the kernels of the parts; None if the task needs none.
        each : sequence of ByPart or None
            Arguments that parts have of their own.
        common : sequence
            Arguments that are the same for all.
        report : callable, optional
            Called with the reported results, in the order of the parts. Without it nobody waits.
        sweep : bool
            Whether the task reads X.

        Returns
        -------
        tuple
            The handles of the kept results.
        """

    @abstractmethod
    def place(self, values: Sequence[Any]) -> ByPart:
        """Give every part a value."""

    @abstractmethod
    def restrict(self, columns: Integers) -> "Executor":
        """Return the same parts with some columns of X alone (ascending)."""
