"""Loss and derivatives in score space, for pairs that are listed one by one."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from marginrank.objective.listed_pairs import ListedPairs
from marginrank.objective.losses import Loss
from marginrank.operators.torch.documents import DeviceDocuments, ScoreLoss
from marginrank.operators.torch.fixed_point import Segments


class ListedState(NamedTuple):
    """What products need: the second derivative of the loss of each pair, weights included."""

    curvature: Tensor


class ListedPlan:
    """What the pairs are, on a device; sorted by query."""

    def __init__(self, pairs: ListedPairs, device: torch.device) -> None:
        query = pairs.grouped.query_of_document[pairs.pairs[:, 0]]
        counts = np.bincount(query, minlength=pairs.n_queries)
        order = np.argsort(query, kind="stable")
        listed = pairs.pairs[order]
        self.documents = DeviceDocuments.of(pairs, counts > 0, device)
        self.preferred, self.other = (
            torch.as_tensor(side, dtype=torch.int32, device=device) for side in listed.T
        )
        weight = np.ones(order.size) if pairs.pair_weight is None else pairs.pair_weight[order]
        self.weight = torch.as_tensor(weight * pairs.query_weight[query[order]], device=device)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        self._of_query = Segments.of(torch.as_tensor(offsets, device=device))
        # Each document takes from its pairs: those that prefer it, then the others.
        sides = listed.T.ravel()
        self._incidence = torch.as_tensor(
            np.argsort(sides, kind="stable"), dtype=torch.int32, device=device
        )
        degrees = np.bincount(sides, minlength=pairs.n_documents)
        self._document_offsets = torch.as_tensor(
            np.concatenate([[0], np.cumsum(degrees)]), device=device
        )

    def difference(self, u: Tensor) -> Tensor:
        """Return u_i − u_j for each pair."""
        return u.index_select(0, self.preferred) - u.index_select(0, self.other)

    def by_document(self, values: Tensor) -> Tensor:
        """Return, for each document, the sum over the pairs that prefer it less that of others."""
        signed = torch.cat([values, -values]).index_select(0, self._incidence)
        return torch.segment_reduce(
            signed, "sum", offsets=self._document_offsets, unsafe=True, initial=0.0
        )

    def by_query(self, values: Tensor) -> Tensor:
        """Return the sum over the pairs of each query."""
        return self._of_query.sum(values)


class ListedKernel:
    """Sums over the pairs of a plan, for a loss."""

    def __init__(self, plan: ListedPlan, loss: Loss) -> None:
        self.plan = plan
        self.pieces = loss.pieces

    def evaluate(self, scores: Tensor) -> ScoreLoss:
        """Return the loss at some scores."""
        plan = self.plan
        key = plan.documents.keys(scores)
        margin = plan.difference(key)
        keys = key.index_select(0, plan.preferred).abs() + key.index_select(0, plan.other).abs()
        value, value_size, slope, slope_size, curvature = (
            torch.zeros_like(margin) for _ in "12345"
        )
        for piece in self.pieces:
            slack = (piece.theta - margin).clamp(min=0.0)
            active = (slack > 0.0).to(slack.dtype)
            reach = (abs(piece.theta) + keys) * active
            a = piece.coefficient
            if piece.power == 2:
                value += a * slack * slack
                value_size += 2.0 * abs(a) * slack * reach
                slope -= 2.0 * a * slack
                slope_size += 4.0 * abs(a) * reach
                curvature += 2.0 * a * active
            else:
                value += a * slack
                value_size += abs(a) * reach
                slope -= a * active
                slope_size += 2.0 * abs(a) * active
        columns = [
            plan.by_query(plan.weight * column) for column in (value, value_size, slope_size)
        ]
        columns[0] = columns[0].clamp(min=0.0)
        slopes = plan.by_document(plan.weight * slope)
        state = ListedState(plan.weight * curvature)
        return ScoreLoss(torch.stack(columns, dim=1), slopes, state)

    def hess_vec(self, state: ListedState, u: Tensor) -> Tensor:
        """Return H u, with the Hessian H in score space."""
        return self.plan.by_document(state.curvature * self.plan.difference(u))
