"""Triton kernels for the loss on pairs from labels, for short queries.

Each Triton program takes a chunk of the documents of a query and compares each of them with all
documents of the query, in registers. The work is the square of the number of documents, but there
is no sort and no shared state. The loss takes four kernel launches, a Hessian-vector product one.
Sums are sums of integers as in :mod:`~marginrank.operators.torch.fixed_point`, so they do not
depend on chunks and have the same bits as sums by PyTorch operations. :meth:`FusedPlan.suits`
decides for which data these kernels are used.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from marginrank.objective.level_pairs import LevelPairs
from marginrank.objective.losses import Loss
from marginrank.operators.torch.documents import ScoreLoss
from marginrank.operators.torch.triton_sums import (
    EXACT,
    TILE,
    exponent,
    largest,
    power_of_two,
    rounded,
    segment_sums,
    table_totals,
)

DOCUMENTS, PARTNERS = 32, 32  # size of a tile of comparisons
ANY_WIDTH = np.iinfo(np.int32).max
# Most comparisons per document for which these kernels are used. At this number their arithmetic
# takes about as long as the launches and memory traffic of sorting and partitioning.
MOST_COMPARISONS = 2048


@triton.jit
def _ordered(x):  # type: ignore[no-untyped-def]
    # Return integers in the same order as x: comparing doubles is slow on most GPUs.
    bits = (x + 0.0).to(tl.int64, bitcast=True)
    return bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)


@triton.jit  # type: ignore[untyped-decorator]
def _chunk(chunks, keys, levels, DOCUMENTS: tl.constexpr):  # type: ignore[no-untyped-def]
    # Return, for the documents of this program: positions, a mask of valid positions, the range and
    # index of their query, keys and levels.
    chunk = chunks + 4 * tl.program_id(0)
    first, begin = tl.load(chunk), tl.load(chunk + 1)
    end, query = tl.load(chunk + 2), tl.load(chunk + 3)
    at = first + tl.arange(0, DOCUMENTS)
    inside = at < end
    key = tl.load(keys + at, mask=inside, other=0.0)
    level = tl.load(levels + at, mask=inside, other=0)
    return at, inside, begin, end, query, key, level


@triton.jit  # type: ignore[untyped-decorator]
def _partners(  # type: ignore[no-untyped-def]
    keys, levels, first, end, key, level, theta, width, PARTNERS: tl.constexpr
):  # fmt: skip
    # Load a tile of documents (columns). Return masks: which are preferred to each document (rows)
    # in an active pair, and to which it is preferred. Both sides of a pair compare the same two
    # numbers.
    at = first + tl.arange(0, PARTNERS)
    inside = at < end
    other_key = tl.load(keys + at, mask=inside, other=0.0)
    other_level = tl.load(levels + at, mask=inside, other=0)
    step = other_level[None, :] - level[:, None]
    above = _ordered(other_key)[None, :] < _ordered(key + theta)[:, None]
    below = _ordered(key)[:, None] < _ordered(other_key + theta)[None, :]
    above = above & (step >= 1) & (step <= width) & inside[None, :]
    below = below & (step <= -1) & (step >= -width) & inside[None, :]
    return at, inside, other_key, above, below


@triton.jit
def _scale(size, spare):  # type: ignore[no-untyped-def]
    return power_of_two(tl.minimum(spare - exponent(size), 1000))


@triton.jit
def _unit(size, spare):  # type: ignore[no-untyped-def]
    return power_of_two(-tl.minimum(spare - exponent(size), 1000)) + 0.0 * size


@triton.jit
def _add(total, active, integers):  # type: ignore[no-untyped-def]
    return total + tl.sum(tl.where(active, integers[None, :], 0), axis=1)


@triton.jit  # type: ignore[untyped-decorator]
def _keys(scores, margins, offsets, counting, keys, HAS_MARGINS: tl.constexpr, TILE: tl.constexpr):  # type: ignore[no-untyped-def]
    # Scores minus margins, centered in each query; see DeviceDocuments.keys.
    query = tl.program_id(0)
    begin, end = tl.load(offsets + query), tl.load(offsets + query + 1)
    least = tl.full((TILE,), float("inf"), tl.float64)
    most = tl.full((TILE,), float("-inf"), tl.float64)
    poison = tl.zeros((TILE,), tl.float64)  # NaN if a score is not finite
    for first in range(begin, end, TILE):
        at = first + tl.arange(0, TILE)
        inside = at < end
        key = tl.load(scores + at, mask=inside, other=0.0)
        if HAS_MARGINS:
            key -= tl.load(margins + at, mask=inside, other=0.0)
        least = tl.minimum(least, tl.where(inside, key, float("inf")))
        most = tl.maximum(most, tl.where(inside, key, float("-inf")))
        poison += key - key
    middle = 0.5 * tl.min(least) + 0.5 * tl.max(most) + tl.sum(poison)
    counts = tl.load(counting + query) != 0
    for first in range(begin, end, TILE):
        at = first + tl.arange(0, TILE)
        key = tl.load(scores + at, mask=at < end, other=0.0)
        if HAS_MARGINS:
            key -= tl.load(margins + at, mask=at < end, other=0.0)
        tl.store(keys + at, tl.where(counts, key - middle, 0.0), mask=at < end)


@triton.jit  # type: ignore[untyped-decorator]
def _window_sums(  # type: ignore[no-untyped-def]
    keys, levels, preferred, other, begin, end, key, level, theta, width,
    scale_a, scale_b, scale_c, scale_d, finer,
    WEIGHTED: tl.constexpr, DOCUMENTS: tl.constexpr, PARTNERS: tl.constexpr,
):  # fmt: skip
    # Return sums over the partners in active pairs for θ, in two integers each: weights of the
    # preferred partners (a), of the others (b), and the same weights times keys (c, d).
    none = tl.zeros((DOCUMENTS,), tl.int64)
    a, b, c, d = none, none, none, none
    low_a, low_b, low_c, low_d = none, none, none, none
    for first in range(begin, end, PARTNERS):
        at, inside, other_key, above, below = _partners(
            keys, levels, first, end, key, level, theta, width, PARTNERS
        )
        weight_a = tl.full((PARTNERS,), 1.0, tl.float64)
        weight_b = weight_a
        if WEIGHTED:
            weight_a = tl.load(preferred + at, mask=inside, other=0.0)
            weight_b = tl.load(other + at, mask=inside, other=0.0)
        x = weight_a * scale_a
        a = _add(a, above, rounded(x).to(tl.int64))
        low_a = _add(low_a, above, rounded((x - rounded(x)) * finer).to(tl.int64))
        x = weight_b * scale_b
        b = _add(b, below, rounded(x).to(tl.int64))
        low_b = _add(low_b, below, rounded((x - rounded(x)) * finer).to(tl.int64))
        x = weight_a * other_key * scale_c
        c = _add(c, above, rounded(x).to(tl.int64))
        low_c = _add(low_c, above, rounded((x - rounded(x)) * finer).to(tl.int64))
        x = weight_b * other_key * scale_d
        d = _add(d, below, rounded(x).to(tl.int64))
        low_d = _add(low_d, below, rounded((x - rounded(x)) * finer).to(tl.int64))
    return a, b, c, d, low_a, low_b, low_c, low_d


@triton.jit
def _joined(high, low, unit, coarser):  # type: ignore[no-untyped-def]
    return high.to(tl.float64) * unit + low.to(tl.float64) * (unit * coarser)


@triton.jit
def _terms(key, factor, theta, is_linear, pairs_won, pairs_lost, keys_won, keys_lost):  # type: ignore[no-untyped-def]
    # Return the terms that a piece adds to slope, curvature, value and both sizes: see _LossSums.
    lost = pairs_lost * (theta - key) + keys_lost
    won = pairs_won * (theta + key) - keys_won
    pairs = tl.abs(pairs_won) + tl.abs(pairs_lost)
    own = tl.abs(pairs_won * (theta + key)) + tl.abs(pairs_lost * (theta - key))
    reach, size = tl.abs(theta) + tl.abs(key), tl.abs(factor)
    slope = 2.0 * factor * (won - lost)
    curvature = 2.0 * factor * (pairs_won + pairs_lost)
    value = factor * (lost * (theta - key) + won * key)
    size_0 = 2.0 * size * pairs * reach
    size_1 = 2.0 * size * (own + tl.abs(keys_won) + tl.abs(keys_lost))
    return (
        tl.where(is_linear, factor * (pairs_won - pairs_lost), slope),
        tl.where(is_linear, 0.0, curvature),
        tl.where(is_linear, factor * lost, value),
        tl.where(is_linear, size_0, size_0 * reach),
        tl.where(is_linear, size * pairs, size_1),
    )


@triton.jit  # type: ignore[untyped-decorator]
def _evaluate(  # type: ignore[no-untyped-def]
    keys, levels, chunks, query_weight, pieces, n_pieces, preferred, other, n_ranks, n_documents,
    width, columns,
    WEIGHTED: tl.constexpr, DOCUMENTS: tl.constexpr, PARTNERS: tl.constexpr,
):  # fmt: skip
    # Write five values per document to `columns`: slope, curvature, value and two sizes.
    at, inside, begin, end, query, key, level = _chunk(chunks, keys, levels, DOCUMENTS)
    spare = 62 - exponent((end - begin).to(tl.float64))
    finer, coarser = power_of_two(spare), power_of_two(-spare)
    size_c = largest(keys, keys, 0.0, begin, end, False, PARTNERS)
    size_a = tl.full((), 1.0, tl.float64)
    size_b, size_d = size_a, size_c
    own_a = tl.full((DOCUMENTS,), 1.0, tl.float64)
    own_b = own_a
    none = tl.zeros((DOCUMENTS,), tl.float64)
    slope, curvature, value, size_0, size_1 = none, none, none, none, none
    for _ in range(n_ranks):
        if WEIGHTED:
            size_a = largest(preferred, keys, 0.0, begin, end, False, PARTNERS)
            size_b = largest(other, keys, 0.0, begin, end, False, PARTNERS)
            size_c = largest(keys, preferred, 0.0, begin, end, True, PARTNERS)
            size_d = largest(keys, other, 0.0, begin, end, True, PARTNERS)
            own_a = tl.load(preferred + at, mask=inside, other=0.0)
            own_b = tl.load(other + at, mask=inside, other=0.0)
        for piece in range(n_pieces):
            theta = tl.load(pieces + 3 * piece + 1)
            a, b, c, d, low_a, low_b, low_c, low_d = _window_sums(
                keys, levels, preferred, other, begin, end, key, level, theta, width,
                _scale(size_a, spare), _scale(size_b, spare), _scale(size_c, spare),
                _scale(size_d, spare), finer, WEIGHTED, DOCUMENTS, PARTNERS,
            )  # fmt: skip
            terms = _terms(
                key, tl.load(pieces + 3 * piece), theta, tl.load(pieces + 3 * piece + 2) == 1.0,
                own_b * _joined(a, low_a, _unit(size_a, spare), coarser),
                own_a * _joined(b, low_b, _unit(size_b, spare), coarser),
                own_b * _joined(c, low_c, _unit(size_c, spare), coarser),
                own_a * _joined(d, low_d, _unit(size_d, spare), coarser),
            )  # fmt: skip
            slope, curvature, value = slope + terms[0], curvature + terms[1], value + terms[2]
            size_0, size_1 = size_0 + terms[3], size_1 + terms[4]
        preferred += n_documents
        other += n_documents
    weight = tl.load(query_weight + query)
    column = columns + at
    tl.store(column, slope * weight, mask=inside)
    tl.store(column + n_documents, curvature * weight, mask=inside)
    column = column + n_documents + n_documents
    tl.store(column, value, mask=inside)
    tl.store(column + n_documents, size_0, mask=inside)
    tl.store(column + n_documents + n_documents, size_1, mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _product(  # type: ignore[no-untyped-def]
    u, keys, levels, chunks, query_weight, pieces, n_pieces, preferred, other, n_ranks,
    n_documents, width, curvature, image,
    WEIGHTED: tl.constexpr, DOCUMENTS: tl.constexpr, PARTNERS: tl.constexpr,
):  # fmt: skip
    # Write Au to `image`, with the Hessian A of the loss with respect to the scores. `pieces` has
    # the quadratic hinge terms only.
    at, inside, begin, end, query, key, level = _chunk(chunks, keys, levels, DOCUMENTS)
    spare = 62 - exponent((end - begin).to(tl.float64))
    weight = tl.load(query_weight + query)
    origin = tl.load(u + begin)  # A maps constants to zero: subtract an offset of the query
    size_a = largest(u, u, origin, begin, end, False, PARTNERS)
    size_b = size_a
    own_a = tl.full((DOCUMENTS,), 1.0, tl.float64)
    own_b = own_a
    total = tl.zeros((DOCUMENTS,), tl.float64)
    for _ in range(n_ranks):
        if WEIGHTED:
            size_a = largest(u, preferred, origin, begin, end, True, PARTNERS)
            size_b = largest(u, other, origin, begin, end, True, PARTNERS)
            own_a = tl.load(preferred + at, mask=inside, other=0.0)
            own_b = tl.load(other + at, mask=inside, other=0.0)
        for piece in range(n_pieces):
            factor = weight * (-2.0 * tl.load(pieces + 3 * piece))
            a, b = _product_sums(
                u, keys, levels, preferred, other, begin, end, key, level, origin,
                tl.load(pieces + 3 * piece + 1), width, _scale(size_a, spare),
                _scale(size_b, spare), WEIGHTED, DOCUMENTS, PARTNERS,
            )  # fmt: skip
            if WEIGHTED:
                above = a.to(tl.float64) * _unit(size_a, spare)
                below = b.to(tl.float64) * _unit(size_b, spare)
                total += factor * (own_b * above + own_a * below)
            else:
                total += (a + b).to(tl.float64) * (_unit(size_a, spare) * factor)
        preferred += n_documents
        other += n_documents
    own = tl.load(u + at, mask=inside, other=0.0) - origin
    diagonal = tl.load(curvature + at, mask=inside, other=0.0)
    tl.store(image + at, tl.fma(diagonal, own, total), mask=inside)  # like addcmul


@triton.jit  # type: ignore[untyped-decorator]
def _product_sums(  # type: ignore[no-untyped-def]
    u, keys, levels, preferred, other, begin, end, key, level, origin, theta, width,
    scale_a, scale_b,
    WEIGHTED: tl.constexpr, DOCUMENTS: tl.constexpr, PARTNERS: tl.constexpr,
):  # fmt: skip
    none = tl.zeros((DOCUMENTS,), tl.int64)
    a, b = none, none
    for first in range(begin, end, PARTNERS):
        at, inside, _, above, below = _partners(
            keys, levels, first, end, key, level, theta, width, PARTNERS
        )
        x = tl.load(u + at, mask=inside, other=0.0) - origin
        y = x
        if WEIGHTED:
            x = x * tl.load(preferred + at, mask=inside, other=0.0)
            y = y * tl.load(other + at, mask=inside, other=0.0)
        a = _add(a, above, rounded(x * scale_a).to(tl.int64))
        b = _add(b, below, rounded(y * scale_b).to(tl.int64))
    return a, b


class FusedState(NamedTuple):
    """Data for Hessian products at one score vector, for the Triton kernels."""

    keys: Tensor
    curvature: Tensor  # the diagonal of the Hessian


class FusedPlan:
    """Tensors for Triton kernels that depend only on the pairs, which are implied by labels."""

    def __init__(self, pairs: LevelPairs, device: torch.device) -> None:
        offsets = pairs.documents.offsets
        has_pairs = (pairs.queries.n_levels > 1) & (pairs.query_weight != 0.0)
        self.n_documents = pairs.n_documents
        self.width = ANY_WIDTH if pairs.width is None else pairs.width
        self.offsets = torch.as_tensor(offsets, device=device)
        self.counting = torch.as_tensor(has_pairs.astype(np.int32), device=device)
        self.query_weight = torch.as_tensor(pairs.query_weight, device=device)
        self.level = torch.as_tensor(pairs.queries.level, dtype=torch.int32, device=device)
        self.margins = _on(pairs.margins, device)
        sides = (None, None) if pairs.factors is None else (side.T for side in pairs.factors)
        self.preferred, self.other = (_on(side, device) for side in sides)
        counts = -(-np.diff(offsets) // DOCUMENTS)
        query = np.repeat(np.arange(counts.size), counts)
        number = np.arange(query.size) - np.repeat(np.cumsum(counts) - counts, counts)
        begin = offsets[query]
        columns = [begin + DOCUMENTS * number, begin, offsets[query + 1], query]
        self.chunks = torch.as_tensor(np.stack(columns, axis=1).astype(np.int64), device=device)

    @staticmethod
    def suits(pairs: LevelPairs) -> bool:
        """Return True if queries are short enough to compare every two of their documents."""
        sizes = pairs.documents.sizes.astype(np.float64)
        return float(sizes @ sizes) <= MOST_COMPARISONS * max(float(sizes.sum()), 1.0)

    def kernel(self, loss: Loss) -> "FusedKernel":
        return FusedKernel(self, loss)


def _on(values: Any, device: torch.device) -> Tensor | None:
    if values is None:
        return None
    return torch.as_tensor(np.ascontiguousarray(values, dtype=np.float64), device=device)


class FusedKernel:
    """Evaluates a loss and its Hessian products by Triton kernels, on pairs implied by labels."""

    def __init__(self, plan: FusedPlan, loss: Loss) -> None:
        self.plan = plan
        pieces = loss.as_array()
        self._pieces, self._curved = (
            torch.as_tensor(np.ascontiguousarray(some), device=plan.offsets.device)
            for some in (pieces, pieces[pieces[:, 2] == 2.0])
        )

    def evaluate(self, scores: Tensor) -> ScoreLoss:
        plan = self.plan
        keys = torch.empty_like(scores)
        has_margins = plan.margins is not None
        margins = plan.margins if has_margins else scores
        _keys[(plan.query_weight.numel(),)](
            scores, margins, plan.offsets, plan.counting, keys, has_margins, TILE, **EXACT
        )
        columns = torch.empty((5, plan.n_documents), dtype=torch.float64, device=scores.device)
        self._launch(_evaluate, [], keys, self._pieces, [columns])
        table = segment_sums(columns[2:], columns[0], plan.offsets, plan.query_weight)
        state = FusedState(keys, columns[1])
        return ScoreLoss(table[:, :3], columns[0], state, table_totals(table))

    def hess_vec(self, state: FusedState, u: Tensor) -> Tensor:
        """Return Au for the Hessian A of the loss with respect to the scores."""
        image = torch.empty_like(u)
        self._launch(_product, [u], state.keys, self._curved, [state.curvature, image])
        return image

    def _launch(
        self, kernel: Any, first: list[Tensor], keys: Tensor, pieces: Tensor, last: list[Tensor]
    ) -> None:
        """Launch a Triton kernel with one program per chunk of documents."""
        plan = self.plan
        preferred, other = (keys if x is None else x for x in (plan.preferred, plan.other))
        n_ranks = 1 if plan.preferred is None else plan.preferred.shape[0]
        kernel[(plan.chunks.shape[0],)](
            *first, keys, plan.level, plan.chunks, plan.query_weight, pieces, pieces.shape[0],
            preferred, other, n_ranks, plan.n_documents, plan.width, *last,
            WEIGHTED=plan.preferred is not None, DOCUMENTS=DOCUMENTS, PARTNERS=PARTNERS, **EXACT,
        )  # fmt: skip
