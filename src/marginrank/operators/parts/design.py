"""Scores, losses and products with X, for a feature matrix in parts on disk or on a cluster.

A part has some of the queries with all their documents. A *task* is a function that is called on
every part; its results either stay with the part (are *kept*) or are returned to the caller
(*reported*). See :mod:`marginrank.operators.parts.tasks`. Results of the parts are added in the
order of the parts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from marginrank._utils.threads import cached_property
from marginrank._utils.types import Floats, Integers
from marginrank.objective.gram import Rows
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sets import ActiveDocuments, PairCounts
from marginrank.objective.protocols import (
    Design,
    Evaluation,
    GroupedLoss,
    LossSums,
    Matrix,
    PairLoss,
    QueryLosses,
    Scores,
    ScoreSpace,
    State,
)
from marginrank.operators.parts import tasks
from marginrank.operators.parts.tasks import ByPart, Executor, PartKernels, Report, Task

MOST_TERMS = 8  # most terms of a postponed sum: each takes memory until the sum is computed


class OrderedSum:
    """A compensated sum of numbers or arrays: its error hardly depends on the number of terms."""

    def __init__(self) -> None:
        self._sum: Floats | None = None
        self._rest: Any = 0.0

    def add(self, values: Any) -> None:
        values = np.asarray(values, dtype=np.float64)
        if self._sum is None:
            self._sum = values.copy()
            return
        total = self._sum + values
        with np.errstate(invalid="ignore"):  # infinity − infinity: handled by `total`
            share = total - self._sum
            self._rest = self._rest + ((self._sum - (total - share)) + (values - share))
        self._sum = total

    @property
    def total(self) -> Floats:
        assert self._sum is not None
        # The rounding error of a sum that is not finite is NaN.
        return np.where(np.isfinite(self._sum), self._sum + self._rest, self._sum)


@dataclass(frozen=True, eq=False)
class PostponedSum:
    """A score vector base + Σ_k steps[k] · vectors[k] that is not added up until it is needed.

    Vectors are stored with the parts of X. On a cluster, a task only for an addition takes too
    long, so the next task that gets the sum as an argument adds it up. The result is the same, bit
    for bit.
    """

    base: ByPart | None = None  # None for zeros
    steps: tuple[float, ...] = ()
    vectors: tuple[ByPart, ...] = ()


def _on_sums(
    task: Task, steps: Sequence[tuple[float, ...] | None], part: PartKernels, *arguments: Any
) -> tuple[tuple[Any, ...], Any]:
    """Return the result of `task` on a part, after adding up the arguments that are postponed sums.

    `steps` has one entry per argument of `task`: the steps of a postponed sum, or None. A postponed
    sum takes several of the `arguments`: its base, then its vectors.
    """
    left = iter(arguments)
    space = part.design.space
    own = []
    for of_one in steps:
        total = next(left)
        if of_one is not None:
            total = space.zero() if total is None else total
            for step in of_one:
                total = space.add(total, step, next(left))
        own.append(total)
    return task(part, *own, *left)


class Calls:
    """Calls functions on every part of the feature matrix X, and combines their results."""

    def __init__(self, make_executor: Callable[[], Executor]) -> None:
        self._make_executor = make_executor

    @cached_property
    def executor(self) -> Executor:
        return self._make_executor()

    def run(
        self,
        task: Task,
        each: Sequence[Any],
        common: Sequence[Any] = (),
        *,
        loss: Loss | None = None,
        n_kept: int = 0,
        report: Report | None = None,
        sweep: bool = False,
    ) -> list[Any]:
        """Call the function `task` on every part of X; return references to the results it keeps.

        `n_kept` is the number of results that `task` keeps with each part. `report` is called with
        the result that it reports for each part.
        """
        if any(isinstance(some, PostponedSum) for some in each):
            steps = [some.steps if isinstance(some, PostponedSum) else None for some in each]
            task = partial(_on_sums, task, steps)
            terms: list[ByPart | None] = []
            for some in each:
                terms += [some.base, *some.vectors] if isinstance(some, PostponedSum) else [some]
            each = terms
        handles = self.executor.run(task, loss, each, common, report=report, sweep=sweep)
        return [ByPart(handles, item) for item in range(n_kept)]

    def sum(
        self, task: Task, each: Sequence[Any], *, loss: Loss | None = None, sweep: bool = True
    ) -> Floats:
        """Call the function `task` on every part of X; return the sum of the reported results."""
        total = OrderedSum()
        self.run(task, each, loss=loss, report=total.add, sweep=sweep)
        return total.total

    def vector(
        self,
        task: Task,
        each: Sequence[Any],
        common: Sequence[Any] = (),
        *,
        loss: Loss | None = None,
        sweep: bool = False,
    ) -> Scores:
        """Call a function on every part of X; return its results, joined into a score vector."""
        (vector,) = self.run(task, each, common, loss=loss, n_kept=1, sweep=sweep)
        return Scores(vector)

    def evaluation(
        self,
        task: Task,
        each: Sequence[Any],
        common: Sequence[Any],
        loss: Loss,
        *,
        scores: Scores | None = None,
        sweep: bool = False,
    ) -> tuple[Evaluation, list[Floats | None]]:
        """Return the loss over all parts of X, and other sums, by calling `task` on each part.

        `task` returns sums over its part, which are added up over all parts: first the fields of
        LossSums, then further numbers or arrays, whose totals are the second result.
        If `scores` is None, `task` also computes the scores, which are stored with the parts.
        """
        losses = [OrderedSum() for _ in LossSums._fields]
        others: list[OrderedSum | None] = []

        def report(found: tuple[Any, ...]) -> None:
            if not others:
                others.extend(None if other is None else OrderedSum() for other in found[1:])
            for total, value in zip([*losses, *others], [*found[0], *found[1:]], strict=True):
                if total is not None:
                    total.add(value)

        n_kept = 4 if scores is None else 3
        kept = self.run(task, each, common, loss=loss, n_kept=n_kept, report=report, sweep=sweep)
        *own, by_query, slopes, state = kept
        value, value_size, slope_size, *counts = (float(total.total) for total in losses)
        n_queries, n_documents = map(int, counts)
        evaluation = Evaluation(
            scores=Scores(own[0]) if scores is None else scores,
            losses=LossSums(value, value_size, slope_size, n_queries, n_documents),
            by_query=QueryLosses(by_query),
            score_gradient=Scores(slopes),
            state=State(state),
        )
        return evaluation, [None if total is None else total.total for total in others]


class PartsSpace(ScoreSpace):
    """Vector operations on scores whose entries are stored with the parts of X."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def zero(self) -> Scores:
        if self._calls.executor.far:
            return Scores(PostponedSum())
        return self._calls.vector(partial(tasks.keep, "design.space.zero"), [])

    def add(self, a: Scores, step: float, b: Scores) -> Scores:
        if not self._calls.executor.far:
            return self._calls.vector(tasks.add, [a, b], [step])
        first = a if isinstance(a, PostponedSum) else PostponedSum(cast(ByPart, a))
        if len(first.steps) >= MOST_TERMS:
            first = PostponedSum(self._computed(first))
        second = self._computed(b) if isinstance(b, PostponedSum) else cast(ByPart, b)
        return Scores(PostponedSum(first.base, (*first.steps, step), (*first.vectors, second)))

    def _computed(self, postponed: PostponedSum) -> ByPart:
        return cast(ByPart, self._calls.vector(tasks.same, [postponed]))

    def dot(self, a: Scores, b: Scores) -> float:
        task = partial(tasks.report, "design.space.dot")
        return float(self._calls.sum(task, [a, b], sweep=False))

    def entries(self, a: Scores, documents: Integers | None = None) -> Floats:
        each = [a]
        if documents is not None:
            bounds = self._calls.executor.bounds
            cuts = pairwise(np.searchsorted(documents, bounds))
            wanted = [documents[i:j] - begin for (i, j), begin in zip(cuts, bounds, strict=False)]
            each.append(Scores(self._calls.executor.place(wanted)))
        found: list[Floats] = []
        self._calls.run(partial(tasks.report, "design.space.entries"), each, report=found.append)
        return np.concatenate(found)

    def vector(self, entries: Floats) -> Scores:
        bounds = pairwise(self._calls.executor.bounds)
        return Scores(self._calls.executor.place([entries[first:last] for first, last in bounds]))


class PartsLoss(PairLoss):
    """The sum of a loss over the pairs of all parts of X, as a function of the scores."""

    def __init__(self, calls: Calls, space: PartsSpace, loss: Loss) -> None:
        self._calls = calls
        self.space = space
        self.loss = loss

    def evaluate(self, scores: Scores, like: State | None) -> Evaluation:
        each = [scores, like]
        found, _ = self._calls.evaluation(tasks.evaluate_scores, each, [], self.loss, scores=scores)
        return found

    def hess_vec(self, state: State, u: Scores) -> Scores:
        task = partial(tasks.keep, "loss.hess_vec")
        return self._calls.vector(task, [state, u], loss=self.loss)

    def evaluate_along(
        self, scores: Scores, step: float, direction: Scores, like: State | None
    ) -> tuple[Evaluation, float]:
        """Return the loss at scores + step · direction, and its slope along `direction`."""
        # A full Newton step is nearly always accepted, and its gradient is needed next. If calling
        # a task is slow, compute the gradient with the same task.
        sweep = self._calls.executor.far and step == 1.0
        found, (slope, gradient) = self._calls.evaluation(
            tasks.evaluate_along, [scores, direction, like], [step, sweep], self.loss, sweep=sweep
        )
        return found._replace(gradient=gradient), float(cast(Floats, slope))


class PartsDesign(Design):
    """A feature matrix in parts, with one row per document; products are sums over the parts."""

    space: PartsSpace

    def __init__(
        self, matrix: Matrix, pairs: PairCounts, threads: int, make_executor: Callable[[], Executor]
    ) -> None:
        super().__init__(matrix, pairs, threads)
        self._calls = Calls(make_executor)
        self.space = PartsSpace(self._calls)

    def pair_loss(self, loss: Loss) -> PartsLoss:
        return PartsLoss(self._calls, self.space, loss)

    def dot(self, w: Floats) -> Scores:
        return self._calls.vector(partial(tasks.keep, "design.dot"), [], [w], sweep=True)

    def transpose_dot(self, z: Scores) -> Floats:
        return self._calls.sum(partial(tasks.report, "design.transpose_dot"), [z])

    def rows(self, rows: Integers) -> Rows:
        raise NotImplementedError("only rows of active documents are loaded into memory")

    def column(self, j: int) -> Scores:
        return self._calls.vector(partial(tasks.keep, "design.column"), [], [j], sweep=True)

    def evaluate(self, loss: PairLoss, w: Floats, like: State | None) -> Evaluation:
        own = _loss(loss)
        found, (gradient,) = self._calls.evaluation(tasks.evaluate, [like], [w], own, sweep=True)
        return found._replace(gradient=gradient)

    def hess_vec(self, loss: PairLoss, state: State, v: Floats) -> tuple[Floats, Scores]:
        product, own = OrderedSum(), _loss(loss)
        (image,) = self._calls.run(
            tasks.hess_vec, [state], [v], loss=own, n_kept=1, report=product.add, sweep=True
        )
        return product.total, Scores(image)

    def hessian(self, loss: PairLoss, state: State) -> Floats:
        return self._calls.sum(tasks.hessian, [state], loss=_loss(loss))

    def hess_diag(self, loss: PairLoss, state: State) -> Floats:
        return self._calls.sum(tasks.hess_diag, [state], loss=_loss(loss))

    def by_group(self, by_query: QueryLosses, z: Scores, n_groups: int) -> GroupedLoss:
        # Each part has its own groups.
        each = -(-n_groups // (self._calls.executor.bounds.size - 1))
        found: list[GroupedLoss] = []
        task = partial(tasks.report, "design.by_group")
        self._calls.run(task, [by_query, z], [each], report=found.append, sweep=True)
        losses, gradients = zip(*found, strict=True)
        return GroupedLoss(np.concatenate(losses), np.concatenate(gradients))

    def query_squares(self, by_query: QueryLosses) -> Floats:
        return self._calls.sum(partial(tasks.report, "design.query_squares"), [by_query])

    def active_rows(self) -> tuple[Rows, ActiveDocuments]:
        found: list[tuple[Any, ActiveDocuments]] = []
        self._calls.run(tasks.active_rows, [], report=found.append, sweep=True)
        rows = Rows.of(stacked([X for X, _ in found]))
        begins = self._calls.executor.bounds[:-1]
        sizes = np.concatenate([np.diff(active.offsets) for _, active in found])
        documents = [active.documents + b for (_, active), b in zip(found, begins, strict=True)]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        return rows, ActiveDocuments(np.concatenate(documents), rows.rows, offsets)


def _loss(loss: PairLoss) -> Loss:
    return cast(PartsLoss, loss).loss


def stacked(matrices: Sequence[Any]) -> Any:
    """Return one matrix with the rows of several dense or several CSR matrices."""
    if sp.issparse(matrices[0]):
        return sp.csr_array(sp.vstack(matrices, format="csr"))
    return np.concatenate(matrices)
