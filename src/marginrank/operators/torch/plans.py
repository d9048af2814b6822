"""Tensors of a pair set that are computed once, for Triton kernels or PyTorch operations."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Protocol, cast

import torch
from torch import Tensor

from marginrank.objective.level_pairs import LevelPairs
from marginrank.objective.listed_pairs import ListedPairs
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sets import PairSet
from marginrank.operators.torch.documents import ScoreLoss
from marginrank.operators.torch.fixed_point import exact_total
from marginrank.operators.torch.kernels import LevelPlan, ListedPlan, require_native_kernels

PLANS = 16  # most plans in the cache: problems that are solved together take turns
Total = Callable[[Tensor], Tensor]  # returns the sum of all entries, as a tensor with one entry


class PairKernel(Protocol):
    """Interface of objects that evaluate a loss and its Hessian products on a set of pairs."""

    def evaluate(self, scores: Tensor) -> ScoreLoss: ...

    def hess_vec(self, state: Any, u: Tensor) -> Tensor: ...


class PairPlan(Protocol):
    """Interface of a set of tensors that depend on the pairs only, not on scores or loss."""

    def kernel(self, loss: Loss) -> PairKernel: ...


def runs_triton(device: torch.device) -> bool:
    """Return True if Triton is installed and can compile for the device."""
    return device.type == "cuda" and find_spec("triton") is not None


@dataclass
class Plans:
    """A cache of the plans of the last PLANS pair sets: tensors that depend on the pairs only."""

    device: torch.device
    has_triton: bool
    last: list[tuple[PairSet, PairPlan]] = field(default_factory=list)

    def of(self, pairs: PairSet) -> PairPlan:
        for known, plan in self.last:
            if known is pairs:
                return plan
        plan = self._make(pairs)
        self.last = [*self.last, (pairs, plan)][-PLANS:]
        return plan

    def _make(self, pairs: PairSet) -> PairPlan:
        if isinstance(pairs, LevelPairs):
            return self._of_levels(pairs)
        return ListedPlan(cast(ListedPairs, pairs), self.device)

    def _of_levels(self, pairs: LevelPairs) -> PairPlan:
        require_native_kernels(
            {
                "pair_selection": pairs.width not in (None, 1),
                "margin": pairs.label_margins is not None,
            }
        )
        if self.has_triton:
            from marginrank.operators.torch.triton_pairs import FusedPlan

            if FusedPlan.suits(pairs):
                return FusedPlan(pairs, self.device)
        return LevelPlan(pairs, self.device)

    @property
    def total(self) -> Total:
        if not self.has_triton:
            return exact_total
        from marginrank.operators.torch.triton_sums import total

        return total
