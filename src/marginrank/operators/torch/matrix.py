"""The PyTorch backend: feature matrix, score vectors and losses as tensors on a device."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from marginrank._utils.types import Floats, Integers
from marginrank.data.ranking_data import RankingData
from marginrank.objective.gram import Rows
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sets import PairCounts, PairSet
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
    SharedSweeps,
    State,
)
from marginrank.operators.native import NativeDesign, NativeMatrix, native_matrix
from marginrank.operators.torch.documents import ScoreLoss
from marginrank.operators.torch.features import (
    TILE_ENTRIES,
    DenseFeatures,
    DeviceFeatures,
    SparseFeatures,
    by_row,
)
from marginrank.operators.torch.fixed_point import exact_total
from marginrank.operators.torch.plans import PairPlan, Plans, Total, runs_triton

DTYPES = (torch.float32, torch.float64)
# Estimated memory per document: points that a solver holds, and an evaluation.
POINTS = 2
DOCUMENT_BYTES, BIT_BYTES = 100, 12  # bytes of a point; bytes for each bit of a level
EVALUATION_BYTES = 400
N_TOTALS = 5  # number of fields of LossSums
COLUMNS_AT_ONCE = 16  # columns of a Hessian that one product with X computes


class TorchSpace(ScoreSpace):
    """Vector operations on scores that are float64 tensors on a PyTorch device."""

    def __init__(self, n_documents: int, device: torch.device, total: Total = exact_total) -> None:
        self._n_documents = n_documents
        self._device = device
        self._total = total

    def zero(self) -> Scores:
        return Scores(torch.zeros(self._n_documents, dtype=torch.float64, device=self._device))

    def add(self, a: Scores, step: float, b: Scores) -> Scores:
        return Scores(_vector(a) + step * _vector(b))  # torch.add(alpha=) may round only once

    def dot(self, a: Scores, b: Scores) -> float:
        return float(self.product(a, b))

    def product(self, a: Scores, b: Scores) -> Tensor:
        """Return the inner product aᵀb of two score vectors, as a tensor with one entry."""
        return self._total(_vector(a) * _vector(b))

    def entries(self, a: Scores, documents: Integers | None = None) -> Floats:
        values = _vector(a)
        if documents is not None:
            values = values.index_select(0, torch.as_tensor(documents, device=self._device))
        return _to_host(values)

    def vector(self, entries: Floats) -> Scores:
        return Scores(self.tensor(entries))

    def tensor(self, values: Any) -> Tensor:
        """Return an array or tensor on the PyTorch device, copied unless it is already there."""
        return torch.as_tensor(values, device=self._device)


class TorchLoss(PairLoss):
    """The sum of a loss over pairs as a function of the scores, computed on a PyTorch device."""

    space: TorchSpace

    def __init__(self, plan: PairPlan, space: TorchSpace, loss: Loss) -> None:
        self.space = space
        self.loss = loss
        self._pairs = plan.kernel(loss)

    def evaluate(self, scores: Scores, like: State | None) -> Evaluation:
        return self.evaluation(_vector(scores), self.at(_vector(scores)), None)

    def evaluate_along(
        self, scores: Scores, step: float, direction: Scores, like: State | None
    ) -> tuple[Evaluation, float]:
        there = self.space.add(scores, step, direction)
        found = self.at(_vector(there))
        # Pass the slope as if it were the gradient, to copy it to the host with the totals.
        slope = self.space.product(Scores(found.slopes), direction)
        evaluation = self.evaluation(_vector(there), found, slope)
        assert evaluation.gradient is not None
        return evaluation._replace(gradient=None), float(evaluation.gradient[0])

    def hess_vec(self, state: State, u: Scores) -> Scores:
        return Scores(self.curved(state, self.space.tensor(u)))

    def at(self, scores: Tensor) -> ScoreLoss:
        return self._pairs.evaluate(scores)

    def curved(self, state: State, u: Tensor) -> Tensor:
        """Return Au for the Hessian A of the loss with respect to the scores, as a tensor."""
        there = cast(AtScores, state)
        if there.state is None:
            there.state = self.at(there.scores).state
        return self._pairs.hess_vec(there.state, u)

    def evaluation(self, scores: Tensor, found: ScoreLoss, gradient: Tensor | None) -> Evaluation:
        """Return a loss on the device as an Evaluation; all sums are copied to the host at once."""
        totals = found.totals
        values = _to_host(totals if gradient is None else torch.cat([totals, gradient]))
        return self.from_host(scores, found, values)

    def from_host(self, scores: Tensor, found: ScoreLoss, values: Floats) -> Evaluation:
        """Return a loss on the device as an Evaluation, with sums already copied to the host.

        `values` are the totals of the loss, then the gradient, if there is one.
        """
        return Evaluation(
            scores=Scores(scores),
            losses=LossSums(*values[:3].tolist(), *map(int, values[3:5])),
            by_query=QueryLosses(found.by_query),
            score_gradient=Scores(found.slopes),
            state=State(AtScores(scores, found.state)),
            gradient=values[5:] if values.size > N_TOTALS else None,
        )


class AtScores:
    """Scores, and cached data for Hessian products at these scores.

    Only the scores are pickled; the other data are recomputed from them.
    """

    def __init__(self, scores: Tensor, state: Any = None) -> None:
        self.scores = scores
        self.state = state

    def __reduce__(self) -> Any:
        return AtScores, (self.scores,)


def _vector(scores: Scores) -> Tensor:
    return cast(Tensor, scores)


def _to_host(values: Tensor) -> Floats:
    array: Floats = values.cpu().numpy()
    return array


@dataclass(frozen=True)
class TorchMatrix(Matrix):
    """A feature matrix, or some of its columns, on a PyTorch device and in host memory."""

    features: DeviceFeatures
    host: NativeMatrix
    plans: Plans = field(repr=False)

    @classmethod
    def of(
        cls,
        data: RankingData,
        device: str | torch.device = "cpu",
        tensor: Tensor | None = None,
        has_triton: bool | None = None,
    ) -> "TorchMatrix":
        """Return the feature matrix of `data`, copied to a PyTorch device.

        Nothing is copied if `tensor` has X on that device, in float32 or float64. Triton kernels
        are used if Triton is installed and the device is a GPU; `has_triton` overrides this.
        """
        where = torch.device(device)
        if has_triton is None:
            has_triton = runs_triton(where)
        X = data.X
        if tensor is not None and tensor.device == where and tensor.dtype in DTYPES:
            features = features_of(tensor, has_triton)
        elif sp.issparse(X):
            features = SparseFeatures.of(X, where)
        else:
            features = features_of(_dense(X, where), has_triton)
        return cls(features, native_matrix(data), Plans(where, has_triton))

    @property
    def shape(self) -> tuple[int, int]:
        return self.features.shape

    @property
    def n_entries(self) -> int:
        return self.features.n_entries

    def magnitudes(self, threads: int) -> Floats:
        return self.host.magnitudes(threads)

    def restrict(self, columns: Integers, threads: int) -> "TorchMatrix":
        host = self.host.restrict(columns, threads)
        return TorchMatrix(self.features.restrict(columns), host, self.plans)

    def on_host(self) -> NativeMatrix:
        return self.host

    def design(self, pairs: PairCounts, threads: int) -> "TorchDesign":
        return TorchDesign(self, cast(PairSet, pairs), threads)

    def sample(
        self, pairs: PairCounts, fraction: float, seed: int, threads: int
    ) -> tuple[NativeMatrix, PairSet]:
        return self.host, cast(PairSet, pairs).sample(fraction, seed)


class TorchDesign(Design):
    """A feature matrix on a PyTorch device with one row per document of a pair set."""

    matrix: TorchMatrix
    pairs: PairSet
    space: TorchSpace

    def __init__(self, matrix: TorchMatrix, pairs: PairSet, threads: int) -> None:
        super().__init__(matrix, pairs, threads)
        self._features = matrix.features
        self.space = TorchSpace(pairs.n_documents, self._features.device, matrix.plans.total)
        rows = pairs.documents.rows
        self._rows = None if rows is None else self.space.tensor(rows)

    def pair_loss(self, loss: Loss) -> TorchLoss:
        return TorchLoss(self.matrix.plans.of(self.pairs), self.space, loss)

    def dot(self, w: Floats) -> Scores:
        return Scores(self._dot(self.space.tensor(w)))

    def transpose_dot(self, z: Scores) -> Floats:
        return _to_host(self._transpose_dot(self.space.tensor(z)))

    def rows(self, rows: Integers) -> Rows:
        return self.matrix.host.rows(rows)

    def evaluate(self, loss: PairLoss, w: Floats, like: State | None) -> Evaluation:
        on_device = cast(TorchLoss, loss)
        scores = self._dot(self.space.tensor(w))
        found = on_device.at(scores)
        return on_device.evaluation(scores, found, self._transpose_dot(found.slopes))

    def hess_vec(self, loss: PairLoss, state: State, v: Floats) -> tuple[Floats, Scores]:
        product, scores = self.product(cast(TorchLoss, loss), state, self.space.tensor(v))
        return _to_host(product), Scores(scores)

    def product(self, loss: TorchLoss, state: State, v: Tensor) -> tuple[Tensor, Tensor]:
        """Return a Hessian-vector product for v, and the scores Xv, as tensors."""
        scores = self._dot(v)
        return self._transpose_dot(loss.curved(state, scores)), scores

    def column(self, j: int) -> Scores:
        return Scores(self._by_document(self._features.column(j)))

    def hessian(self, loss: PairLoss, state: State) -> Floats:
        n, on_device = self._features.shape[1], cast(TorchLoss, loss)
        found = []
        for first in range(0, n, COLUMNS_AT_ONCE):
            some = range(first, min(first + COLUMNS_AT_ONCE, n))
            images = [on_device.curved(state, _vector(self.column(j))) for j in some]
            found.append(self.transpose_dots(images))
        return _to_host(torch.cat(found).T)

    def hess_diag(self, loss: PairLoss, state: State) -> Floats:
        # For sparse rows the native kernel is faster.
        if not isinstance(self._features, SparseFeatures):
            return super().hess_diag(loss, state)
        native = self._native()
        on_host = native.pair_loss(cast(TorchLoss, loss).loss)
        scores = Scores(_to_host(cast(AtScores, state).scores))
        return native.hess_diag(on_host, on_host.evaluate(scores, None).state)

    def by_group(self, by_query: QueryLosses, z: Scores, n_groups: int) -> GroupedLoss:
        table = QueryLosses(_to_host(cast(Tensor, by_query)))
        return self._native().by_group(table, Scores(self.space.entries(z)), n_groups)

    def query_squares(self, by_query: QueryLosses) -> Floats:
        weight = cast(Tensor, by_query)[:, 2].square()
        offsets = self.pairs.documents.offsets
        return _to_host(self._features.largest_squares(self._rows, offsets, weight))

    def share(self, designs: Sequence[Design]) -> "TorchSharedSweeps":
        return TorchSharedSweeps(designs)

    def _dot(self, v: Tensor) -> Tensor:
        return self._by_document(self._features.dot(v))

    def _transpose_dot(self, z: Tensor) -> Tensor:
        return self._features.transpose_dot(by_row(z, self._rows, self._features.shape[0]))

    def dots(self, vs: Sequence[Floats]) -> Tensor:
        """Return a tensor with one row of scores Xv per vector v in `vs`."""
        return self._by_document(self._features.dots(self.space.tensor(np.stack(vs))))

    def transpose_dots(self, zs: Sequence[Tensor]) -> Tensor:
        """Return a tensor with one row Xᵀz per vector z in `zs`; z has one entry per document."""
        together = by_row(torch.stack(list(zs)), self._rows, self._features.shape[0])
        return self._features.transpose_dots(together)

    def _by_document(self, values: Tensor) -> Tensor:
        return values if self._rows is None else values.index_select(-1, self._rows)

    def _native(self) -> NativeDesign:
        return self.matrix.host.design(self.pairs, self.pairs.threads)


class TorchSharedSweeps(SharedSweeps):
    """Products with X for several problems at once on a PyTorch device, such as folds.

    The problems have the same documents. The result of each problem does not depend on the others.
    """

    def __init__(self, designs: Sequence[Design]) -> None:
        super().__init__(designs)
        self._first = cast(TorchDesign, designs[0])

    def evaluate(
        self, losses: Sequence[PairLoss], ws: Sequence[Floats], likes: Sequence[State | None]
    ) -> list[Evaluation]:
        on_device = cast(Sequence[TorchLoss], losses)
        scores = self._first.dots(ws)
        found = [loss.at(one) for loss, one in zip(on_device, scores, strict=True)]
        gradients = self._first.transpose_dots([one.slopes for one in found])
        totals = torch.stack([one.totals for one in found])
        values = _to_host(torch.cat([totals, gradients], dim=1))
        return [
            loss.from_host(*one)
            for loss, *one in zip(on_device, scores, found, values, strict=True)
        ]

    def dot(self, ws: Sequence[Floats]) -> list[Scores]:
        return [Scores(one) for one in self._first.dots(ws)]

    def transpose_dot(self, zs: Sequence[Scores]) -> list[Floats]:
        return list(_to_host(self._first.transpose_dots([_vector(z) for z in zs])))

    def hess_vec(
        self, losses: Sequence[PairLoss], states: Sequence[State], vs: Sequence[Floats]
    ) -> list[tuple[Floats, Scores]]:
        scores = self._first.dots(vs)
        each = zip(cast(Sequence[TorchLoss], losses), states, scores, strict=True)
        images = [loss.curved(state, u) for loss, state, u in each]
        products = _to_host(self._first.transpose_dots(images))
        return [(product, Scores(u)) for product, u in zip(products, scores, strict=True)]


def features_of(tensor: torch.Tensor, has_triton: bool | None = None) -> DeviceFeatures:
    """Return a dense or CSR tensor as a feature matrix on the device of the tensor.

    float32 and float64 values are not copied; other values are converted to float64.
    """
    if has_triton is None:
        has_triton = runs_triton(tensor.device)
    if tensor.dtype not in DTYPES:
        tensor = tensor.to(torch.float64)
    if tensor.layout == torch.sparse_csr:
        return SparseFeatures.of_tensor(tensor)
    if has_triton:
        from marginrank.operators.torch.triton_features import TritonFeatures

        return TritonFeatures(tensor)
    return DenseFeatures(tensor)


def _dense(X: Any, device: torch.device) -> torch.Tensor:
    """Return an array as a tensor on a device; a writable array on the CPU is not copied."""
    array = np.ascontiguousarray(X)
    if not array.flags.writeable and device.type == "cpu":
        array = array.copy()  # PyTorch does not support read-only tensors
    return torch.as_tensor(array, device=device)


def bytes_needed(data: RankingData, *, has_features: bool = False) -> int:
    """Return an estimate of the device memory of a fit in bytes.

    X is included, unless it is already on the device (`has_features`).
    """
    X = data.X
    n_bits = (int(np.max(data.queries.n_levels, initial=1)) - 1).bit_length()
    of_document = POINTS * (BIT_BYTES * n_bits + DOCUMENT_BYTES) + EVALUATION_BYTES
    tile = 8 * min(TILE_ENTRIES, int(X.shape[0]) * int(X.shape[1]))
    needed = of_document * data.n_documents + tile
    if has_features:
        return needed
    if sp.issparse(X):  # stored by rows and by columns
        return needed + 2 * int(X.nnz) * (4 + int(X.dtype.itemsize))
    return needed + int(X.shape[0] * X.shape[1] * X.dtype.itemsize)
