"""Kernels over parts: the same sums, part by part."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np

from marginrank._utils.types import Floats
from marginrank.objective.backends.interface import (
    Evaluation,
    Kernels,
    LossSums,
    QueryLosses,
    Scores,
    State,
)
from marginrank.objective.backends.parts import tasks
from marginrank.objective.backends.parts.executor import ByPart, Executor, Task
from marginrank.objective.backends.parts.ordered_sum import OrderedSum
from marginrank.objective.backends.parts.postponed import PostponedSum, without_sums
from marginrank.objective.backends.parts.stacking import stacked
from marginrank.objective.gram import Gram
from marginrank.objective.grouped_loss import GroupedLoss
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sets import ActiveDocuments


class PartsKernels(Kernels):
    """Sums over pairs and sweeps over X, by an executor."""

    def __init__(self, executor: Executor, loss: Loss) -> None:
        self._executor = executor
        self._loss = loss

    def evaluate(self, w: Floats, like: State | None) -> Evaluation:
        """Look at w: a sweep."""
        told = _Told()
        kept = self._run(tasks.evaluate, [like], [w], n_kept=4, tell=told.add, sweep=True)
        return _evaluation(kept, told.losses, *told.others)

    def evaluate_scores(self, scores: Scores, like: State | None) -> Evaluation:
        """Look at some scores; no sweep."""
        losses = _SumOfLosses()
        kept = self._run(tasks.evaluate_scores, [scores, like], n_kept=3, tell=losses.add)
        return _evaluation([scores, *kept], losses.total, None)

    def evaluate_along(
        self, scores: Scores, step: float, direction: Scores, like: State | None
    ) -> tuple[Evaluation, float]:
        """Look along a direction; one question to every part, and no sweep.

        Except that parts which are far tell the gradient of a whole step of Newton's method along
        with the rest, as such a step is nearly always kept, and its gradient asked for next.
        """
        sweep = self._executor.far and step == 1.0
        told, each = _Told(), [scores, direction, like]
        common = step, sweep
        kept = self._run(tasks.evaluate_along, each, common, n_kept=4, tell=told.add, sweep=sweep)
        slope, gradient = told.others
        return _evaluation(kept, told.losses, gradient), float(cast(Floats, slope))

    def scores(self, w: Floats) -> Scores:
        """Return Xw; a sweep."""
        return self._vector(tasks.scores, [], [w], sweep=True)

    def column(self, j: int) -> Scores:
        """Return a column of X."""
        return self._vector(tasks.column, [], [j], sweep=True)

    def combine(self, z: Scores) -> Floats:
        """Return Xᵀz; a sweep."""
        return self._sum(tasks.combine, [z])

    def by_group(self, by_query: QueryLosses, z: Scores, n_groups: int) -> GroupedLoss:
        """Return the loss and Xᵀz by groups of queries of one part; a sweep."""
        each = -(-n_groups // (self._executor.bounds.size - 1))
        found: list[GroupedLoss] = []
        self._run(tasks.by_group, [by_query, z], [each], tell=found.append, sweep=True)
        return GroupedLoss(
            np.concatenate([grouped.losses for grouped in found]),
            np.concatenate([grouped.gradients for grouped in found]),
        )

    def query_squares(self, by_query: QueryLosses) -> Floats:
        """Return what errors of the queries' gradients sum to, squared; a sweep."""
        return self._sum(tasks.query_squares, [by_query])

    def hess_vec(self, state: State, v: Floats) -> tuple[Floats, Scores]:
        """Return XᵀAXv and Xv; a sweep."""
        product = OrderedSum()
        (image,) = self._run(tasks.hess_vec, [state], [v], n_kept=1, tell=product.add, sweep=True)
        return product.total, Scores(image)

    def hess_vec_scores(self, state: State, u: Scores) -> Scores:
        """Return A u; no sweep."""
        return self._vector(tasks.hess_vec_scores, [state, u])

    def hessian(self, state: State) -> Floats:
        """Return XᵀAX."""
        return self._sum(tasks.hessian, [state])

    def hess_diag(self, state: State) -> Floats:
        """Return the diagonal of XᵀAX."""
        return self._sum(tasks.hess_diag, [state])

    def gram(self, scale: Floats | None = None) -> Gram:
        """Return the inner products of the active documents, whose rows come into memory."""
        found: list[tuple[ActiveDocuments, Any]] = []
        self._run(tasks.active_documents, [], tell=found.append, sweep=True)
        X = stacked([rows for _, rows in found])
        begins = self._executor.bounds[:-1]
        sizes = [np.diff(active.offsets) for active, _ in found]
        return Gram.of_rows(
            X,
            np.arange(X.shape[0]),
            np.arange(X.shape[1]),
            np.concatenate([a.documents + b for (a, _), b in zip(found, begins, strict=True)]),
            np.concatenate([[0], np.cumsum(np.concatenate(sizes))]),
            scale,
        )

    def curved_gram(self, state: State, gram: Gram) -> Floats:
        """Return A K; no sweep."""

        def multiply(u: Floats) -> Floats:
            return self._entries(self.hess_vec_scores(state, self._placed(u)))

        return gram.curved(multiply, int(self._executor.bounds[-1]))

    def select(self, gram: Gram, scores: Scores) -> Floats:
        """Return the entries of the active documents."""
        bounds = self._executor.bounds
        cuts = np.searchsorted(gram.documents, bounds)
        wanted = self._executor.place(
            [
                gram.documents[first:last] - begin
                for (first, last), begin in zip(pairwise(cuts), bounds[:-1], strict=True)
            ]
        )
        return self._entries(scores, [wanted])

    def combine_selected(self, gram: Gram, values: Floats) -> Floats:
        """Return XᵀJc; a sweep."""
        return self.combine(self._placed(gram.spread(values, int(self._executor.bounds[-1]))))

    def zero(self) -> Scores:
        """Return the scores of w = 0."""
        return Scores(PostponedSum()) if self._executor.far else self._vector(tasks.zero, [])

    def add(self, a: Scores, step: float, b: Scores) -> Scores:
        """Return a + step · b."""
        if not self._executor.far:
            return self._vector(tasks.add, [a, b], [step])
        first = a if isinstance(a, PostponedSum) else PostponedSum(cast(ByPart, a))
        if first.is_long:
            first = PostponedSum(self._added_up(first))
        second = self._added_up(b) if isinstance(b, PostponedSum) else cast(ByPart, b)
        return Scores(first.plus(step, second))

    def _added_up(self, postponed: PostponedSum) -> ByPart:
        return cast(ByPart, self._vector(tasks.same, [postponed]))

    def dot(self, a: Scores, b: Scores) -> float:
        """Return aᵀb."""
        return float(self._sum(tasks.dot, [a, b], sweep=False))

    def spread(self, a: Scores) -> float:
        """Return the standard deviation of the entries."""
        found: list[tasks.Moments] = []
        self._run(tasks.moments, [a], tell=found.append)
        counts, means, squares = (np.array(column) for column in zip(*found, strict=True))
        total = counts.sum()
        mean = np.sum(counts * means) / total
        return float(np.sqrt((squares.sum() + np.sum(counts * (means - mean) ** 2)) / total))

    def is_finite(self, a: Scores) -> bool:
        """Tell whether all entries are numbers."""
        found: list[bool] = []
        self._run(tasks.is_finite, [a], tell=found.append)
        return all(found)

    def _run(
        self,
        task: Task,
        each: Sequence[Any],
        common: Sequence[Any] = (),
        *,
        n_kept: int = 0,
        tell: Any = None,
        sweep: bool = False,
    ) -> list[ByPart]:
        call = without_sums(task, each)
        handles = self._executor.run(
            call.task, self._loss, call.each, common, tell=tell, sweep=sweep
        )
        return [ByPart(handles, item) for item in range(n_kept)]

    def _sum(self, task: Task, each: Sequence[Any], *, sweep: bool = True) -> Floats:
        total = OrderedSum()
        self._run(task, each, tell=total.add, sweep=sweep)
        return total.total

    def _vector(
        self, task: Task, each: Sequence[Any], common: Sequence[Any] = (), *, sweep: bool = False
    ) -> Scores:
        (vector,) = self._run(task, each, common, n_kept=1, sweep=sweep)
        return Scores(vector)

    def _placed(self, values: Floats) -> Scores:
        """Give every part its entries of a vector, where documents are few."""
        bounds = pairwise(self._executor.bounds)
        return Scores(self._executor.place([values[first:last] for first, last in bounds]))

    def _entries(self, scores: Scores, which: Sequence[ByPart] = ()) -> Floats:
        """Return the entries of some or all documents, where these are few."""
        found: list[Floats] = []
        self._run(tasks.entries, [scores, *which], tell=found.append)
        return np.concatenate(found)


def _evaluation(kept: Sequence[Any], losses: LossSums, gradient: Floats | None) -> Evaluation:
    scores, by_query, slopes, state = kept
    return Evaluation(
        scores=Scores(scores),
        losses=losses,
        by_query=QueryLosses(by_query),
        score_gradient=Scores(slopes),
        state=State(state),
        gradient=gradient,
    )


class _SumOfLosses:
    """Adds up the losses of parts."""

    def __init__(self) -> None:
        self._sums = [OrderedSum() for _ in LossSums._fields]

    def add(self, losses: LossSums) -> None:
        """Add those of a part."""
        for total, value in zip(self._sums, losses, strict=True):
            total.add(value)

    @property
    def total(self) -> LossSums:
        """The losses of all."""
        value, value_size, slope_size, *counts = (float(total.total) for total in self._sums)
        n_queries, n_documents = map(int, counts)
        return LossSums(value, value_size, slope_size, n_queries, n_documents)


class _Told:
    """Adds up losses of parts, and what they tell besides."""

    def __init__(self) -> None:
        self._losses = _SumOfLosses()
        self._others: list[OrderedSum | None] = []

    def add(self, told: tuple[Any, ...]) -> None:
        """Add what a part tells: its losses, and then sums, or None where there is none."""
        losses, *others = told
        self._losses.add(losses)
        if not self._others:
            self._others = [None if other is None else OrderedSum() for other in others]
        for total, other in zip(self._others, others, strict=True):
            if total is not None:
                total.add(other)

    @property
    def losses(self) -> LossSums:
        """The losses of all."""
        return self._losses.total

    @property
    def others(self) -> list[Floats | None]:
        """The sums of the rest."""
        return [None if total is None else total.total for total in self._others]
