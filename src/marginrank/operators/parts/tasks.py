"""Functions (tasks) that compute on one part of X, and the interface of objects that run them.

A *part* has some of the queries with all their documents. A *task* is a function of the feature
matrix and the loss of one part. It returns a tuple of results to *keep* and one result to *report*.
An *executor* calls a task for every part, in this process or in others. Kept results, such as
vectors with one entry per document, stay with the part and are passed to its later tasks. Reported
results are small and are returned to the caller. The division into parts depends only on the data,
so results do not depend on the executor.
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
    """The documents and features of one part of the data, and the loss on its pairs, if needed."""

    design: Design
    loss: PairLoss | None

    @property
    def pair_loss(self) -> PairLoss:
        assert self.loss is not None
        return self.loss


@dataclass(frozen=True, eq=False)
class ByPart:
    """A reference to a result that is stored with the parts of X: one value per part."""

    handles: tuple[Any, ...]  # one per part: refers to the tuple of results that the task kept
    item: int = 0  # position of this result in the tuples


class Executor(ABC):
    """Interface of objects that call functions on all parts of X and store results there."""

    @property
    @abstractmethod
    def bounds(self) -> Integers:
        """Offsets of the parts of X: part k has documents bounds[k] to bounds[k + 1] − 1."""

    @property
    def far(self) -> bool:
        """Whether the parts of X are on other machines, so calls take longer than computing."""
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
        """Call the function `task` on every part of X.

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
        """Store values[k] with part k of X; return a reference to all values."""

    @abstractmethod
    def restrict(self, columns: Integers) -> "Executor":
        """Return an executor for the same parts of X with only the given ascending columns."""


def keep(method: str, part: PartKernels, *arguments: Any) -> tuple[Kept, Any]:
    """Task: call a method, such as "design.dot", on one part of X; its result stays with the part.

    `method` is an attribute path that begins at PartKernels.
    """
    return (attrgetter(method)(part)(*arguments),), None


def report(method: str, part: PartKernels, *arguments: Any) -> tuple[Kept, Any]:
    """Task: call a method, such as "design.transpose_dot", on one part of X; report its result.

    `method` is an attribute path that begins at PartKernels. The result is returned to the caller.
    """
    return (), attrgetter(method)(part)(*arguments)


def evaluate(part: PartKernels, like: State | None, w: Floats) -> tuple[Kept, Any]:
    """Task: evaluate the loss and its gradient at w on one part of X; reads its rows.

    Vectors stay with the part: the scores, the losses by query, the gradient with respect to scores
    and the data for Hessian products. Sums and the gradient with respect to w are reported to the
    caller.
    """
    found = part.design.evaluate(part.pair_loss, w, like)
    return _vectors(found), (found.losses, found.gradient)


def evaluate_scores(part: PartKernels, scores: Scores, like: State | None) -> tuple[Kept, Any]:
    """Task: evaluate the loss at `scores` on one part of X, without reading its rows.

    Vectors stay with the part; sums are reported to the caller.
    """
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
    """Task: evaluate the loss on one part of X at scores + step · direction.

    Vectors stay with the part; sums and the slope along `direction` are reported to the caller.
    With `with_gradient`, X is read and the gradient in w is reported, too; otherwise None.
    """
    found, slope = part.pair_loss.evaluate_along(scores, step, direction, like)
    gradient = part.design.transpose_dot(found.score_gradient) if with_gradient else None
    return _vectors(found), (found.losses, slope, gradient)


def _vectors(found: Evaluation) -> Kept:
    return found.scores, found.by_query, found.score_gradient, found.state


def hess_vec(part: PartKernels, state: State, v: Floats) -> tuple[Kept, Any]:
    """Task: compute a Hessian-vector product and the scores Xv on one part of X; reads its rows.

    The scores stay with the part; the product XᵀAXv is reported. A is the Hessian of the loss with
    respect to the scores.
    """
    product, image = part.design.hess_vec(part.pair_loss, state, v)
    return (image,), product


def hessian(part: PartKernels, state: State) -> tuple[Kept, Any]:
    """Task: report the Hessian of the loss with respect to w for one part of X; reads its rows."""
    return (), part.design.hessian(part.pair_loss, state)


def hess_diag(part: PartKernels, state: State) -> tuple[Kept, Any]:
    """Task: report the diagonal of the Hessian of the loss for one part of X; reads its rows."""
    return (), part.design.hess_diag(part.pair_loss, state)


def add(part: PartKernels, a: Scores, b: Scores, step: float) -> tuple[Kept, Any]:
    """Task: compute the vector a + step · b for one part of X, and keep it there."""
    return (part.design.space.add(a, step, b),), None


def same(part: PartKernels, a: Scores) -> tuple[Kept, Any]:
    """Task: store the argument with the part of X; a PostponedSum is added up first."""
    return (a,), None


def active_rows(part: PartKernels) -> tuple[Kept, Any]:
    """Task: report the rows of X, and their indices, for documents in queries with pairs."""
    rows, active = part.design.active_rows()
    return (), (rows.copy(), active)


class Survey(NamedTuple):
    """The largest absolute value of each feature in one part of X, and a sample of the part."""

    magnitudes: Floats  # the largest absolute value of each feature
    pairs: PairSet  # the sampled pairs, compact
    X: Any  # the rows of their documents
    covered: float  # total to which a sample of the part is scaled up: see PairSet.covered


def survey(
    part: PartKernels, number: int, fraction: float, seed: int, among: int
) -> tuple[Kept, Survey]:
    """Task: report the largest value of each feature and a random sample of one part of X.

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
