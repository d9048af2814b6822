"""Parts of X, tasks (functions of one part) and the interface of executors, which run tasks.

A *part* is some of the queries with all their documents. A *task* is a function of the design and
the loss of one part. It returns a tuple of results to *keep* and one result to *report*. An
*executor* calls a task for
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
    """First argument of a task: the design of one part, and the loss on its pairs, if needed."""

    design: Design
    loss: PairLoss | None

    @property
    def pair_loss(self) -> PairLoss:
        assert self.loss is not None
        return self.loss


@dataclass(frozen=True, eq=False)
class ByPart:
    """A reference to a result that a task has kept: one value per part, stored with the part."""

    handles: tuple[Any, ...]  # one per part: refers to the tuple of results that the task kept
    item: int = 0  # position of this result in the tuples


class Executor(ABC):
    """Interface of an object that calls tasks on the parts of X and stores the kept results."""

    @property
    @abstractmethod
    def bounds(self) -> Integers:
        """Offsets of the parts: part k has the documents from bounds[k] to bounds[k + 1] − 1."""

    @property
    def far(self) -> bool:
        """Whether tasks run on other machines, so calling a task takes longer than most tasks."""
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
        """Call a task on every part.

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
        """Store values[k] with part k, like a kept result; return the reference to the values."""

    @abstractmethod
    def restrict(self, columns: Integers) -> "Executor":
        """Return an executor of the same parts whose X has only the given ascending columns."""


def keep(method: str, part: PartKernels, *arguments: Any) -> tuple[Kept, Any]:
    """Task: call a method of PartKernels, given as a path such as "design.dot".

    Its result is kept.
    """
    return (attrgetter(method)(part)(*arguments),), None


def report(method: str, part: PartKernels, *arguments: Any) -> tuple[Kept, Any]:
    """Task: call a method of PartKernels, given as a path, for example "design.transpose_dot".

    Its result is reported.
    """
    return (), attrgetter(method)(part)(*arguments)


def evaluate(part: PartKernels, like: State | None, w: Floats) -> tuple[Kept, Any]:
    """Task: evaluate the loss at w. Keep its vectors; report its sums and its gradient in w.

    Reads the rows of X of the part. The vectors are the scores, the losses by query, the score
    gradient and the state.
    """
    found = part.design.evaluate(part.pair_loss, w, like)
    return _vectors(found), (found.losses, found.gradient)


def evaluate_scores(part: PartKernels, scores: Scores, like: State | None) -> tuple[Kept, Any]:
    """Task: evaluate the loss at `scores`. Keep its vectors except the scores; report its sums."""
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
    """Task: evaluate the loss at scores + step · direction. Keep its vectors; report sums, slope.

    With `with_gradient`, X is read and the gradient in w is reported, too; otherwise None.
    """
    found, slope = part.pair_loss.evaluate_along(scores, step, direction, like)
    gradient = part.design.transpose_dot(found.score_gradient) if with_gradient else None
    return _vectors(found), (found.losses, slope, gradient)


def _vectors(found: Evaluation) -> Kept:
    return found.scores, found.by_query, found.score_gradient, found.state


def hess_vec(part: PartKernels, state: State, v: Floats) -> tuple[Kept, Any]:
    """Task: keep the scores Xv and report the Hessian-vector product XᵀAXv; reads X.

    A is the Hessian of the loss with respect to the scores.
    """
    product, image = part.design.hess_vec(part.pair_loss, state, v)
    return (image,), product


def hessian(part: PartKernels, state: State) -> tuple[Kept, Any]:
    """Task: report the Hessian XᵀAX of the loss in w; reads X."""
    return (), part.design.hessian(part.pair_loss, state)


def hess_diag(part: PartKernels, state: State) -> tuple[Kept, Any]:
    """Task: report the diagonal of the Hessian XᵀAX of the loss in w; reads X."""
    return (), part.design.hess_diag(part.pair_loss, state)


def add(part: PartKernels, a: Scores, b: Scores, step: float) -> tuple[Kept, Any]:
    """Task: keep the score vector a + step · b."""
    return (part.design.space.add(a, step, b),), None


def same(part: PartKernels, a: Scores) -> tuple[Kept, Any]:
    """Task: keep the argument unchanged. Passing a PostponedSum to it adds up the sum."""
    return (a,), None


def active_rows(part: PartKernels) -> tuple[Kept, Any]:
    """Task: report the rows of X of documents in queries with pairs, and their indices."""
    rows, active = part.design.active_rows()
    return (), (rows.copy(), active)


class Survey(NamedTuple):
    """Feature magnitudes of a part and a random sample of its documents."""

    magnitudes: Floats  # the largest absolute value of each feature
    pairs: PairSet  # the sampled pairs, compact
    X: Any  # the rows of their documents
    covered: float  # total to which a sample of the part is scaled up: see PairSet.covered


def survey(
    part: PartKernels, number: int, fraction: float, seed: int, among: int
) -> tuple[Kept, Survey]:
    """Task: report the :class:`Survey` of a part: feature magnitudes and a sample; reads X.

    `number` is the index of the part. The other parameters are as in :meth:`PairSet.sample`.
    """
    seed_of_part = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    design = part.design
    pairs = design.pairs
    assert isinstance(pairs, PairSet)
    drawn = pairs.sample(fraction, seed_of_part, among=among)
    rows = drawn.documents.rows
    X = design.rows(np.arange(drawn.n_documents) if rows is None else rows).copy()
    return (), Survey(design.magnitudes(), drawn.compact(), X, pairs.covered)
