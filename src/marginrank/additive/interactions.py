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
from marginrank.additive.feature_cells import CELLS, Cells
from marginrank.additive.grid_basis import SHARE
from marginrank.additive.grid_matrix import add_grids, nearest_columns
from marginrank.objective.objective import Objective, Point
from marginrank.objective.pair_sets import PairSet
from marginrank.objective.protocols import Scores

DOCUMENTS = 50_000  # that pairs are chosen by
FEATURES = 256  # whose pairs are looked at: those with the curves that vary most
STEPS = 4  # fits at most, between which pairs are chosen
SEED = 2  # of samples

Pair = tuple[int, int]


class RoughnessPenalty(NamedTuple):
    """The weight of roughness, and the scales of the features."""

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
    """Return k pairs of features, or fewer if there are no more, the most promising first.

    Parameters
    ----------
    objective : Objective
        That of the curves alone, with a smooth loss.
    k : int
        Number of pairs.
    penalty : RoughnessPenalty
        Of curves and grids.
    solve : callable
        Takes an objective and a start, and returns its weights.
    alone : collection of int
        Features that are in no pair.
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
    threads : int
        Number of threads; the results do not depend on it.
    """

    features: Integers
    codes: NDArray[np.uint8]
    cells: list[Cells]
    smoothness: float
    threads: int

    @classmethod
    def of(
        cls,
        point: Point,
        matrix: CurveMatrix,
        penalty: RoughnessPenalty,
        alone: Collection[int] = (),
    ) -> "Candidates":
        """Return those of a model without grids."""
        features = _leading(matrix, point.w, alone)
        codes = np.empty((features.size, matrix.n_rows), dtype=np.uint8)
        cells = []
        for row, k in zip(codes, features.tolist(), strict=True):
            cells.append(Cells.of(matrix, k, penalty.scale))
            row[:] = cells[-1].of_column[nearest_columns(matrix.codes, k)]
        return cls(features, codes, cells, penalty.smoothness, point.objective.threads)

    @cached_property
    def pairs(self) -> list[Pair]:
        """All pairs, in the order of the native sums."""
        return list(combinations(self.features.tolist(), 2))

    def best(self, point: Point, n: int, taken: list[Pair]) -> list[Pair]:
        """Return the n pairs of the largest gains that are not taken."""
        if not self.pairs:
            return []
        order = np.argsort(-self.gains(point), kind="stable")
        free = (self.pairs[at] for at in order.tolist() if self.pairs[at] not in taken)
        return list(islice(free, n))

    def gains(self, point: Point) -> Floats:
        """Return about how much the objective falls with a grid, for each pair."""
        slopes = self._sums(self._functions, _by_row(point, np.asarray(point.score_gradient)))
        gains = 0.5 * slopes**2 / (self._penalties + _curvature(point) * self._variances)
        by_pair: Floats = gains.sum(axis=(1, 2))
        return by_pair

    @cached_property
    def _functions(self) -> Floats:
        return np.stack([one.functions for one in self.cells])

    @cached_property
    def _variances(self) -> Floats:
        """How much each product of two functions varies, for each pair."""
        n_documents = self.codes.shape[1]
        squares: Floats = self._sums(self._functions**2, np.ones(n_documents)) / n_documents
        return squares

    @cached_property
    def _penalties(self) -> Floats:
        """What each product costs, for each pair."""
        first, second = np.triu_indices(self.features.size, 1)
        orders = np.stack([one.orders for one in self.cells])
        costs = np.stack([one.costs for one in self.cells])
        order = orders[first][:, :, None] + orders[second][:, None, :]
        cost = costs[first][:, :, None] * costs[second][:, None, :]
        penalties: Floats = cost * (1.0 + SHARE * self.smoothness * np.pi**2 * (order + order**2))
        return penalties

    def _sums(self, functions: Floats, z: Floats) -> Floats:
        """Return Σ z f for each pair and each product f of two functions of cells."""
        first, second = np.triu_indices(self.features.size, 1)
        sums = _core.cell_sums(self.codes, z, CELLS + 1, self.threads)
        by_cell = sums.reshape(-1, CELLS + 1, CELLS + 1)
        with serial_blas():
            products: Floats = functions[first].swapaxes(1, 2) @ by_cell @ functions[second]
        return products


def _leading(matrix: CurveMatrix, w: Floats, alone: Collection[int]) -> Integers:
    """Return the features with two values or more whose curves vary most, ascending."""
    knots = matrix.knots
    varying = np.setdiff1d(np.flatnonzero(np.diff(knots.starts) > 2), list(alone))
    if varying.size <= FEATURES:
        return varying
    variance = np.add.reduceat(w**2 * matrix.variances, matrix.basis.starts[:-1])
    leading = varying[np.argsort(-variance[varying], kind="stable")[:FEATURES]]
    return np.sort(leading)


def _curvature(point: Point) -> float:
    """Return about the trace of the Hessian of the loss by scores."""
    n_documents = point.objective.pairs.n_documents
    signs = np.random.default_rng(SEED).integers(0, 2, n_documents) * 2.0 - 1.0
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
