"""Problems: the pairs of parts, with their weights, and kernels for them, on a worker.

Native objects do not travel: what a task leaves for later ones can be made again from arrays, after
Dask has moved or spilled it.
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
from marginrank.fit.inputs import choose_pairs, matrix_on
from marginrank.fit.linear import Parameters
from marginrank.fit.sparse import SparseParameters
from marginrank.objective.losses import Loss, get_loss
from marginrank.objective.pair_sets import PairSet
from marginrank.objective.protocols import Design, Evaluation, Matrix, PairLoss, Scores, State
from marginrank.operators.native import NativeDesign, NativeLoss
from marginrank.operators.parts.tasks import PartKernels

LOSSES_KEPT = 2  # whose native pairs are not made again: a solver changes between two at most


class MovableState:
    """A native point, which is made again from its scores where Dask has moved it."""

    def __init__(self, scores: Scores, point: State | None = None) -> None:
        self.scores = aligned(scores)
        self._point = point

    def __reduce__(self) -> Any:
        """Leave the native point behind."""
        return MovableState, (self.scores,)

    def point(self, loss: NativeLoss) -> State:
        """Return the native point."""
        if self._point is None:
            again = loss.evaluate(self.scores, None).state
            self._point = cast(MovableState, again).point(loss)
        return self._point


class MovableLoss(NativeLoss):
    """A loss on pairs whose states Dask can move."""

    def point(self, state: State | None) -> Any:
        return None if state is None else cast(MovableState, state).point(self)

    def evaluation(self, found: Any) -> Evaluation:
        native = super().evaluation(found)
        return native._replace(state=State(MovableState(native.scores, native.state)))


@dataclass
class Problem:
    """The pairs of a part, and X.

    Attributes
    ----------
    data : RankingData
        The documents.
    pairs : PairSet
        Their pairs.
    loss : Loss
        The loss on a pair that the parameters of the fit name.
    columns : ndarray of int64 or None
        The columns of X that count; None for all.
    threads : int
        Number of threads of a task.
    device : str or None
        The device of the worker to compute on; None for the native kernels.
    """

    data: RankingData
    pairs: PairSet
    loss: Loss
    columns: Integers | None = None
    threads: int = 1
    device: str | None = None
    _losses: dict[Loss, PairLoss] = field(default_factory=dict)

    @cached_property
    def matrix(self) -> Matrix:
        """X for the kernels."""
        whole = matrix_on(self.data, self.device)
        return whole if self.columns is None else whole.restrict(self.columns, self.threads)

    @cached_property
    def design(self) -> Design:
        """X with one row per document."""
        return self.matrix.design(self.pairs, self.threads)

    def kernels(self, loss: Loss | None) -> PartKernels:
        """Return the kernels of the part."""
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
        """Leave native objects behind, those that pairs have made for themselves included."""
        pairs = replace(self.pairs)
        return Problem, (self.data, pairs, self.loss, self.columns, self.threads, self.device)


class PairFacts(NamedTuple):
    """What the client learns of the pairs of a part.

    Attributes
    ----------
    n_pairs, n_active_documents : int
        Counts.
    weight : float
        Weight of all pairs.
    query_weight : float
        Weight of the queries that have pairs.
    loss : Loss
        The loss on a pair: with margins by label, theirs is in the pairs.
    """

    n_pairs: int
    n_active_documents: int
    weight: float
    query_weight: float
    loss: Loss


def make_problems(
    parts: Sequence[Part], parameters: Parameters | SparseParameters, labels: Any
) -> list[Problem]:
    """Choose the pairs of some parts; they have no C yet, and no normalisation."""
    margin = {"margin": parameters.margin} if isinstance(parameters, Parameters) else {}
    problems = []
    for part in parts:
        assert part.data is not None
        preferences = choose_pairs(
            part.data,
            get_loss(parameters.loss),
            pair_selection=parameters.pair_selection,
            pair_cost=parameters.pair_cost,
            propensity=part.propensity,
            labels=labels,
            **margin,
        )
        preferences.pairs.check_overflow()
        problems.append(Problem(part.data, *preferences, device=parameters.device))
    return problems


def facts_of_pairs(problems: Sequence[Problem]) -> list[PairFacts]:
    """Return what the client has to know."""
    return [_facts(problem.pairs, problem.loss) for problem in problems]


def _facts(pairs: PairSet, loss: Loss) -> PairFacts:
    has_pairs = pairs.weight_by_query > 0
    return PairFacts(
        pairs.n_pairs,
        pairs.n_active_documents,
        float(np.sum(pairs.weights)),
        float(np.sum(pairs.query_weight[has_pairs])),
        loss,
    )


def weigh_problems(
    problems: Sequence[Problem], factor: float, averaged: bool, n_tasks: int
) -> list[Problem]:
    """Return the same pairs with C and the normalisation in their weights.

    Parameters
    ----------
    problems : sequence of Problem
        Parts on this worker.
    factor : float
        What multiplies the weights of all queries.
    averaged : bool
        Whether the mean over the pairs of each query takes the place of their sum.
    n_tasks : int
        How many tasks a worker has at a time, which share its threads.
    """
    threads = max(get_worker().state.nthreads // n_tasks, 1)
    weighed = []
    for problem in problems:
        pairs = problem.pairs.averaged() if averaged else problem.pairs
        pairs = replace(pairs, query_weight=factor * pairs.query_weight, threads=threads)
        weighed.append(Problem(problem.data, pairs, problem.loss, None, threads, problem.device))
    return weighed


def restrict_problems(problems: Sequence[Problem], columns: Integers) -> list[Problem]:
    """Return the same pairs on some columns of X."""
    return [Problem(p.data, p.pairs, p.loss, columns, p.threads, p.device) for p in problems]


def _size_of_problem(problem: Problem) -> int:
    return size_of_data(problem.data) + problem.pairs.query_weight.nbytes


def _size_of_state(state: Any) -> int:
    return 4 * int(np.asarray(state.scores).nbytes)  # order, levels, curvature, windows; scores


@sizeof.register_lazy("torch")  # type: ignore[untyped-decorator]
def _register_tensors() -> None:
    import torch

    sizeof.register(torch.Tensor, lambda tensor: tensor.numel() * tensor.element_size())


sizeof.register(Problem, _size_of_problem)
sizeof.register(MovableState, _size_of_state)
