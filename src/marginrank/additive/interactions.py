"""Greedy selection of interactions: pairs of features whose grids reduce the objective most.

An interaction is a joint function of two features, stored on a grid. A model with curves only is
fitted first. Let z be the gradient and H the Hessian of its loss with respect to the scores of the
documents. Every feature is cut into *cells*: a few bins with about the same number of documents. On
the cells, a few functions are defined that are orthonormal over the documents: cosines of the share
of documents with a smaller value, or indicators of categories and missing values. Let f be a
product of two such functions, one per feature, and ½ q the penalty of f. If α f is added to the
scores, the derivative of the loss at α = 0 is g = Σ z f, and the second derivative is about
tr(H) Var(f). The best α then reduces the objective by about

    ½ g² / (q + tr(H) Var(f))

The *gain* of a pair of features is the sum over its products f. It needs only the sums of z over
each combination of two cells. The best pairs get a grid, the model is fitted again, and so on.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import combinations, islice
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from marginrank import _core
from marginrank._utils.threads import cached_property, serial_blas
from marginrank._utils.types import Floats, Integers
from marginrank.additive.curve_matrix import CurveMatrix
from marginrank.additive.grid_basis import (
    SHARE,
    add_grids,
    column_counts,
    nearest_columns,
    scale_ratio,
)
from marginrank.objective.objective import Objective, Point
from marginrank.objective.pair_sets import PairSet
from marginrank.objective.protocols import Scores

DOCUMENTS = 50_000  # largest number of documents from which pairs are chosen; else a sample
FEATURES = 256  # candidates are pairs of at most this many features, whose curves vary most
# Pairs are chosen in at most this many steps with a fit after each: a fit per pair would take too
# long, and without fits between, pairs that explain the same documents would all be chosen.
STEPS = 4
SEED = 2  # random seed of document samples
CELLS = 8  # cells per feature, besides the cell of missing values
COSINES = 5  # cosines per numeric feature

Pair = tuple[int, int]


class RoughnessPenalty(NamedTuple):
    """Parameters of the roughness penalty on curves: smoothness and scales of the features."""

    smoothness: float
    scale: Floats | None


def choose_interactions(
    objective: Objective,
    k: int,
    penalty: RoughnessPenalty,
    solve: Callable[..., Floats],
    *,
    alone: Collection[int] = (),
) -> list[Pair]:
    """Return up to k pairs of features whose joint functions would reduce the objective most.

    The pair with the largest estimated reduction is first. `objective` has curves but no grids, and
    a smooth loss. `solve` returns the weights that minimize an objective, given initial weights.
    Features in `alone` are not paired.
    """
    here = objective
    if objective.pairs.n_documents > DOCUMENTS:
        here = objective.sample(DOCUMENTS / objective.pairs.n_documents, SEED)
    curves = here.matrix
    assert isinstance(curves, CurveMatrix)
    chosen: list[Pair] = []
    w = np.zeros(here.n_features)
    candidates = None
    while True:
        w = solve(here, w0=w)
        point = here.at(w)
        if candidates is None:
            candidates = Candidates.of(point, curves, penalty, alone)
        wanted = min(-(-k // STEPS), k - len(chosen))
        chosen += candidates.best(point, wanted, chosen)
        if len(chosen) >= min(k, len(candidates.pairs)):
            return chosen
        matrix = add_grids(curves, chosen, *penalty, here.threads)
        here = here.on(matrix)
        w = np.concatenate([w, np.zeros(here.n_features - w.size)])


class Cells(NamedTuple):
    """Bins (cells) of one feature, and functions on them from which interactions are estimated."""

    of_column: Integers  # the cell of each column of the feature; 0 for missing values
    functions: Floats  # (CELLS + 1, CELLS): one row per cell; unused columns are zero
    orders: Floats  # order of each function: p² for the cosine cos(πpu), zero for indicators
    costs: Floats  # factor of the penalty: (σ / τ)² of a cosine, 1 / share of an indicator

    @classmethod
    def of(cls, matrix: CurveMatrix, k: int, scale: Floats | None) -> "Cells":
        knots = matrix.knots
        counts = column_counts(knots, matrix.codes, k)
        below = np.cumsum(counts[1:]) - 0.5 * counts[1:]
        if knots.categorical[k]:
            rank = np.argsort(np.argsort(-counts[1:], kind="stable"), kind="stable")
            cell = np.where(rank < CELLS, rank + 1, 0)
        else:
            cell = 1 + (CELLS * below / max(counts[1:].sum(), 1)).astype(np.int64)
        of_column = np.concatenate([[0], np.minimum(cell, CELLS)])
        shares = np.bincount(of_column, counts, minlength=CELLS + 1) / counts.sum()
        if knots.categorical[k]:
            functions, costs = _indicators(shares)
            return cls(of_column, functions, np.zeros(CELLS), costs)
        return cls(of_column, *_cosines(shares, scale_ratio(matrix, k, scale)))


def _indicators(shares: Floats) -> tuple[Floats, Floats]:
    """Return the functions of a categorical feature, orthonormal indicators, and their costs.

    `shares` has the share of the documents in each cell.
    """
    functions, costs = np.zeros((CELLS + 1, CELLS)), np.ones(CELLS)
    used = np.flatnonzero(shares)[1:]
    raw = np.eye(CELLS + 1)[:, used]
    functions[:, : used.size] = _orthonormal(raw, shares)
    costs[: used.size] = 1.0 / shares[used]
    return functions, costs


def _cosines(shares: Floats, ratio: float) -> tuple[Floats, Floats, Floats]:
    """Return the functions of a numeric feature, mostly cosines, with their orders and costs.

    `shares` has the share of the documents in each cell, and `ratio` is (σ / τ)² of the feature.
    """
    functions, orders, costs = np.zeros((CELLS + 1, CELLS)), np.zeros(CELLS), np.ones(CELLS)
    n_cosines = min(COSINES, int(np.count_nonzero(shares[1:])) - 1)
    order = np.arange(1, n_cosines + 1)
    below = (np.cumsum(shares) - 0.5 * shares - shares[0]) / max(1.0 - shares[0], 1e-300)
    raw = np.cos(np.pi * np.outer(below, order))
    raw[0] = 0.0
    if shares[0] > 0:
        raw = np.column_stack([np.eye(CELLS + 1)[0], raw])
    first = raw.shape[1] - n_cosines
    functions[:, : raw.shape[1]] = _orthonormal(raw, shares)
    orders[first : raw.shape[1]] = order**2
    costs[first : raw.shape[1]] = ratio
    costs[:first] = 1.0 / shares[0] if first else 1.0
    return functions, orders, costs


def _orthonormal(raw: Floats, shares: Floats) -> Floats:
    """Return functions made orthonormal over the documents and orthogonal to the constant function.

    `raw` has one row per cell and one column per function.
    """
    used = shares > 0
    root = np.sqrt(shares[used])[:, None]
    with_constant = np.column_stack([np.ones(int(used.sum())), raw[used]])
    result = np.zeros_like(raw)
    result[used] = np.linalg.qr(root * with_constant)[0][:, 1:] / root
    return result


@dataclass(frozen=True)
class Candidates:
    """Features that may form an interaction, with the cell (bin) of each of their values."""

    features: Integers  # ascending
    codes: NDArray[np.uint8]  # (n_features, n_documents): the cell of each value
    cells: list[Cells]  # one per feature
    smoothness: float
    threads: int

    @classmethod
    def of(
        cls, point: Point, matrix: CurveMatrix, penalty: RoughnessPenalty, alone: Collection[int]
    ) -> "Candidates":
        """Return the features that may form an interaction, given a fit with curves only.

        `point` is the objective at the weights of the fit. Features in `alone` are left out.
        """
        features = _leading(matrix, point.w, alone)
        codes = np.empty((features.size, matrix.n_rows), dtype=np.uint8)
        cells = []
        for row, k in zip(codes, features.tolist(), strict=True):
            cells.append(Cells.of(matrix, k, penalty.scale))
            row[:] = cells[-1].of_column[nearest_columns(matrix.codes, k)]
        return cls(features, codes, cells, penalty.smoothness, point.objective.threads)

    @cached_property
    def pairs(self) -> list[Pair]:
        """All pairs of candidate features for an interaction, in the order of :meth:`gains`."""
        return list(combinations(self.features.tolist(), 2))

    def best(self, point: Point, n: int, taken: list[Pair]) -> list[Pair]:
        """Return the n pairs of features with the largest estimated gains, except `taken` pairs."""
        if not self.pairs:
            return []
        order = np.argsort(-self.gains(point), kind="stable")
        free = (self.pairs[at] for at in order.tolist() if self.pairs[at] not in taken)
        return list(islice(free, n))

    def gains(self, point: Point) -> Floats:
        """Return the estimated decrease of the objective by a joint function of each pair."""
        slopes = self._sums(self._functions, _by_row(point, np.asarray(point.score_gradient)))
        gains = 0.5 * slopes**2 / (self._penalties + _curvature(point) * self._variances)
        by_pair: Floats = gains.sum(axis=(1, 2))
        return by_pair

    @cached_property
    def _functions(self) -> Floats:
        return np.stack([one.functions for one in self.cells])

    @cached_property
    def _variances(self) -> Floats:
        """The mean square of each product f of two functions, for each pair of features."""
        n_documents = self.codes.shape[1]
        squares: Floats = self._sums(self._functions**2, np.ones(n_documents)) / n_documents
        return squares

    @cached_property
    def _penalties(self) -> Floats:
        """The penalty of each product f of two functions, for each pair of features."""
        first, second = np.triu_indices(self.features.size, 1)
        orders = np.stack([one.orders for one in self.cells])
        costs = np.stack([one.costs for one in self.cells])
        order = orders[first][:, :, None] + orders[second][:, None, :]
        cost = costs[first][:, :, None] * costs[second][:, None, :]
        penalties: Floats = cost * (1.0 + SHARE * self.smoothness * np.pi**2 * (order + order**2))
        return penalties

    def _sums(self, functions: Floats, z: Floats) -> Floats:
        """Return Σ z f over the documents for each pair of features and each product f.

        f is a product of a function of the first feature and a function of the second feature.
        """
        first, second = np.triu_indices(self.features.size, 1)
        sums = _core.cell_sums(self.codes, z, CELLS + 1, self.threads)
        by_cell = sums.reshape(-1, CELLS + 1, CELLS + 1)
        with serial_blas():
            products: Floats = functions[first].swapaxes(1, 2) @ by_cell @ functions[second]
        return products


def _leading(matrix: CurveMatrix, w: Floats, alone: Collection[int]) -> Integers:
    """Return up to FEATURES features whose fitted curves vary most, in ascending order.

    Features with one value and features in `alone` are left out.
    """
    knots = matrix.knots
    varying = np.setdiff1d(np.flatnonzero(np.diff(knots.starts) > 2), list(alone))
    if varying.size <= FEATURES:
        return varying
    variance = np.add.reduceat(w**2 * matrix.variances, matrix.basis.starts[:-1])
    leading = varying[np.argsort(-variance[varying], kind="stable")[:FEATURES]]
    return np.sort(leading)


def _curvature(point: Point) -> float:
    """Return Hutchinson's estimate of the trace of the Hessian with respect to the scores."""
    n_documents = point.objective.pairs.n_documents
    signs = np.random.default_rng(SEED).integers(0, 2, n_documents) * 2.0 - 1.0
    return float(signs @ np.asarray(point.hess_vec_scores(cast(Scores, signs))))


def _by_row(point: Point, of_documents: Floats) -> Floats:
    """Return values, one per document of the pair set, by row of X; other rows get zero."""
    pairs = point.objective.pairs
    assert isinstance(pairs, PairSet)
    rows = pairs.documents.rows
    if rows is None:
        return of_documents
    by_row = np.zeros(point.objective.matrix.n_rows)
    by_row[rows] = of_documents
    return by_row
