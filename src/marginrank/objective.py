"""The objective: X, a loss on pairs and a regulariser, seen through values and derivatives.

F(w) = ρ · ½‖w‖² + C · Σ_q ω_q Σ_{(i,j)} δ_ij ℓ(s_i − s_j),  s = Xw

ρ, the ridge, is 1 in a RankSVM and 0 where a solver adds a regulariser of its own.

A solver gets a :class:`Point` for each w it looks at and asks it for what it needs. X is touched
only where a method's description says "a sweep".
"""

from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from marginrank import _core
from marginrank._parameters import check_choice, check_number
from marginrank.data.ranking_data import Queries, RankingData, exact_sum
from marginrank.losses import Loss
from marginrank.pair_weights import PairFactors

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PAIR_SELECTIONS = ("all", "adjacent")
NORMALIZATIONS = ("none", "pairs", "query")
LONG_QUERIES = 256  # a query with more than this part of the documents is thinned in samples


@dataclass
class SweepCounter:
    """Counts sweeps over X; a sweep over a sample counts as its share."""

    total: float = 0.0


class Objective:
    """F(w) for a data set and a loss.

    Parameters
    ----------
    data : RankingData
        Documents, labels, queries and weights.
    loss : Loss
        The loss on a pair.
    C : float
        Weight of the loss against the regulariser.
    pair_selection : {"all", "adjacent"}
        All pairs of different labels, or only those of adjacent levels of a query.
    normalization : {"none", "pairs", "query"}
        "none" sums the loss over all pairs; "pairs" takes its mean over all pairs; "query" takes
        the mean over the pairs of each query, then the mean over the queries that have pairs. Where
        there are weights, means are weighted means.
    pair_weights : PairFactors, optional
        Weights δ_ij, by row of X.
    margins : ndarray of shape (n_documents,), optional
        d_i by row of X: a pair's margin becomes θ + d_i − d_j.
    ridge : float
        ρ, the weight of ½‖w‖².
    threads : int
        Number of threads; the results do not depend on it.
    """

    def __init__(
        self,
        data: RankingData,
        loss: Loss,
        *,
        C: float = 1.0,
        pair_selection: str = "all",
        normalization: str = "none",
        pair_weights: PairFactors | None = None,
        margins: Floats | None = None,
        ridge: float = 1.0,
        threads: int = 1,
    ) -> None:
        check_number("C", C)
        check_choice("pair_selection", pair_selection, PAIR_SELECTIONS)
        check_choice("normalization", normalization, NORMALIZATIONS)
        rows = slice(None) if data.queries.rows is None else data.queries.rows
        factors = None
        if pair_weights is not None:
            factors = PairFactors(pair_weights.preferred[rows], pair_weights.other[rows])
        self._setup(
            matrix=data.matrix,
            queries=data.queries,
            loss=loss,
            adjacent=pair_selection == "adjacent",
            query_weight=np.empty(0),
            factors=_scale_factors(factors, data.sample_weight),
            margins=None if margins is None else np.ascontiguousarray(margins[rows]),
            ridge=ridge,
            threads=threads,
            fraction=1.0,
            counter=SweepCounter(),
        )
        weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
        self._query_weight = C * weight * self._normalizer(normalization, weight)
        self._pairs = self._native_pairs(self._query_weight, loss.as_array(), self._margins)

    def _setup(
        self,
        *,
        matrix: _core.Matrix,
        queries: Queries,
        loss: Loss,
        adjacent: bool,
        query_weight: Floats,
        factors: PairFactors | None,
        margins: Floats | None,
        ridge: float,
        threads: int,
        fraction: float,
        counter: SweepCounter,
    ) -> None:
        self._matrix = matrix
        self._queries = queries
        self.loss = loss
        self._adjacent = adjacent
        self._query_weight = query_weight
        self._factors = factors
        self._margins = margins
        self.ridge = ridge
        self._threads = threads
        self.fraction = fraction
        self._counter = counter
        self._column_share = 1.0  # of the entries of X

    def _native_pairs(
        self, query_weight: Floats, pieces: Floats, margins: Floats | None
    ) -> _core.Pairs:
        queries = self._queries
        return _core.Pairs(
            self._matrix.n_rows,
            queries.offsets,
            queries.rows,
            queries.level,
            queries.n_levels,
            query_weight,
            None if self._factors is None else np.ascontiguousarray(self._factors.preferred),
            None if self._factors is None else np.ascontiguousarray(self._factors.other),
            margins,
            self._adjacent,
            pieces,
        )

    def _normalizer(self, normalization: str, query_weight: Floats) -> Floats:
        """Return what multiplies each query's weight so that sums become weighted means."""
        if normalization == "none":
            return np.ones(self.n_queries)
        pair_weight = self._pair_weight_by_query()
        has_pairs = (pair_weight > 0) & (query_weight > 0)
        if not has_pairs.any():
            return np.ones(self.n_queries)
        if normalization == "pairs":
            return np.full(self.n_queries, 1.0 / np.sum(query_weight * pair_weight))
        inverse = np.divide(1.0, pair_weight, out=np.zeros(self.n_queries), where=has_pairs)
        return inverse / np.sum(query_weight[has_pairs])

    def _pair_weight_by_query(self) -> Floats:
        """Return Σ δ_ij over the pairs of each query."""
        counts = self._queries.n_adjacent_pairs if self._adjacent else self._queries.n_pairs
        if self._factors is None:
            return counts.astype(np.float64)
        # At scores 0 every pair is inside the margin of 1.
        inside = self._native_pairs(np.ones(self.n_queries), np.array([[1.0, 1.0, 1.0]]), None)
        weights: Floats = _core.active_weights(inside, np.zeros(self.n_documents), self._threads)
        return weights

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self._matrix.n_columns

    @property
    def entries_per_document(self) -> float:
        """Stored entries of X by row, on average."""
        return self._matrix.n_entries / self._matrix.n_rows

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return self._queries.n_documents

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self._queries.n_queries

    @cached_property
    def _active_queries(self) -> NDArray[np.bool_]:
        """Which queries have pairs that count."""
        return (self._queries.n_pairs > 0) & (self._query_weight > 0)

    @cached_property
    def n_active_documents(self) -> int:
        """Number of documents of queries with pairs that count."""
        return int(np.sum(np.diff(self._queries.offsets)[self._active_queries]))

    @property
    def n_pairs(self) -> int:
        """Number of pairs in the loss, exactly."""
        counts = self._queries.n_adjacent_pairs if self._adjacent else self._queries.n_pairs
        return exact_sum(counts)

    @property
    def has_weight(self) -> bool:
        """Whether any pair has a positive weight."""
        weights = self._query_weight * self._pair_weight_by_query()
        return bool(np.any(weights > 0))

    @property
    def sweeps(self) -> float:
        """Sweeps over X so far, by this objective and its samples."""
        return self._counter.total

    def count_sweep(self, sweeps: float = 1.0) -> None:
        """Add to :attr:`sweeps`."""
        self._counter.total += sweeps * self.fraction * self._column_share

    def at(self, w: Floats, scores: Floats | None = None) -> "Point":
        """Look at w: a sweep, that also gives the gradient; none if its scores Xw are known."""
        w = np.ascontiguousarray(w, dtype=np.float64)
        if scores is not None:
            return self._at_scores(w, scores, None)
        self.count_sweep()
        value, score_gradient, gradient, scores, state = _core.evaluate(
            self._matrix, self._pairs, w, self._threads
        )
        point = Point(self, w, scores, value, score_gradient, state)
        point.gradient = self.ridge * w + gradient
        return point

    def _at_scores(self, w: Floats, scores: Floats, like: "Point | None") -> "Point":
        value, score_gradient, state = _core.evaluate_scores(
            self._pairs, scores, None if like is None else like.state, self._threads
        )
        return Point(self, w, scores, value, score_gradient, state)

    def with_loss(self, loss: Loss) -> "Objective":
        """Return the same objective with another loss on the pairs."""
        result = copy(self)
        result.loss = loss
        result._pairs = result._native_pairs(result._query_weight, loss.as_array(), result._margins)
        return result

    def restrict(self, columns: Integers) -> "Objective":
        """Return the objective of some features alone (ascending), whose columns are copied."""
        result = copy(self)
        result._matrix = self._matrix.take_columns(columns, self._threads)
        entries = max(self._matrix.n_entries, 1)
        result._column_share = self._column_share * result._matrix.n_entries / entries
        return result

    def column(self, j: int) -> Floats:
        """Return feature j of the grouped documents; less than a sweep."""
        return self._matrix.column(j, self._queries.rows, self._threads)

    def scores(self, w: Floats) -> Floats:
        """Return Xw, in the order of the grouped documents; a sweep."""
        self.count_sweep()
        return self._matrix.dot(w, self._queries.rows, self._threads)

    def sample(self, fraction: float, seed: int) -> "Objective":
        """Return the objective of a random sample of about `fraction` of the active documents.

        Whole queries are drawn; a query that has much of the data is thinned instead, document by
        document. Weights are scaled up so that the sample's objective estimates this
        one. For one seed, smaller samples are part of larger ones.
        """
        documents, query_of_document = self._draw(fraction, np.random.default_rng(seed))
        queries = self._queries.take(documents, query_of_document, self._threads)
        chosen = query_of_document[queries.offsets[:-1]]
        result = object.__new__(Objective)
        factors = self._factors
        result._setup(
            matrix=self._matrix,
            queries=queries,
            loss=self.loss,
            adjacent=self._adjacent,
            query_weight=np.empty(0),
            factors=factors and PairFactors(*(side[documents] for side in factors)),
            margins=None if self._margins is None else self._margins[documents],
            ridge=self.ridge,
            threads=self._threads,
            fraction=self.fraction * documents.size / self.n_documents,
            counter=self._counter,
        )
        result._column_share = self._column_share
        result._query_weight = self._scaled_up(result, chosen)
        result._pairs = result._native_pairs(
            result._query_weight, self.loss.as_array(), result._margins
        )
        return result

    def _draw(self, fraction: float, rng: np.random.Generator) -> tuple[Integers, Integers]:
        sizes = np.diff(self._queries.offsets)
        query_of_document = np.repeat(np.arange(self.n_queries), sizes)
        drawn_query = self._active_queries & (rng.random(self.n_queries) < fraction)
        long_query = self._active_queries & (sizes > self.n_active_documents / LONG_QUERIES)
        keep = drawn_query[query_of_document]
        if long_query.any():
            drawn_document = rng.random(self.n_documents) < fraction
            keep = np.where(long_query[query_of_document], drawn_document, keep)
        documents = np.flatnonzero(keep)
        return documents, query_of_document[documents]

    def _scaled_up(self, sample: "Objective", chosen: Integers) -> Floats:
        """Return query weights for a sample: by pairs kept in a query, then by queries kept."""

        def counts(objective: "Objective") -> Floats:
            queries = objective._queries
            pairs = queries.n_adjacent_pairs if objective._adjacent else queries.n_pairs
            return pairs.astype(np.float64)

        full, kept = counts(self)[chosen], counts(sample)
        weight = self._query_weight[chosen] * np.divide(
            full, kept, out=np.zeros_like(full), where=kept > 0
        )
        total = float(np.sum(self._query_weight * counts(self)))
        covered = float(np.sum(weight * kept))
        return weight * (total / covered) if covered > 0 else weight


def _scale_factors(factors: PairFactors | None, weight: Floats | None) -> PairFactors | None:
    """Multiply both sides by document weights."""
    if weight is None:
        return factors
    column = weight[:, None]
    if factors is None:
        return PairFactors(column, column)
    return PairFactors(factors.preferred * column, factors.other * column)


class Point:
    """The objective at one w."""

    def __init__(
        self,
        objective: Objective,
        w: Floats,
        scores: Floats,
        loss_value: float,
        score_gradient: Floats,
        state: _core.Point,
    ) -> None:
        self.objective = objective
        self.w = w
        self.scores = scores
        self.loss_value = loss_value
        self.score_gradient = score_gradient
        self.state = state

    @cached_property
    def value(self) -> float:
        """F(w)."""
        return 0.5 * self.objective.ridge * float(self.w @ self.w) + self.loss_value

    @cached_property
    def gradient(self) -> Floats:
        """∇F(w); a sweep, unless the point was made by one."""
        o = self.objective
        o.count_sweep()
        loss_gradient: Floats = _core.transpose_dot(
            o._matrix, o._pairs, self.score_gradient, o._threads
        )
        return o.ridge * self.w + loss_gradient

    @property
    def gap(self) -> float:
        """Certificate: F(w) − F* ≤ ½‖∇F(w)‖² / ρ, as F is ρ-strongly convex."""
        ridge = self.objective.ridge
        return 0.5 * float(self.gradient @ self.gradient) / ridge if ridge > 0 else np.inf

    def hess_vec(self, v: Floats) -> tuple[Floats, Floats]:
        """Return ∇²F(w) v and Xv; a sweep."""
        o = self.objective
        o.count_sweep()
        product, scores = _core.hess_vec(o._matrix, self.state, v, o._threads)
        return o.ridge * v + product, scores

    def hessian(self) -> Floats:
        """Return ∇²F(w), an n × n matrix; a sweep for each eight columns."""
        o = self.objective
        o.count_sweep(max(1.0, o.n_features / 8))
        hessian: Floats = _core.hessian(o._matrix, self.state, o._threads)
        hessian[np.diag_indices_from(hessian)] += o.ridge
        return hessian

    def hess_diag(self) -> Floats:
        """Return the diagonal of ∇²F(w); a sweep for each eight columns a row has entries in."""
        o = self.objective
        o.count_sweep(max(1.0, o.entries_per_document / 8))
        diagonal: Floats = _core.hess_diag(o._matrix, self.state, o._threads)
        return o.ridge + diagonal

    def move(self, step: float, direction: Floats, direction_scores: Floats) -> "Point":
        """Look at w + step · direction, given X · direction; no sweep."""
        return self.objective._at_scores(
            self.w + step * direction, self.scores + step * direction_scores, self
        )

    def slope(self, direction: Floats, direction_scores: Floats) -> float:
        """Return ∇F(w)ᵀ direction, given X · direction; no sweep."""
        ridge = self.objective.ridge
        return ridge * float(self.w @ direction) + float(self.score_gradient @ direction_scores)

    def curvature(self, direction: Floats, direction_scores: Floats) -> float:
        """Return directionᵀ ∇²F(w) direction, given X · direction; no sweep."""
        image = _core.hess_vec_scores(self.state, direction_scores, self.objective._threads)
        ridge = self.objective.ridge
        return ridge * float(direction @ direction) + float(direction_scores @ image)
