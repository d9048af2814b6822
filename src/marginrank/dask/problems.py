"""The data of a fit on a Dask worker: documents, pairs, pair weights and loss.

Compiled objects cannot be pickled. When Dask moves data to another worker or to disk, compiled
objects are left out, and built again on first use.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import numpy as np
from dask.sizeof import sizeof
from distributed import get_worker

from marginrank._utils.alignment import aligned
from marginrank._utils.threads import cached_property
from marginrank._utils.types import Integers
from marginrank.dask.parts import Part, size_of_data
from marginrank.data.ranking_data import RankingData
from marginrank.fit.inputs import check_one_click, choose_pairs, matrix_on
from marginrank.fit.linear import Parameters
from marginrank.fit.sparse import SparseParameters
from marginrank.objective.losses import Loss, get_loss
from marginrank.objective.pair_sets import PairSet
from marginrank.objective.protocols import Design, Evaluation, Matrix, PairLoss, Scores, State
from marginrank.operators.native import NativeDesign, NativeLoss
from marginrank.operators.parts.tasks import PartKernels

LOSSES_KEPT = 2  # losses with cached native pairs: solvers alternate between at most two


class MovableState:
    """Cached data for Hessian products, of which only the score vector is pickled.

    The rest is computed again from the scores on first use.
    """

    def __init__(self, scores: Scores, point: State | None = None) -> None:
        self.scores = aligned(scores)
        self._point = point

    def __reduce__(self) -> Any:
        """Pickle the scores only."""
        return MovableState, (self.scores,)

    def point(self, loss: NativeLoss) -> State:
        if self._point is None:
            again = loss.evaluate(self.scores, None).state
            self._point = cast(MovableState, again).point(loss)
        return self._point


class MovableLoss(NativeLoss):
    """A compiled loss on pairs, whose evaluations can be pickled (as a MovableState)."""

    def point(self, state: State | None) -> Any:
        return None if state is None else cast(MovableState, state).point(self)

    def evaluation(self, found: Any) -> Evaluation:
        native = super().evaluation(found)
        return native._replace(state=State(MovableState(native.scores, native.state)))


@dataclass
class Problem:
    """The documents of some queries, their pairs and the loss, on a Dask worker.

    The objects for products with X and the loss are built on first use.
    """

    data: RankingData
    pairs: PairSet
    loss: Loss
    columns: Integers | None = None  # indices of the columns of X in use; None for all
    threads: int = 1  # number of threads of a task
    device: str | None = None  # None for the native kernels
    _losses: dict[Loss, PairLoss] = field(default_factory=dict)

    @cached_property
    def matrix(self) -> Matrix:
        whole = matrix_on(self.data, self.device)
        return whole if self.columns is None else whole.restrict(self.columns, self.threads)

    @cached_property
    def design(self) -> Design:
        return self.matrix.design(self.pairs, self.threads)

    def kernels(self, loss: Loss | None) -> PartKernels:
        return PartKernels(self.design, None if loss is None else self._pair_loss(loss))

    def _pair_loss(self, loss: Loss) -> PairLoss:
        found = self._losses.get(loss)
        if found is None:
            design = self.design
            if isinstance(design, NativeDesign):
                native = self.pairs.native(loss)
                found = MovableLoss(native, design.space, self.threads)
            else:
                found = design.pair_loss(loss)
            latest = list(self._losses.items())[1 - LOSSES_KEPT :]
            self._losses = dict([*latest, (loss, found)])
        return found

    def __reduce__(self) -> Any:
        """Pickle without compiled objects."""
        pairs = replace(self.pairs)  # a copy without cached native pairs
        return Problem, (self.data, pairs, self.loss, self.columns, self.threads, self.device)


class PairFacts(NamedTuple):
    """Numbers and total weights of the pairs in one part of the data, as sent to the client."""

    n_pairs: int
    n_active_documents: int
    weight: float
    query_weight: float  # total weight of the queries with pairs
    loss: Loss


def make_problems(
    parts: Sequence[Part], parameters: Parameters | SparseParameters, labels: Any
) -> list[Problem]:
    """Dask task: choose the pairs of documents in each of `parts`; return one Problem per part.

    Weights do not include C and the normalization yet, because these depend on totals over the
    cluster.
    """
    problems = []
    for part in parts:
        assert part.data is not None
        check_one_click(part.data, part.propensity, "on a cluster")
        preferences = choose_pairs(
            part.data,
            get_loss(parameters.loss),
            pair_selection=parameters.pair_selection,
            pair_cost=parameters.pair_cost,
            margin=parameters.margin,
            propensity=part.propensity,
            labels=labels,
        )
        preferences.pairs.check_overflow()
        problems.append(Problem(part.data, *preferences, device=parameters.device))
    return problems


def facts_of_pairs(problems: Sequence[Problem]) -> list[PairFacts]:
    """Dask task: return the numbers and total weights of the pairs in each of `problems`."""
    return [
        PairFacts(
            problem.pairs.n_pairs,
            problem.pairs.n_active_documents,
            float(np.sum(problem.pairs.weights)),
            float(np.sum(problem.pairs.query_weight[problem.pairs.weight_by_query > 0])),
            problem.loss,
        )
        for problem in problems
    ]


def weigh_problems(
    problems: Sequence[Problem], factor: float, averaged: bool, n_tasks: int
) -> list[Problem]:
    """Dask task: return the problems with query weights multiplied by `factor`.

    The factor includes C and the normalization. With `averaged`, the loss of a query is the mean
    over its pairs. Each of the `n_tasks` tasks on a worker gets an equal share of its threads.
    """
    threads = max(get_worker().state.nthreads // n_tasks, 1)
    weighed = []
    for problem in problems:
        pairs = problem.pairs.averaged() if averaged else problem.pairs
        pairs = replace(pairs, query_weight=factor * pairs.query_weight, threads=threads)
        weighed.append(Problem(problem.data, pairs, problem.loss, None, threads, problem.device))
    return weighed


def restrict_problems(problems: Sequence[Problem], columns: Integers) -> list[Problem]:
    """Dask task: return the problems with only the given columns of X."""
    return [Problem(p.data, p.pairs, p.loss, columns, p.threads, p.device) for p in problems]


def _size_of_problem(problem: Problem) -> int:
    return size_of_data(problem.data) + problem.pairs.query_weight.nbytes


@sizeof.register_lazy("torch")  # type: ignore[untyped-decorator]
def _register_tensors() -> None:
    import torch

    sizeof.register(torch.Tensor, lambda tensor: tensor.numel() * tensor.element_size())


sizeof.register(Problem, _size_of_problem)
# Four arrays of the size of the scores: scores, order, levels, and curvature with windows.
sizeof.register(MovableState, lambda state: 4 * int(np.asarray(state.scores).nbytes))
