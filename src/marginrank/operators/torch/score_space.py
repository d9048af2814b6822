"""Scores as tensors of float64 on a device of PyTorch, and losses of pairs as functions of them."""

from typing import Any, cast

import torch
from torch import Tensor

from marginrank._utils.types import Floats, Integers
from marginrank.objective.losses import Loss
from marginrank.objective.protocols import (
    Evaluation,
    LossSums,
    PairLoss,
    QueryLosses,
    Scores,
    ScoreSpace,
    State,
)
from marginrank.operators.torch.documents import ScoreLoss
from marginrank.operators.torch.fixed_point import exact_total
from marginrank.operators.torch.level_kernel import LevelKernel, LevelPlan
from marginrank.operators.torch.listed_kernel import ListedKernel, ListedPlan

PairPlan = LevelPlan | ListedPlan


class TorchSpace(ScoreSpace):
    """Tensors on a device."""

    def __init__(self, n_documents: int, device: torch.device) -> None:
        self._n_documents = n_documents
        self._device = device

    def zero(self) -> Scores:
        return Scores(torch.zeros(self._n_documents, dtype=torch.float64, device=self._device))

    def add(self, a: Scores, step: float, b: Scores) -> Scores:
        return Scores(_vector(a) + step * _vector(b))

    def dot(self, a: Scores, b: Scores) -> float:
        return float(exact_total(_vector(a) * _vector(b)))

    def entries(self, a: Scores, documents: Integers | None = None) -> Floats:
        values = _vector(a)
        if documents is not None:
            values = values.index_select(0, torch.as_tensor(documents, device=self._device))
        return to_host(values)

    def vector(self, entries: Floats) -> Scores:
        return Scores(self.tensor(entries))

    def tensor(self, values: Any) -> Tensor:
        """Return an array on the device; parts of X are given their vectors as arrays."""
        return torch.as_tensor(values, device=self._device)


class TorchLoss(PairLoss):
    """A loss on pairs, summed on the device."""

    space: TorchSpace

    def __init__(self, plan: PairPlan, space: TorchSpace, loss: Loss) -> None:
        self.space = space
        self.loss = loss
        self._pairs = (
            LevelKernel(plan, loss) if isinstance(plan, LevelPlan) else ListedKernel(plan, loss)
        )

    def evaluate(self, scores: Scores, like: State | None) -> Evaluation:
        return self.evaluation(_vector(scores), self.at(_vector(scores)), None)

    def hess_vec(self, state: State, u: Scores) -> Scores:
        return Scores(self.curved(state, self.space.tensor(u)))

    def at(self, scores: Tensor) -> ScoreLoss:
        """Return the loss at some scores, on the device."""
        return self._pairs.evaluate(scores)

    def curved(self, state: State, u: Tensor) -> Tensor:
        """Return A u, on the device."""
        there = cast(AtScores, state)
        if there.state is None:
            there.state = self.at(there.scores).state
        return self._pairs.hess_vec(there.state, u)

    def evaluation(self, scores: Tensor, found: ScoreLoss, gradient: Tensor | None) -> Evaluation:
        """Bring sums to the host, all at once."""
        table = found.by_query
        numbers = [exact_total(column) for column in table.T]
        numbers += [torch.count_nonzero(table[:, 0])[None], torch.count_nonzero(found.slopes)[None]]
        values = to_host(torch.cat([*numbers, *([] if gradient is None else [gradient])]))
        return Evaluation(
            scores=Scores(scores),
            losses=LossSums(*values[:3].tolist(), *map(int, values[3:5])),
            by_query=QueryLosses(table),
            score_gradient=Scores(found.slopes),
            state=State(AtScores(scores, found.state)),
            gradient=None if gradient is None else values[5:],
        )


class AtScores:
    """A state, and the scores it belongs to; it is made again from these after it was moved."""

    def __init__(self, scores: Tensor, state: Any = None) -> None:
        self.scores = scores
        self.state = state

    def __reduce__(self) -> Any:
        """Leave all but the scores behind."""
        return AtScores, (self.scores,)


def _vector(scores: Scores) -> Tensor:
    return cast(Tensor, scores)


def to_host(values: Tensor) -> Floats:
    """Return a tensor as an array."""
    array: Floats = values.cpu().numpy()
    return array
