"""The loss on pairs and its derivatives with respect to the scores, by PyTorch operations.

Pairs are implied by labels, or listed. For each of the two there is a *plan*, with tensors that
depend only on the pairs, and a *kernel*, which evaluates one loss. The loss is a sum of hinge terms
(*pieces*). The *partners* of a document are the documents with which it forms a pair that has a
positive hinge term.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from marginrank._utils.parameters import Mention, ParameterError
from marginrank.objective.level_pairs import LevelPairs
from marginrank.objective.listed_pairs import ListedPairs
from marginrank.objective.losses import LOGISTIC, Loss, Piece
from marginrank.operators.torch.documents import DeviceDocuments, ScoreLoss, find_window, sort
from marginrank.operators.torch.fixed_point import Segments
from marginrank.operators.torch.levels import (
    AdjacentLevels,
    AllLevels,
    Leaves,
    Levels,
    Ranges,
    gather,
)

FUNCTION_ERROR = 4.0  # error of an exponential or logarithm, in units of the last place
Factors = tuple[Tensor, Tensor]  # factors of pair weights: for the preferred side and the other


class LevelState(NamedTuple):
    """Data for Hessian products at one score vector, for pairs implied by labels."""

    ranges: list[Ranges]  # positions of the partners, for the quadratic pieces only
    curvature: Tensor  # the diagonal of the Hessian


class _Sides(NamedTuple):
    """Two sums per document: over pairs that do not prefer it, and over pairs that prefer it."""

    above: Tensor
    below: Tensor


def require_native_kernels(asked: dict[str, bool]) -> None:
    """Raise ParameterError if a parameter has a value that only the C++ kernels support.

    `asked` maps the name of each parameter to whether it has such a value.
    """
    for name, is_given in asked.items():
        if is_given:
            raise ParameterError(
                Mention(name), " has a value that PyTorch devices do not support; use device=None."
            )


class LevelPlan:
    """Tensors for pairs implied by labels that do not depend on scores or loss; computed once."""

    def __init__(self, pairs: LevelPairs, device: torch.device) -> None:
        self.documents = DeviceDocuments.of(pairs, pairs.queries.n_levels > 1, device)
        leaves = Leaves.of(pairs, device)
        self.levels: Levels = AllLevels(leaves) if pairs.width is None else AdjacentLevels(leaves)
        self.factors: list[Factors] = []
        if pairs.factors is not None:
            preferred, other = (torch.as_tensor(side, device=device) for side in pairs.factors)
            self.factors = [
                (preferred[:, r].contiguous(), other[:, r].contiguous())
                for r in range(preferred.shape[1])
            ]
        queries = self.documents.queries
        # Values of documents as the preferred side, followed by their values as the other side.
        self.sides = Segments(
            torch.cat([queries.offsets, queries.offsets[1:] + queries.offsets[-1]]),
            torch.cat([queries.segment, queries.segment + (queries.offsets.numel() - 1)]),
        )

    def kernel(self, loss: Loss) -> "LevelKernel":
        return LevelKernel(self, loss)


class LevelKernel:
    """Evaluates one loss, and its Hessian products, on pairs that are implied by labels."""

    def __init__(self, plan: LevelPlan, loss: Loss) -> None:
        self.plan = plan
        self.pieces = loss.pieces
        self._curved = [k for k, piece in enumerate(loss.pieces) if piece.power == 2]

    def evaluate(self, scores: Tensor) -> ScoreLoss:
        documents = self.plan.documents
        key = documents.keys(scores)
        order = sort(documents, key)
        windows = [find_window(documents, order, piece.theta) for piece in self.pieces]
        passes = self.plan.levels.passes(order, windows)
        ranges = gather(self.plan.levels, passes, by_side=bool(self.plan.factors))
        sums = _LossSums(key)
        ranks: Sequence[Factors | None] = self.plan.factors or [None]
        for factors in ranks:
            counts = self._all_digits(ranges, factors, None)
            keys = self._all_digits(ranges, factors, key)
            for piece, count, of_keys in zip(self.pieces, counts, keys, strict=True):
                sums.add(piece, count, of_keys, factors)
        table = [documents.queries.sum(column) for column in (sums.value, *sums.sizes)]
        table[0] = table[0].clamp(min=0.0)
        by_query = torch.stack([column * documents.query_weight for column in table], dim=1)
        curvature = documents.weighted(sums.curvature)
        state = LevelState([some.keep(self._curved) for some in ranges], curvature)
        return ScoreLoss.of(by_query, documents.weighted(sums.slopes), state)

    def _all_digits(
        self, ranges: list[Ranges], factors: Factors | None, key: Tensor | None
    ) -> list[_Sides]:
        """Return, for each piece and document, sums of the weights of its partners.

        With a `key`, the weights are multiplied by the keys of the partners. The weights are
        `factors`, or ones if it is None.
        """
        queries = self.plan.documents.queries
        if factors is None:
            if key is None:
                ones = torch.ones_like(queries.segment, dtype=torch.int64)
                unit = torch.ones_like(self.plan.documents.query_weight)
                return [self._by_side(ranges, ones, unit, w) for w in range(len(self.pieces))]
            encoded = queries.encode_all_digits(key)
        else:
            values = torch.cat([side if key is None else side * key for side in factors])
            encoded = self.plan.sides.encode_all_digits(values)
        found = []
        for window in range(len(self.pieces)):
            high, low = (self._by_side(ranges, *limb, window) for limb in encoded)
            found.append(_Sides(high.above + low.above, high.below + low.below))
        return found

    def _by_side(self, ranges: list[Ranges], values: Tensor, unit: Tensor, window: int) -> _Sides:
        """Return sums of integer `values` times `unit` over the partners for one piece.

        `window` is the index of the piece.
        """
        queries = self.plan.documents.queries
        totals = [torch.zeros_like(queries.segment, dtype=torch.int64) for _ in range(2)]
        for some in ranges:
            found = some.sums_by_side(some.prefix_sums(values), window)
            totals = [total + part for total, part in zip(totals, found, strict=True)]
        n_queries = self.plan.documents.query_weight.numel()
        above, below = totals
        return _Sides(above * queries.spread(unit), below * queries.spread(unit[-n_queries:]))

    def hess_vec(self, state: LevelState, u: Tensor) -> Tensor:
        """Return Au for the Hessian A of the loss with respect to the scores."""
        queries = self.plan.documents.queries
        # A maps constants to zero. Subtracting one document's value per query prevents cancellation
        # by a common offset.
        u = u - queries.spread(u.index_select(0, queries.offsets[:-1]))
        if self.plan.factors:
            return torch.addcmul(self._weighted(state, u), state.curvature, u)
        encoded = queries.encode(u)
        images = [
            total * queries.spread(encoded.unit * self._factor(k))
            for k, total in enumerate(self._totals(state, encoded.integers))
        ]
        if not images:  # no pairs, or no curvature
            return torch.zeros_like(u)
        return torch.addcmul(sum(images[1:], images[0]), state.curvature, u)

    def _factor(self, k: int) -> Tensor:
        """Return, for each query, the factor of the sums for the k-th quadratic piece."""
        piece = self.pieces[self._curved[k]]
        return self.plan.documents.query_weight * (-2.0 * piece.coefficient)

    def _totals(self, state: LevelState, values: Tensor) -> list[Tensor]:
        """Return, for each quadratic piece, the sum of integer `values` over all partners."""
        totals: list[Tensor] = []
        for some in state.ranges:
            prefix_sums = some.prefix_sums(values)
            found = [some.sums(prefix_sums, k) for k in range(len(self._curved))]
            totals = [a + b for a, b in zip(totals, found, strict=True)] if totals else found
        return totals

    def _weighted(self, state: LevelState, u: Tensor) -> Tensor:
        """Return the off-diagonal part of the Hessian times u, with pair weights."""
        image = torch.zeros_like(u)
        for preferred, other in self.plan.factors:
            encoded = self.plan.sides.encode(torch.cat([preferred * u, other * u]))
            for k in range(len(self._curved)):
                above, below = self._by_side(state.ranges, *encoded, k)
                factor = self.plan.documents.queries.spread(self._factor(k))
                image = image + factor * (other * above + preferred * below)
        return image


class _LossSums:
    """Accumulates loss, slope and curvature of each document over the pieces of a loss.

    The slack of a pair is at most its reach |θ| + |key of i| + |key of j|, which bounds its
    rounding error.
    """

    def __init__(self, key: Tensor) -> None:
        self.key = key
        self.value, self.slopes, self.curvature = (torch.zeros_like(key) for _ in range(3))
        self.sizes = [torch.zeros_like(key) for _ in range(2)]

    def add(self, piece: Piece, count: _Sides, of_keys: _Sides, factors: Factors | None) -> None:
        """Add the sums over pairs of one hinge term, for one product of the weight factors."""
        key, theta, a = self.key, piece.theta, piece.coefficient
        preferred, other = factors or (1.0, 1.0)
        pairs_lost, pairs_won = preferred * count.below, other * count.above
        keys_lost, keys_won = preferred * of_keys.below, other * of_keys.above
        # Sums of the slack of active pairs: `lost` over pairs that prefer the document, `won` over
        # its other pairs.
        lost = pairs_lost * (theta - key) + keys_lost
        won = pairs_won * (theta + key) - keys_won
        pairs = pairs_won.abs() + pairs_lost.abs()
        reach = abs(theta) + key.abs()
        if piece.power == 1:
            self.value += a * lost
            self.slopes += a * (pairs_won - pairs_lost)
            self.sizes[0] += 2.0 * abs(a) * pairs * reach
            self.sizes[1] += abs(a) * pairs
            return
        self.value += a * (lost * (theta - key) + won * key)
        self.slopes += 2.0 * a * (won - lost)
        self.curvature += 2.0 * a * (pairs_won + pairs_lost)
        self.sizes[0] += 2.0 * abs(a) * pairs * reach * reach
        own = (pairs_won * (theta + key)).abs() + (pairs_lost * (theta - key)).abs()
        self.sizes[1] += 2.0 * abs(a) * (own + keys_won.abs() + keys_lost.abs())


class ListedState(NamedTuple):
    """Data for Hessian products at one score vector, for listed pairs."""

    curvature: Tensor  # weighted second derivative of the loss of each pair


class ListedPlan:
    """Tensors for listed pairs, sorted by query, that do not depend on scores or loss."""

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
        margin = np.zeros(order.size) if pairs.pair_margin is None else pairs.pair_margin[order]
        self.margin = torch.as_tensor(margin, device=device)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        self._of_query = Segments.of(torch.as_tensor(offsets, device=device))
        # The pairs of each document: first the pairs that prefer it, then its other pairs.
        sides = listed.T.ravel()
        self._incidence = torch.as_tensor(
            np.argsort(sides, kind="stable"), dtype=torch.int32, device=device
        )
        degrees = np.bincount(sides, minlength=pairs.n_documents)
        self._document_offsets = torch.as_tensor(
            np.concatenate([[0], np.cumsum(degrees)]), device=device
        )

    def kernel(self, loss: Loss) -> "ListedKernel":
        return ListedKernel(self, loss)

    def difference(self, u: Tensor) -> Tensor:
        """Return u_i − u_j for each pair (i, j), for a vector u with one entry per document."""
        return u.index_select(0, self.preferred) - u.index_select(0, self.other)

    def by_document(self, values: Tensor) -> Tensor:
        """Return, for each document, the signed sum of one value per pair over its pairs.

        The value of a pair counts positive for its preferred document and negative for the other
        one.
        """
        signed = torch.cat([values, -values]).index_select(0, self._incidence)
        return torch.segment_reduce(
            signed, "sum", offsets=self._document_offsets, unsafe=True, initial=0.0
        )

    def by_query(self, values: Tensor) -> Tensor:
        return self._of_query.sum(values)


class _PairTerms(NamedTuple):
    """Value and derivatives of one hinge term for each pair, with bounds on rounding errors."""

    value: Tensor
    value_size: Tensor
    slope: Tensor
    slope_size: Tensor  # of the slopes of both documents of the pair
    curvature: Tensor


def _hinge_terms(piece: Piece, x: Tensor, reach: Tensor) -> _PairTerms:
    # a · max(0, x)^e for x = θ − t; `reach` is the sum of the absolute values of the terms of x.
    slack = x.clamp(min=0.0)
    active = (slack > 0.0).to(slack.dtype)
    a, reach = piece.coefficient, reach * active
    if piece.power == 2:
        size = 2.0 * abs(a) * reach
        return _PairTerms(
            a * slack * slack, size * slack, -2.0 * a * slack, 2.0 * size, 2.0 * a * active
        )
    none = torch.zeros_like(x)
    return _PairTerms(a * slack, abs(a) * reach, -a * active, 2.0 * abs(a) * active, none)


def _logistic_terms(piece: Piece, x: Tensor, reach: Tensor) -> _PairTerms:
    # a · log(1 + exp(x))
    a = piece.coefficient
    value = a * torch.logaddexp(torch.zeros_like(x), x)
    slope = a * torch.sigmoid(x)
    curvature = slope * torch.sigmoid(-x)
    value_size = FUNCTION_ERROR * value + slope * reach
    slope_size = 2.0 * (FUNCTION_ERROR * slope + curvature * reach)
    return _PairTerms(value, value_size, -slope, slope_size, curvature)


class ListedKernel:
    """Evaluates one loss, and its Hessian products, on listed pairs."""

    def __init__(self, plan: ListedPlan, loss: Loss) -> None:
        self.plan = plan
        self.pieces = loss.pieces

    def evaluate(self, scores: Tensor) -> ScoreLoss:
        plan = self.plan
        key = plan.documents.keys(scores)
        t = plan.difference(key) - plan.margin
        keys = key.index_select(0, plan.preferred).abs() + key.index_select(0, plan.other).abs()
        keys += plan.margin  # zero or more
        total = _PairTerms(*(torch.zeros_like(t) for _ in _PairTerms._fields))
        for piece in self.pieces:
            terms = _logistic_terms if piece.power == LOGISTIC else _hinge_terms
            found = terms(piece, piece.theta - t, abs(piece.theta) + keys)
            total = _PairTerms(*(a + b for a, b in zip(total, found, strict=True)))
        value, value_size, slope, slope_size, curvature = total
        columns = [
            plan.by_query(plan.weight * column) for column in (value, value_size, slope_size)
        ]
        columns[0] = columns[0].clamp(min=0.0)
        slopes = plan.by_document(plan.weight * slope)
        state = ListedState(plan.weight * curvature)
        return ScoreLoss.of(torch.stack(columns, dim=1), slopes, state)

    def hess_vec(self, state: ListedState, u: Tensor) -> Tensor:
        return self.plan.by_document(state.curvature * self.plan.difference(u))
