"""Tasks on parts of X, and the executor interface that runs them.

A part is some of the queries with all their documents. A task is a function of the kernels of one
part: it returns a tuple of results to keep and one result to report. An executor calls a task for
every part, in this process or in others. Kept results, such as vectors with one entry per document,
stay with the part and are passed to its later tasks. Reported results are small and are returned to
the caller. The parts depend only on the data, and so does every result.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from marginrank._utils.types import Floats, Integers
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sets import PairSet
from marginrank.objective.protocols import Design, Evaluation, PairLoss, Scores, State

Kept = tuple[Any, ...]
Task = Callable[..., tuple[Kept, Any]]  # task(kernels, *each, *common) -> kept, reported
Report = Callable[[Any], None]


class PartKernels(NamedTuple):
    """The rows of X of a part (a Design), and the loss on its pairs if the task needs it."""

    design: Design
    loss: PairLoss | None

    @property
    def pair_loss(self) -> PairLoss:
        assert self.loss is not None
        return self.loss


@dataclass(frozen=True, eq=False)
class ByPart:
    """A kept result of a task, with one value per part."""

    handles: tuple[Any, ...]  # one per part: refers to the tuple of results that the task kept
    item: int = 0  # position of this result in the tuples


class Executor(ABC):
    """Calls tasks on the parts of X."""

    @property
    @abstractmethod
    def bounds(self) -> Integers:
        """Offsets of the parts: part k has the documents bounds[k] … bounds[k + 1]."""

    @property
    def far(self) -> bool:
        """Whether tasks run on other machines, so a call takes longer than most tasks."""
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
            A module-level function without side effects.
        loss : Loss or None
            The loss for the kernels of the parts; None if the task needs none.
        each : sequence of ByPart or None
            Arguments with one value per part.
        common : sequence
            Arguments that are the same for all parts.
        report : callable, optional
            Called with the reported results, in the order of the parts. Without it, the call may
            return before the task has run.
        sweep : bool
            Whether the task reads X.

        Returns
        -------
        tuple
            The handles of the kept results.
        """

    @abstractmethod
    def place(self, values: Sequence[Any]) -> ByPart:
        """Send one value to each part, and return their ByPart."""

    @abstractmethod
    def restrict(self, columns: Integers) -> "Executor":
        """Return an executor of the same parts with only these columns (ascending) of X."""


def keep(method: str, part: PartKernels, *arguments: Any) -> tuple[Kept, Any]:
    """Call a method of a part, such as "design.dot", and keep its result."""
    return (attrgetter(method)(part)(*arguments),), None


def report(method: str, part: PartKernels, *arguments: Any) -> tuple[Kept, Any]:
    """Call a method of a part, such as "design.transpose_dot", and report its result."""
    return (), attrgetter(method)(part)(*arguments)


def evaluate(part: PartKernels, like: State | None, w: Floats) -> tuple[Kept, Any]:
    """Evaluate the loss of a part at w; takes one sweep (a pass over its rows of X)."""
    found = part.design.evaluate(part.pair_loss, w, like)
    return _vectors(found), (found.losses, found.gradient)


def evaluate_scores(part: PartKernels, scores: Scores, like: State | None) -> tuple[Kept, Any]:
    """Evaluate the loss of a part at a score vector."""
    found = part.pair_loss.evaluate(scores, like)
    return _vectors(found)[1:], (found.losses,)


def evaluate_along(
    part: PartKernels,
    scores: Scores,
    direction: Scores,
    like: State | None,
    step: float,
    with_gradient: bool,
) -> tuple[Kept, Any]:
    """Evaluate the loss at scores + step · direction; takes one sweep if `with_gradient`."""
    found, slope = part.pair_loss.evaluate_along(scores, step, direction, like)
    gradient = part.design.transpose_dot(found.score_gradient) if with_gradient else None
    return _vectors(found), (found.losses, slope, gradient)


def _vectors(found: Evaluation) -> Kept:
    return found.scores, found.by_query, found.score_gradient, found.state


def hess_vec(part: PartKernels, state: State, v: Floats) -> tuple[Kept, Any]:
    """Keep Xv and report XᵀAXv, with A the Hessian in score space; takes one sweep."""
    product, image = part.design.hess_vec(part.pair_loss, state, v)
    return (image,), product


def hessian(part: PartKernels, state: State) -> tuple[Kept, Any]:
    """Report the Hessian XᵀAX."""
    return (), part.design.hessian(part.pair_loss, state)


def hess_diag(part: PartKernels, state: State) -> tuple[Kept, Any]:
    """Report the diagonal of the Hessian XᵀAX."""
    return (), part.design.hess_diag(part.pair_loss, state)


def add(part: PartKernels, a: Scores, b: Scores, step: float) -> tuple[Kept, Any]:
    """Keep a + step · b."""
    return (part.design.space.add(a, step, b),), None


def same(part: PartKernels, a: Scores) -> tuple[Kept, Any]:
    """Keep the argument unchanged: calling this task adds up a postponed sum."""
    return (a,), None


def active_rows(part: PartKernels) -> tuple[Kept, Any]:
    """Report the rows of X of the active documents, and the indices of these documents."""
    rows, active = part.design.active_rows()
    return (), (rows.copy(), active)


class Survey(NamedTuple):
    """Magnitudes and a sample of the documents of a part, from one sweep."""

    magnitudes: Floats  # the largest absolute value of each feature
    pairs: PairSet  # the sampled pairs, compact
    X: Any  # the rows of their documents
    covered: float  # total to which a sample of the part is scaled up: see PairSet.covered


def survey(
    part: PartKernels, number: int, fraction: float, seed: int, among: int
) -> tuple[Kept, Survey]:
    """Report the Survey of a part: feature magnitudes and a sample; takes one sweep."""
    seed_of_part = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    design = part.design
    pairs = design.pairs
    assert isinstance(pairs, PairSet)
    drawn = pairs.sample(fraction, seed_of_part, among=among)
    rows = drawn.documents.rows
    X = design.rows(np.arange(drawn.n_documents) if rows is None else rows).copy()
    return (), Survey(design.magnitudes(), drawn.compact(), X, pairs.covered)
