"""X as PyTorch holds it, and perhaps as it was on the host."""

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
import torch

from marginrank._utils.types import Floats, Integers
from marginrank.data.ranking_data import RankingData
from marginrank.objective.backends.interface import Matrix
from marginrank.objective.backends.native import NativeMatrix, as_native, native_matrix
from marginrank.objective.backends.torch.features import DenseFeatures, Features, SparseFeatures
from marginrank.objective.backends.torch.kernels import Plan, TorchKernels
from marginrank.objective.backends.torch.level_kernel import LevelPlan
from marginrank.objective.backends.torch.listed_kernel import ListedPlan
from marginrank.objective.level_pairs import LevelPairs
from marginrank.objective.listed_pairs import ListedPairs
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sets import PairCounts, PairSet

DTYPES = (torch.float32, torch.float64)


@dataclass
class _Plans:
    """The pairs on the device, those that were asked for last."""

    device: torch.device
    pairs: PairSet | None = None
    plan: Plan | None = None

    def of(self, pairs: PairSet) -> Plan:
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
    features : Features
        X, or some columns of it.
    host : NativeMatrix or None
        The same on the host; None where X lives on the device alone.
    """

    features: Features
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
    def n_features(self) -> int:
        """Number of columns."""
        return self.features.shape[1]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.features.shape[0]

    @property
    def n_entries(self) -> int:
        """Number of stored entries."""
        return self.features.n_entries

    def magnitudes(self, threads: int) -> Floats:
        """Return the largest absolute value of each column."""
        if self.host is not None:
            return self.host.magnitudes(threads)
        found: Floats = self.features.magnitudes().cpu().numpy()
        return found

    def restrict(self, columns: Integers, threads: int) -> "TorchMatrix":
        """Return some columns alone, which are copied."""
        host = None if self.host is None else self.host.restrict(columns, threads)
        return TorchMatrix(self.features.restrict(columns), host, self.plans)

    def on_host(self) -> NativeMatrix | None:
        """Return X as the native kernels hold it, unless it is on the device alone."""
        return self.host

    def take_rows(self, rows: Integers) -> Any:
        """Return a copy of some rows."""
        return (self.host or self.features).take_rows(rows)

    def kernels(self, pairs: PairCounts, loss: Loss, threads: int) -> TorchKernels:
        """Return what computes with it."""
        in_memory = cast(PairSet, pairs)
        return TorchKernels(self.features, self.host, in_memory, self.plans.of(in_memory), loss)

    def sample(
        self, pairs: PairCounts, fraction: float, seed: int, threads: int
    ) -> tuple[NativeMatrix, PairSet]:
        """Return a sample of the pairs; its documents are rows of the host's matrix."""
        sample = cast(PairSet, pairs).sample(fraction, seed)
        if self.host is not None:
            return self.host, sample
        rows = sample.documents.rows
        taken = self.take_rows(np.arange(sample.n_rows) if rows is None else rows)
        return as_native(taken), sample.compact()


def features_of(tensor: torch.Tensor) -> Features:
    """Take a tensor of float32 or float64, dense or CSR, as it is."""
    if tensor.layout == torch.sparse_csr:
        return SparseFeatures.of_tensor(tensor)
    if tensor.is_cuda and tensor.dtype == torch.float32 and find_spec("triton") is not None:
        from marginrank.objective.backends.torch.triton_features import TritonFeatures

        return TritonFeatures(tensor)
    return DenseFeatures(tensor)


def _dense(X: Any, device: torch.device) -> torch.Tensor:
    """Copy an array to a device; on the CPU the memory is shared, also if it is read-only."""
    array = np.ascontiguousarray(X)
    if not array.flags.writeable and device.type == "cpu":
        array = array.copy()  # PyTorch has no tensors that are read-only
    return torch.as_tensor(array, device=device)
