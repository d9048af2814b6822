"""Which pairs of features act together: chosen greedily, by what a grid for each would gain.

Curves are fitted first. The slopes z of the loss by score, a number a document, tell what is left
to gain. Every feature is cut into a few cells of about as many documents, and has a few functions
of its cells: cosines of the share of documents below, or indicators of categories and missing
values, orthonormal over the documents. A product f of two of them, one of each feature, has the
slope g = Σ z f. With its penalty ½ q and the curvature of the loss, about tr(H) Var(f), the best
multiple of it gains about

    ½ g² / (q + tr(H) Var(f))

and a pair of features the sum over its products. Sums of z by the cells of two features are all
that this takes. The best pairs get a grid, the model is fitted again, and so on.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from marginrank import _core
from marginrank._base.threads import serial_blas
from marginrank._base.types import Floats, Integers
from marginrank.data.knots import Knots, Places
from marginrank.objective.backends.curves import CurveMatrix
from marginrank.objective.backends.grids import (
    add_grids,
    column_counts,
    nearest_columns,
    scale_ratio,
)
from marginrank.objective.backends.interface import Scores
from marginrank.objective.gram import GramStore
from marginrank.objective.grid_basis import SHARE
from marginrank.objective.objective import Objective, Point
from marginrank.objective.pair_sets import PairSet

DOCUMENTS = 50_000  # that pairs are chosen by
FEATURES = 256  # whose pairs are looked at: those with the curves that vary most
CELLS = 8  # of a feature, beside that of missing values
COSINES = 5  # of a feature
STEPS = 4  # fits at most, between which pairs are chosen
SEED = 2  # of samples

Pair = tuple[int, int]


class Penalty(NamedTuple):
    """The weight of roughness, and the scales of the features."""

    smoothness: float
    scale: Floats | None


def choose_interactions(
    objective: Objective, k: int, penalty: Penalty, solve: Callable[..., Floats]
) -> list[Pair]:
    """Return k pairs of features, or fewer if there are no more, the most promising first.

    Parameters
    ----------
    objective : Objective
        That of the curves alone, with a smooth loss.
    k : int
        Number of pairs.
    penalty : Penalty
        Of curves and grids.
    solve : callable
        Takes an objective and a start, and returns its weights.
    """
    here = objective
    if objective.n_documents > DOCUMENTS:
        here = objective.sample(DOCUMENTS / objective.n_documents, SEED)
    curves = here.matrix
    assert isinstance(curves, CurveMatrix)
    chosen: list[Pair] = []
    w = np.zeros(here.n_features)
    candidates = None
    while True:
        w = solve(here, w0=w)
        point = here.at(w)
        if candidates is None:
            candidates = Candidates.of(point, curves, penalty)
        wanted = min(-(-k // STEPS), k - len(chosen))
        chosen += candidates.best(point, wanted, chosen)
        if len(chosen) >= min(k, len(candidates.pairs)):
            return chosen
        matrix = add_grids(curves, chosen, *penalty, here.threads)
        here = replace(here, matrix=matrix, grams=GramStore())
        w = np.concatenate([w, np.zeros(here.n_features - w.size)])


@dataclass(frozen=True)
class Candidates:
    """Pairs of features that are looked at.

    Attributes
    ----------
    features : ndarray of shape (n_features,)
        The features, ascending.
    codes : ndarray of uint8, shape (n_features, n_documents)
        The cell of each value.
    cells : list of Cells
        Functions of the cells of each feature.
    smoothness : float
        The weight of roughness.
    """

    features: Integers
    codes: NDArray[np.uint8]
    cells: "list[Cells]"
    smoothness: float

    @classmethod
    def of(cls, point: Point, matrix: CurveMatrix, penalty: Penalty) -> "Candidates":
        """Return those of a model without grids."""
        features = _leading(matrix, point.w)
        cells = [Cells.of(matrix.knots, matrix.places, k, penalty.scale) for k in features]
        codes = [
            one.of_column[nearest_columns(matrix.places, k)]
            for one, k in zip(cells, features, strict=True)
        ]
        shape = (features.size, matrix.n_rows)
        return cls(features, np.reshape(codes, shape).astype(np.uint8), cells, penalty.smoothness)

    @property
    def pairs(self) -> list[Pair]:
        """All pairs, in the order of the native sums."""
        return list(combinations(self.features.tolist(), 2))

    def best(self, point: Point, n: int, taken: list[Pair]) -> list[Pair]:
        """Return the n pairs of the largest gains that are not taken."""
        gains = dict(zip(self.pairs, self.gains(point).tolist(), strict=True))
        free = [pair for pair in gains if pair not in set(taken)]
        return sorted(free, key=lambda pair: -gains[pair])[:n]

    def gains(self, point: Point) -> Floats:
        """Return about how much the objective falls with a grid, for each pair."""
        threads = point.objective.threads
        slopes = _by_row(point, np.asarray(point.score_gradient))
        ones = np.ones(slopes.size)
        curvature = _curvature(point)
        first, second = np.triu_indices(self.features.size, 1)
        functions = np.stack([one.functions for one in self.cells])
        orders = np.stack([one.orders for one in self.cells])
        costs = np.stack([one.costs for one in self.cells])
        shape = (first.size, CELLS + 1, CELLS + 1)
        with serial_blas():
            sums = _core.cell_sums(self.codes, slopes, CELLS + 1, threads).reshape(shape)
            slope = functions[first].swapaxes(1, 2) @ sums @ functions[second]
            sums = _core.cell_sums(self.codes, ones, CELLS + 1, threads).reshape(shape)
            square = functions[first].swapaxes(1, 2) ** 2 @ sums @ functions[second] ** 2
        order = orders[first][:, :, None] + orders[second][:, None, :]
        cost = costs[first][:, :, None] * costs[second][:, None, :]
        rough = 1.0 + SHARE * self.smoothness * np.pi**2 * (order + order**2)
        gains = 0.5 * slope**2 / (rough * cost + curvature * square / slopes.size)
        by_pair: Floats = gains.sum(axis=(1, 2))
        return by_pair


class Cells(NamedTuple):
    """A feature in a few cells, and functions of these.

    Attributes
    ----------
    of_column : ndarray of shape (n_columns,)
        The cell of each column of the feature; that of missing values is 0.
    functions : ndarray of shape (CELLS + 1, CELLS)
        Values of the functions in the cells, orthonormal over the documents; zero behind the last.
    orders : ndarray of shape (CELLS,)
        p² for the cosine cos(πpu); zero for indicators.
    costs : ndarray of shape (CELLS,)
        What multiplies the penalty: (σ / τ)² of a cosine, 1 / share for an indicator.
    """

    of_column: Integers
    functions: Floats
    orders: Floats
    costs: Floats

    @classmethod
    def of(cls, knots: Knots, places: Places, k: int, scale: Floats | None) -> "Cells":
        """Return those of a feature."""
        counts = column_counts(knots, places, k)
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
        ratio = scale_ratio(knots, places, k, scale)
        return cls(of_column, *_cosines(shares, ratio))


def _indicators(shares: Floats) -> tuple[Floats, Floats]:
    """Return indicators of cells less their means, and the inverse of their shares."""
    functions, costs = np.zeros((CELLS + 1, CELLS)), np.ones(CELLS)
    used = np.flatnonzero(shares)[1:]
    raw = np.eye(CELLS + 1)[:, used]
    functions[:, : used.size] = _orthonormal(raw, shares)
    costs[: used.size] = 1.0 / shares[used]
    return functions, costs


def _cosines(shares: Floats, ratio: float) -> tuple[Floats, Floats, Floats]:
    """Return functions of the cells of a feature with an order, their orders and their costs."""
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
    """Return functions of cells made orthonormal to the constant and to each other."""
    used = shares > 0
    root = np.sqrt(shares[used])[:, None]
    with_constant = np.column_stack([np.ones(int(used.sum())), raw[used]])
    result = np.zeros_like(raw)
    result[used] = np.linalg.qr(root * with_constant)[0][:, 1:] / root
    return result


def _leading(matrix: CurveMatrix, w: Floats) -> Integers:
    """Return the features with two values or more whose curves vary most, ascending."""
    knots = matrix.knots
    varying = np.flatnonzero(np.diff(knots.starts) > 2)
    if varying.size <= FEATURES:
        return varying
    variance = np.add.reduceat(w**2 * matrix.variances, matrix.basis.starts[:-1])
    leading = varying[np.argsort(-variance[varying], kind="stable")[:FEATURES]]
    return np.sort(leading)


def _curvature(point: Point) -> float:
    """Return about the trace of the Hessian of the loss by scores."""
    signs = np.random.default_rng(SEED).integers(0, 2, point.objective.n_documents) * 2.0 - 1.0
    return float(signs @ np.asarray(point.hess_vec_scores(cast(Scores, signs))))


def _by_row(point: Point, of_documents: Floats) -> Floats:
    """Return numbers of documents by rows of the matrix."""
    pairs = point.objective.pairs
    assert isinstance(pairs, PairSet)
    rows = pairs.documents.rows
    if rows is None:
        return of_documents
    by_row = np.zeros(point.objective.matrix.n_rows)
    by_row[rows] = of_documents
    return by_row
