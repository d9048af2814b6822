"""X as PyTorch holds it, and perhaps as it was on the host."""

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from marginrank._utils.types import Floats, Integers
from marginrank.data.ranking_data import RankingData
from marginrank.objective.gram import Rows
from marginrank.objective.level_pairs import LevelPairs
from marginrank.objective.listed_pairs import ListedPairs
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sets import PairCounts, PairSet
from marginrank.objective.protocols import (
    Design,
    Evaluation,
    GroupedLoss,
    Matrix,
    PairLoss,
    QueryLosses,
    Scores,
    State,
)
from marginrank.operators.native import (
    NativeDesign,
    NativeMatrix,
    as_native,
    native_matrix,
)
from marginrank.operators.torch.features import (
    TILE_ENTRIES,
    DenseFeatures,
    DeviceFeatures,
    SparseFeatures,
    by_row,
)
from marginrank.operators.torch.level_kernel import LevelPlan
from marginrank.operators.torch.listed_kernel import ListedPlan
from marginrank.operators.torch.score_space import (
    AtScores,
    PairPlan,
    TorchLoss,
    TorchSpace,
    to_host,
)

DTYPES = (torch.float32, torch.float64)
POINTS = 2  # that a solver holds at a time
DOCUMENT_BYTES = 100  # of a point, beside what each bit of a level takes
BIT_BYTES = 12
EVALUATION_BYTES = 400  # of a document, while a point is made


@dataclass
class _Plans:
    """The pairs on the device, those that were asked for last."""

    device: torch.device
    pairs: PairSet | None = None
    plan: PairPlan | None = None

    def of(self, pairs: PairSet) -> PairPlan:
        """Return them, brought there if they are others."""
        if self.plan is None or self.pairs is not pairs:
            self.pairs = pairs
            self.plan = (
                LevelPlan(pairs, self.device)
                if isinstance(pairs, LevelPairs)
                else ListedPlan(cast(ListedPairs, pairs), self.device)
            )
        return self.plan


@dataclass(frozen=True)
class TorchMatrix(Matrix):
    """X on a device.

    Attributes
    ----------
    features : DeviceFeatures
        X, or some columns of it.
    host : NativeMatrix or None
        The same on the host; None where X lives on the device alone.
    """

    features: DeviceFeatures
    host: NativeMatrix | None
    plans: _Plans = field(repr=False)

    @classmethod
    def of(
        cls,
        data: RankingData,
        device: str | torch.device = "cpu",
        tensor: torch.Tensor | None = None,
    ) -> "TorchMatrix":
        """Bring X of some data to a device, if it is not there as a tensor; the host keeps it."""
        where = torch.device(device)
        X = data.X
        if tensor is not None and tensor.device == where and tensor.dtype in DTYPES:
            features = features_of(tensor)
        elif sp.issparse(X):
            features = SparseFeatures.of(X, where)
        else:
            features = features_of(_dense(X, where))
        return cls(features, native_matrix(data), _Plans(where))

    @classmethod
    def alone(cls, tensor: torch.Tensor) -> "TorchMatrix":
        """Take X that is on a device and nowhere else."""
        return cls(features_of(tensor), None, _Plans(tensor.device))

    @property
    def shape(self) -> tuple[int, int]:
        return self.features.shape

    @property
    def n_entries(self) -> int:
        return self.features.n_entries

    def magnitudes(self, threads: int) -> Floats:
        if self.host is not None:
            return self.host.magnitudes(threads)
        return to_host(self.features.magnitudes())

    def restrict(self, columns: Integers, threads: int) -> "TorchMatrix":
        host = None if self.host is None else self.host.restrict(columns, threads)
        return TorchMatrix(self.features.restrict(columns), host, self.plans)

    def on_host(self) -> NativeMatrix | None:
        return self.host

    def design(self, pairs: PairCounts, threads: int) -> "TorchDesign":
        return TorchDesign(self, cast(PairSet, pairs), threads)

    def sample(
        self, pairs: PairCounts, fraction: float, seed: int, threads: int
    ) -> tuple[NativeMatrix, PairSet]:
        sample = cast(PairSet, pairs).sample(fraction, seed)
        if self.host is not None:
            return self.host, sample
        rows = sample.documents.rows
        taken = self.features.take_rows(np.arange(sample.n_rows) if rows is None else rows)
        return as_native(taken), sample.compact()


class TorchDesign(Design):
    """Products with X on the device."""

    matrix: TorchMatrix
    pairs: PairSet
    space: TorchSpace

    def __init__(self, matrix: TorchMatrix, pairs: PairSet, threads: int) -> None:
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
        scores = Scores(to_host(cast(AtScores, state).scores))
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


def features_of(tensor: torch.Tensor) -> DeviceFeatures:
    """Take a tensor of float32 or float64, dense or CSR, as it is."""
    if tensor.layout == torch.sparse_csr:
        return SparseFeatures.of_tensor(tensor)
    if tensor.is_cuda and tensor.dtype == torch.float32 and find_spec("triton") is not None:
        from marginrank.operators.torch.triton_features import TritonFeatures

        return TritonFeatures(tensor)
    return DenseFeatures(tensor)


def _dense(X: Any, device: torch.device) -> torch.Tensor:
    """Copy an array to a device; on the CPU the memory is shared, also if it is read-only."""
    array = np.ascontiguousarray(X)
    if not array.flags.writeable and device.type == "cpu":
        array = array.copy()  # PyTorch has no tensors that are read-only
    return torch.as_tensor(array, device=device)


def bytes_needed(data: RankingData, *, has_features: bool = False) -> int:
    """Return about what a fit takes of a device, beside X if that is there already."""
    X = data.X
    n_bits = (int(np.max(data.queries.n_levels, initial=1)) - 1).bit_length()
    of_document = POINTS * (BIT_BYTES * n_bits + DOCUMENT_BYTES) + EVALUATION_BYTES
    tile = 8 * min(TILE_ENTRIES, int(X.shape[0]) * int(X.shape[1]))
    return of_document * data.n_documents + tile + (0 if has_features else _bytes_of(X))


def _bytes_of(X: Any) -> int:
    """Return what X takes there; a sparse one has its transpose beside it."""
    if sp.issparse(X):
        return 2 * int(X.nnz) * (4 + int(X.dtype.itemsize))
    return int(X.shape[0] * X.shape[1] * X.dtype.itemsize)
