"""What an objective asks for, computed on a device of PyTorch."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from marginrank._utils.types import Floats, Integers
from marginrank.objective.backends.interface import (
    Evaluation,
    Kernels,
    LossSums,
    PartKernels,
    QueryLosses,
    Scores,
    State,
)
from marginrank.objective.backends.native import NativeKernels, NativeMatrix
from marginrank.objective.backends.torch.features import Features, SparseFeatures, by_row
from marginrank.objective.backends.torch.fixed_point import exact_total
from marginrank.objective.backends.torch.level_kernel import LevelKernel, LevelPlan
from marginrank.objective.backends.torch.listed_kernel import ListedKernel, ListedPlan
from marginrank.objective.backends.torch.score_loss import ScoreLoss
from marginrank.objective.gram import Gram
from marginrank.objective.grouped_loss import GroupedLoss
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sets import PairSet

Plan = LevelPlan | ListedPlan


class TorchKernels(Kernels, PartKernels):
    """Sums over pairs and sweeps over X, both on the device; scores are tensors of float64."""

    def __init__(
        self, features: Features, host: NativeMatrix | None, pairs: PairSet, plan: Plan, loss: Loss
    ) -> None:
        self._features = features
        self._host = host
        self._pair_set = pairs
        self._loss = loss
        self._pairs = (
            LevelKernel(plan, loss) if isinstance(plan, LevelPlan) else ListedKernel(plan, loss)
        )
        rows = pairs.documents.rows
        self._rows = None if rows is None else self._tensor(rows)

    @property
    def pair_set(self) -> PairSet:
        """The pairs."""
        return self._pair_set

    def evaluate(self, w: Floats, like: State | None) -> Evaluation:
        """Look at w: a sweep."""
        scores = self._dot(self._tensor(w))
        found = self._pairs.evaluate(scores)
        return self._evaluation(scores, found, self._transpose_dot(found.slopes))

    def evaluate_scores(self, scores: Scores, like: State | None) -> Evaluation:
        """Look at some scores; no sweep."""
        return self._evaluation(_vector(scores), self._pairs.evaluate(_vector(scores)), None)

    def _evaluation(self, scores: Tensor, found: ScoreLoss, gradient: Tensor | None) -> Evaluation:
        """Bring sums to the host, all at once."""
        table = found.by_query
        numbers = [exact_total(column) for column in table.T]
        numbers += [torch.count_nonzero(table[:, 0])[None], torch.count_nonzero(found.slopes)[None]]
        values = _host(torch.cat([*numbers, *([] if gradient is None else [gradient])]))
        return Evaluation(
            scores=Scores(scores),
            losses=LossSums(*values[:3].tolist(), *map(int, values[3:5])),
            by_query=QueryLosses(table),
            score_gradient=Scores(found.slopes),
            state=State(_AtScores(scores, found.state)),
            gradient=None if gradient is None else values[5:],
        )

    def scores(self, w: Floats) -> Scores:
        """Return Xw; a sweep."""
        return Scores(self._dot(self._tensor(w)))

    def column(self, j: int) -> Scores:
        """Return a column of X."""
        return Scores(self._by_document(self._features.column(j)))

    def combine(self, z: Scores) -> Floats:
        """Return Xᵀz; a sweep. Parts of X are given their z as an array."""
        return _host(self._transpose_dot(self._tensor(z)))

    def by_group(self, by_query: QueryLosses, z: Scores, n_groups: int) -> GroupedLoss:
        """Return the loss and Xᵀz by groups of neighbouring queries.

        A sweep of the host; on the device, where X is there alone, one for each group.
        """
        table = _host(_table(by_query))
        if self._host is not None:
            slopes = Scores(self.entries(z))
            return self._native(self._host).by_group(QueryLosses(table), slopes, n_groups)
        documents = self._pair_set.documents
        n_groups = min(n_groups, documents.n_queries)
        queries = np.linspace(0, documents.n_queries, n_groups + 1).astype(np.int64)
        gradients = []
        for first, last in pairwise(documents.offsets[queries]):
            alone = torch.zeros_like(_vector(z))
            alone[first:last] = _vector(z)[first:last]
            gradients.append(self._transpose_dot(alone))
        losses = np.add.reduceat(table[:, 0], queries[:-1])
        return GroupedLoss(losses, _host(torch.stack(gradients)))

    def query_squares(self, by_query: QueryLosses) -> Floats:
        """Return what errors of the queries' gradients sum to, squared; a sweep."""
        weight = _table(by_query)[:, 2].square()
        offsets = self._pair_set.documents.offsets
        return _host(self._features.largest_squares(self._rows, offsets, weight))

    def hess_vec(self, state: State, v: Floats) -> tuple[Floats, Scores]:
        """Return XᵀAXv and Xv; a sweep."""
        product, scores = self.product(state, self._tensor(v))
        return _host(product), Scores(scores)

    def product(self, state: State, v: Tensor) -> tuple[Tensor, Tensor]:
        """Return XᵀAXv and Xv, without a word to the host."""
        scores = self._dot(v)
        return self._transpose_dot(self._curved(state, scores)), scores

    def hess_vec_scores(self, state: State, u: Scores) -> Scores:
        """Return A u; no sweep. Parts of X are given their u as an array."""
        return Scores(self._curved(state, self._tensor(u)))

    def hessian(self, state: State) -> Floats:
        """Return XᵀAX, a column after the other."""
        columns = [self._transpose_dot(image) for _, image in self._images(state)]
        return _host(torch.stack(columns, dim=1))

    def hess_diag(self, state: State) -> Floats:
        """Return the diagonal of XᵀAX; on the host, which knows how, for sparse rows."""
        if self._host is not None and isinstance(self._features, SparseFeatures):
            native = self._native(self._host)
            there = native.evaluate_scores(Scores(_host(cast(_AtScores, state).scores)), None)
            return native.hess_diag(there.state)
        return _host(torch.cat([exact_total(x * image) for x, image in self._images(state)]))

    def _images(self, state: State) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield each column of X, and A times it."""
        for j in range(self._features.shape[1]):
            x = _vector(self.column(j))
            yield x, self._curved(state, x)

    def gram(self, scale: Floats | None = None) -> Gram:
        """Return the inner products of the active documents, made on the host."""
        active = self._pair_set.active_documents
        rows = self.take_rows(active.rows)
        everything = np.arange(active.rows.size), np.arange(self._features.shape[1])
        return Gram.of_rows(rows, *everything, active.documents, active.offsets, scale)

    def curved_gram(self, state: State, gram: Gram) -> Floats:
        """Return A K; no sweep."""
        return gram.curved(
            lambda u: _host(self._curved(state, self._tensor(u))), self._pair_set.n_documents
        )

    def select(self, gram: Gram, scores: Scores) -> Floats:
        """Return the entries of the active documents."""
        return _host(_vector(scores).index_select(0, self._tensor(gram.documents)))

    def combine_selected(self, gram: Gram, values: Floats) -> Floats:
        """Return XᵀJc; a sweep."""
        return self.combine(Scores(self._tensor(gram.spread(values, self._pair_set.n_documents))))

    def entries(self, a: Scores) -> Floats:
        """Return the entries of a vector."""
        return _host(_vector(a))

    def magnitudes(self) -> Floats:
        """Return the largest absolute value of each feature."""
        return _host(self._features.magnitudes())

    def take_rows(self, rows: Integers) -> Any:
        """Return some rows of X."""
        return (self._host or self._features).take_rows(rows)

    def zero(self) -> Scores:
        """Return the scores of w = 0."""
        n = self._pair_set.n_documents
        return Scores(torch.zeros(n, dtype=torch.float64, device=self._features.device))

    def add(self, a: Scores, step: float, b: Scores) -> Scores:
        """Return a + step · b."""
        return Scores(_vector(a) + step * _vector(b))

    def dot(self, a: Scores, b: Scores) -> float:
        """Return aᵀb."""
        return float(exact_total(_vector(a) * _vector(b)))

    def spread(self, a: Scores) -> float:
        """Return the standard deviation of the entries."""
        values = _vector(a)
        centred = values - exact_total(values) / values.numel()
        return float((exact_total(centred.square()) / values.numel()).sqrt())

    def is_finite(self, a: Scores) -> bool:
        """Tell whether all entries are numbers."""
        return bool(torch.isfinite(_vector(a)).all())

    def _dot(self, v: Tensor) -> Tensor:
        return self._by_document(self._features.dot(v))

    def _transpose_dot(self, z: Tensor) -> Tensor:
        return self._features.transpose_dot(by_row(z, self._rows, self._features.shape[0]))

    def _by_document(self, values: Tensor) -> Tensor:
        return values if self._rows is None else values.index_select(0, self._rows)

    def _curved(self, state: State, u: Tensor) -> Tensor:
        there = cast(_AtScores, state)
        if there.state is None:
            there.state = self._pairs.evaluate(there.scores).state
        return self._pairs.hess_vec(there.state, u)

    def _native(self, host: NativeMatrix) -> NativeKernels:
        return host.kernels(self._pair_set, self._loss, self._pair_set.threads)

    def _tensor(self, values: Any) -> Tensor:
        return torch.as_tensor(values, device=self._features.device)


class _AtScores:
    """A state, and the scores it belongs to; it is made again from these where it has travelled."""

    def __init__(self, scores: Tensor, state: Any = None) -> None:
        self.scores = scores
        self.state = state

    def __reduce__(self) -> Any:
        """Leave all but the scores behind."""
        return _AtScores, (self.scores,)


def _vector(scores: Scores) -> Tensor:
    return cast(Tensor, scores)


def _table(by_query: QueryLosses) -> Tensor:
    return cast(Tensor, by_query)


def _host(values: Tensor) -> Floats:
    array: Floats = values.cpu().numpy()
    return array
