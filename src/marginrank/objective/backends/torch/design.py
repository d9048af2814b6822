"""X on a device of PyTorch, with one row per document; scores are tensors of float64."""

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from marginrank._utils.types import Floats, Integers
from marginrank.objective.backends.native import NativeDesign
from marginrank.objective.backends.torch.documents import ScoreLoss
from marginrank.objective.backends.torch.features import SparseFeatures, by_row
from marginrank.objective.backends.torch.fixed_point import exact_total
from marginrank.objective.backends.torch.level_kernel import LevelKernel, LevelPlan
from marginrank.objective.backends.torch.listed_kernel import ListedKernel, ListedPlan
from marginrank.objective.gram import Rows
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sets import PairSet
from marginrank.objective.protocols import (
    Design,
    Evaluation,
    GroupedLoss,
    LossSums,
    PairLoss,
    QueryLosses,
    Scores,
    ScoreSpace,
    State,
)

if TYPE_CHECKING:
    from marginrank.objective.backends.torch.matrix import TorchMatrix

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
        there = cast(_AtScores, state)
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
            state=State(_AtScores(scores, found.state)),
            gradient=None if gradient is None else values[5:],
        )


class TorchDesign(Design):
    """Products with X on the device."""

    matrix: "TorchMatrix"
    pairs: PairSet
    space: TorchSpace

    def __init__(self, matrix: "TorchMatrix", pairs: PairSet, threads: int) -> None:
        super().__init__(matrix, pairs, threads)
        self._features = matrix.features
        self.space = TorchSpace(pairs.n_documents, self._features.device)
        rows = pairs.documents.rows
        self._rows = None if rows is None else self.space.tensor(rows)

    def pair_loss(self, loss: Loss) -> TorchLoss:
        return TorchLoss(self.matrix.plans.of(self.pairs), self.space, loss)

    def dot(self, w: Floats) -> Scores:
        return Scores(self._dot(self.space.tensor(w)))

    def transpose_dot(self, z: Scores) -> Floats:
        return to_host(self._transpose_dot(self.space.tensor(z)))

    def rows(self, rows: Integers) -> Rows:
        if self.matrix.host is not None:
            return self.matrix.host.rows(rows)
        return Rows.of(self._features.take_rows(rows))

    def evaluate(self, loss: PairLoss, w: Floats, like: State | None) -> Evaluation:
        on_device = cast(TorchLoss, loss)
        scores = self._dot(self.space.tensor(w))
        found = on_device.at(scores)
        return on_device.evaluation(scores, found, self._transpose_dot(found.slopes))

    def hess_vec(self, loss: PairLoss, state: State, v: Floats) -> tuple[Floats, Scores]:
        product, scores = self.product(cast(TorchLoss, loss), state, self.space.tensor(v))
        return to_host(product), Scores(scores)

    def product(self, loss: TorchLoss, state: State, v: Tensor) -> tuple[Tensor, Tensor]:
        """Return XᵀAXv and Xv, on the device."""
        scores = self._dot(v)
        return self._transpose_dot(loss.curved(state, scores)), scores

    def column(self, j: int) -> Scores:
        return Scores(self._by_document(self._features.column(j)))

    def hess_diag(self, loss: PairLoss, state: State) -> Floats:
        """Return the diagonal of XᵀAX; of sparse rows from the host, which is faster."""
        if self.matrix.host is None or not isinstance(self._features, SparseFeatures):
            return super().hess_diag(loss, state)
        native = self._native()
        on_host = native.pair_loss(cast(TorchLoss, loss).loss)
        scores = Scores(to_host(cast(_AtScores, state).scores))
        return native.hess_diag(on_host, on_host.evaluate(scores, None).state)

    def by_group(self, by_query: QueryLosses, z: Scores, n_groups: int) -> GroupedLoss:
        """Return sums over groups of queries, from the host; without one, a sweep per group."""
        table = QueryLosses(to_host(cast(Tensor, by_query)))
        if self.matrix.host is None:
            return super().by_group(table, z, n_groups)
        return self._native().by_group(table, Scores(self.space.entries(z)), n_groups)

    def query_squares(self, by_query: QueryLosses) -> Floats:
        weight = cast(Tensor, by_query)[:, 2].square()
        offsets = self.pairs.documents.offsets
        return to_host(self._features.largest_squares(self._rows, offsets, weight))

    def _dot(self, v: Tensor) -> Tensor:
        return self._by_document(self._features.dot(v))

    def _transpose_dot(self, z: Tensor) -> Tensor:
        return self._features.transpose_dot(by_row(z, self._rows, self._features.shape[0]))

    def _by_document(self, values: Tensor) -> Tensor:
        return values if self._rows is None else values.index_select(0, self._rows)

    def _native(self) -> NativeDesign:
        assert self.matrix.host is not None
        return self.matrix.host.design(self.pairs, self.pairs.threads)


class _AtScores:
    """A state, and the scores it belongs to; it is made again from these after it was moved."""

    def __init__(self, scores: Tensor, state: Any = None) -> None:
        self.scores = scores
        self.state = state

    def __reduce__(self) -> Any:
        """Leave all but the scores behind."""
        return _AtScores, (self.scores,)


def _vector(scores: Scores) -> Tensor:
    return cast(Tensor, scores)


def to_host(values: Tensor) -> Floats:
    """Return a tensor as an array."""
    array: Floats = values.cpu().numpy()
    return array
