"""The objective: X, a loss on pairs and a regulariser, seen through values and derivatives.

F(w) = ρ · ½‖w‖² + C · Σ_q ω_q Σ_{(i,j)} δ_ij ℓ(s_i − s_j),  s = Xw

ρ, the ridge, is 1 in a RankSVM and 0 where a solver adds a regulariser of its own.

A solver gets a :class:`Point` for each w it looks at and asks it for what it needs. X is touched
only where a method's description says "a sweep".
"""

from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from marginrank import _core
from marginrank._base.cached import cached_property
from marginrank._base.parameters import (
    Mention,
    ParameterError,
    check_choice,
    check_number,
    given,
)
from marginrank._base.types import Floats, Integers
from marginrank.data.pair_lists import PairList
from marginrank.data.ranking_data import RankingData
from marginrank.objective.gram import Gram
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sets import LevelPairs, ListedPairs, PairSet
from marginrank.objective.pair_weights import PairFactors

PAIR_SELECTIONS = ("all", "adjacent")
NORMALIZATIONS = ("none", "pairs", "query")
PRECISION = float(np.finfo(np.float64).eps)
SMALL = 1e-3  # of a gradient, that its rounding may be without a closer look
MANY_FEATURES = 1 << 16  # for a sum of each in every block of documents


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
    pairs : PairList, optional
        The pairs, by row of X, instead of those that the labels make. Documents that are not part
        of a pair of positive weight are left out of the objective.
    pair_weights : PairFactors, optional
        Weights δ_ij, by row of X; a list of pairs has weights of its own instead.
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
        pairs: PairList | None = None,
        pair_weights: PairFactors | None = None,
        margins: Floats | None = None,
        ridge: float = 1.0,
        threads: int = 1,
    ) -> None:
        check_number("C", C)
        check_choice("pair_selection", pair_selection, PAIR_SELECTIONS)
        check_choice("normalization", normalization, NORMALIZATIONS)
        if pairs is None:
            pair_set: PairSet = LevelPairs.from_data(
                data,
                adjacent=pair_selection == "adjacent",
                pair_weights=pair_weights,
                margins=margins,
                threads=threads,
            )
        else:
            refuse_selection(pair_selection)
            if pair_weights is not None:
                raise ValueError("pair_weights does not go with pairs; give the pairs weights.")
            pair_set = ListedPairs.from_data(data, pairs, margins=margins, threads=threads)
        self._matrix = data.matrix
        self._features = data.X
        self._columns: Integers | None = None  # of it that are in use; None for all
        self._grams: list[Gram] = []  # at most one, shared with other losses on the documents
        self._threads = threads
        self._counter = SweepCounter()
        self._column_share = 1.0  # of the entries of X
        self.ridge = ridge
        self.fraction = 1.0
        self._set_loss(pair_set.weighted(C, normalization), loss)

    def _set_loss(self, pair_set: PairSet, loss: Loss) -> None:
        self._pair_set = pair_set
        self._pairs = pair_set.native(loss)
        self.loss = loss

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
        return self._pair_set.documents.n_documents

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self._pair_set.documents.n_queries

    @property
    def rows(self) -> Integers | None:
        """Row of X of each document; None where documents and rows are the same."""
        return self._pair_set.documents.rows

    @property
    def n_active_documents(self) -> int:
        """Number of documents that matter: of queries with pairs that count, or of listed pairs."""
        return self._pair_set.n_active_documents

    @property
    def n_pairs(self) -> int:
        """Number of pairs in the loss, exactly."""
        return self._pair_set.n_pairs

    @property
    def has_weight(self) -> bool:
        """Whether any pair has a positive weight."""
        return self._pair_set.has_weight

    @property
    def sweeps(self) -> float:
        """Sweeps over X so far, by this objective and its samples."""
        return self._counter.total

    def count_sweep(self, sweeps: float = 1.0) -> None:
        """Add to :attr:`sweeps`."""
        self._counter.total += sweeps * self.fraction * self._column_share

    def at(
        self, w: Floats, scores: Floats | None = None, *, like: "Point | None" = None
    ) -> "Point":
        """Look at w: a sweep, that also gives the gradient; none if its scores Xw are known.

        It is faster if the scores rank documents much as those of the point `like` do.
        """
        w = np.ascontiguousarray(w, dtype=np.float64)
        if scores is not None:
            return self._at_scores(w, scores, like, np.abs(w))
        self.count_sweep()
        losses, score_gradient, gradient, scores, state = _core.evaluate(
            self._matrix, self._pairs, w, None if like is None else like.state, self._threads
        )
        point = Point(self, w, scores, losses, score_gradient, state, np.abs(w))
        point.gradient = self.ridge * w + gradient
        return point

    def at_zero(self) -> "Point":
        """Look at w = 0; no sweep."""
        return self.at(np.zeros(self.n_features), np.zeros(self.n_documents))

    def at_point(self, point: "Point") -> "Point":
        """Look at the w of a point of another loss on the same documents; no sweep."""
        return self._at_scores(point.w, point.scores, point, point.travelled)

    def _at_scores(
        self, w: Floats, scores: Floats, like: "Point | None", travelled: Floats
    ) -> "Point":
        losses, score_gradient, state = _core.evaluate_scores(
            self._pairs, scores, None if like is None else like.state, self._threads
        )
        return Point(self, w, scores, losses, score_gradient, state, travelled)

    def with_loss(self, loss: Loss) -> "Objective":
        """Return the same objective with another loss on the pairs."""
        result = copy(self)
        result._set_loss(self._pair_set, loss)
        return result

    def with_ridge(self, ridge: float) -> "Objective":
        """Return the same objective with another weight of ½‖w‖²."""
        result = copy(self)
        result.ridge = ridge
        return result

    def restrict(self, columns: Integers) -> "Objective":
        """Return the objective of some features alone (ascending), whose columns are copied."""
        result = copy(self)
        result._matrix = self._matrix.take_columns(columns, self._threads)
        result._columns = columns if self._columns is None else self._columns[columns]
        result._grams = []
        entries = max(self._matrix.n_entries, 1)
        result._column_share = self._column_share * result._matrix.n_entries / entries
        return result

    @property
    def feature_magnitudes(self) -> Floats:
        """The largest absolute value of each feature; a sweep, if X was not checked before."""
        return self._matrix.magnitudes(self._threads)

    def column(self, j: int) -> Floats:
        """Return feature j of the grouped documents; less than a sweep."""
        return self._matrix.column(j, self.rows, self._threads)

    def scores(self, w: Floats) -> Floats:
        """Return Xw, in the order of the grouped documents; a sweep."""
        self.count_sweep()
        return self._matrix.dot(w, self.rows, self._threads)

    def combine(self, z: Floats) -> Floats:
        """Return Xᵀz for an entry a document; a sweep."""
        self.count_sweep()
        combination: Floats = _core.transpose_dot(self._matrix, self._pairs, z, self._threads)
        return combination

    def gram(self) -> Gram:
        """Return the inner products of the active documents: m² numbers; made once, from X."""
        if not self._grams:
            grouped, active = self._pair_set.documents, self._pair_set.active_queries
            sizes = np.diff(grouped.offsets)
            documents = np.flatnonzero(np.repeat(active, sizes))
            rows = documents if grouped.rows is None else grouped.rows[documents]
            offsets = np.concatenate([[0], np.cumsum(sizes[active])])
            columns = np.arange(self.n_features) if self._columns is None else self._columns
            self._grams.append(Gram.of_rows(self._features, rows, columns, documents, offsets))
        return self._grams[0]

    def sample(self, fraction: float, seed: int) -> "Objective":
        """Return the objective of a random sample of about `fraction` of the active documents.

        Whole queries are drawn; a query that has much of the data is thinned instead, document by
        document, or pair by pair if the pairs are listed. Weights are scaled up so that the
        sample's objective estimates this one. For one seed, smaller samples are part of larger
        ones.
        """
        result = copy(self)
        result._set_loss(self._pair_set.sample(fraction, seed), self.loss)
        result._grams = []
        result.fraction = self.fraction * result.n_documents / self.n_documents
        return result


def refuse_selection(pair_selection: str) -> None:
    """Refuse what has no meaning for pairs that are listed."""
    if pair_selection != "all":
        raise ParameterError(
            given("pair_selection", pair_selection),
            " does not go with ",
            Mention("pairs"),
            ", which say themselves what is compared; drop one of them.",
        )


class GroupedLoss(NamedTuple):
    """The loss at one w as a sum over groups of queries."""

    losses: Floats  # L_g(w)
    gradients: Floats  # ∇L_g(w), a row a group


class Point:
    """The objective at one w.

    Every certificate counts its own rounding. What was added up is known, by size, from the
    kernels: about one part in 10¹⁶ of it may be wrong. Scores are sums of products of features and
    weights, and those of a point that was reached along lines carry the rounding of all the steps.

    Attributes
    ----------
    losses : ndarray of shape (n_queries,)
        The loss of each query.
    travelled : ndarray of shape (n_features,)
        How far each weight has gone in steps along which scores were updated, from zero.
    """

    def __init__(
        self,
        objective: Objective,
        w: Floats,
        scores: Floats,
        query_losses: Floats,
        score_gradient: Floats,
        state: _core.Point,
        travelled: Floats,
    ) -> None:
        self.objective = objective
        self.w = w
        self.scores = scores
        self.travelled = travelled
        self.losses, value_size, slope_size = query_losses.T
        self.loss_value = float(np.sum(self.losses))
        self._value_size = float(np.sum(value_size))
        self._slope_size = float(np.sum(slope_size))
        self._slope_sizes = slope_size
        self.score_gradient = score_gradient
        self.state = state

    @cached_property
    def value(self) -> float:
        """F(w)."""
        return 0.5 * self.objective.ridge * float(self.w @ self.w) + self.loss_value

    @cached_property
    def gradient(self) -> Floats:
        """∇F(w); a sweep, unless the point was made by one."""
        return self.objective.ridge * self.w + self.objective.combine(self.score_gradient)

    def by_group(self, n_groups: int) -> "GroupedLoss":
        """Return the loss as a sum over at most `n_groups` groups of queries.

        A sweep, that also gives the gradient if there is none yet.
        """
        o = self.objective
        o.count_sweep()
        offsets = o._pair_set.documents.offsets
        n_queries = offsets.size - 1
        queries = np.linspace(0, n_queries, min(n_groups, n_queries) + 1).astype(np.int64)
        gradients = _core.transpose_dot_by_group(
            o._matrix, o._pairs, self.score_gradient, offsets[queries], o._threads
        )
        if "gradient" not in self.__dict__:
            self.gradient = o.ridge * self.w + gradients.sum(axis=0)
        return GroupedLoss(np.add.reduceat(self.losses, queries[:-1]), gradients)

    @property
    def sum_rounding(self) -> float:
        """How far the loss may be from that of the scores."""
        return PRECISION * self._value_size

    @cached_property
    def score_rounding(self) -> float:
        """How far planes that touch the loss here may be off, as scores are."""
        return self._slope_size * self._score_error

    @cached_property
    def _score_error(self) -> float:
        """How far a score may be from that of w."""
        return PRECISION * float(self.objective.feature_magnitudes @ self.travelled)

    @property
    def slope_rounding(self) -> float:
        """How far the loss's gradient may be off, for a feature of magnitude one."""
        return PRECISION * self._slope_size

    @cached_property
    def rounding(self) -> float:
        """How far the loss of w may be above what was computed."""
        if self.objective.loss.smooth:
            return self.sum_rounding + self.score_rounding
        # Whether a pair at a kink costs anything depends on the last digits of its scores.
        raised = self.objective.with_loss(self.objective.loss.shifted(2.0 * self._score_error))
        above = raised.at_point(self)
        return max(above.loss_value - self.loss_value, 0.0) + above.sum_rounding

    @cached_property
    def gradient_rounding(self) -> float:
        """How far ∇F(w) may be off, as a length; a sweep where the largest values say too much."""
        o = self.objective
        of_ridge = PRECISION * o.ridge * float(np.linalg.norm(self.w))
        of_loss = self.slope_rounding * float(np.linalg.norm(o.feature_magnitudes))
        if of_loss > SMALL * float(np.linalg.norm(self.gradient)) and o.n_features <= MANY_FEATURES:
            # Errors of queries are independent, and most have no value as large as the largest.
            o.count_sweep()
            squares = _core.query_squares(
                o._matrix, o._pairs, np.ascontiguousarray(self._slope_sizes), o._threads
            )
            of_loss = min(of_loss, PRECISION * float(np.sqrt(np.sum(squares))))
        return of_loss + of_ridge

    @property
    def gradient_gap(self) -> float:
        """½‖∇F(w)‖² / ρ, which bounds F(w) − F* as F is ρ-strongly convex."""
        ridge = self.objective.ridge
        length = float(np.linalg.norm(self.gradient)) + self.gradient_rounding
        return 0.5 * length * length / ridge if ridge > 0 else np.inf

    @property
    def gap(self) -> float:
        """Certificate: F(w) − F* is not larger."""
        return self.gradient_gap + self.rounding

    def hess_vec(self, v: Floats) -> tuple[Floats, Floats]:
        """Return ∇²F(w) v and Xv; a sweep."""
        o = self.objective
        o.count_sweep()
        product, scores = _core.hess_vec(o._matrix, self.state, v, o._threads)
        return o.ridge * v + product, scores

    def hess_vec_scores(self, u: Floats) -> Floats:
        """Return A u, where A is the Hessian of the loss as a function of scores; no sweep."""
        image: Floats = _core.hess_vec_scores(self.state, u, self.objective._threads)
        return image

    def hessian(self) -> Floats:
        """Return ∇²F(w), an n × n matrix; a sweep for each eight columns."""
        o = self.objective
        o.count_sweep(max(1.0, o.n_features / 8))
        hessian: Floats = _core.hessian(o._matrix, self.state, o._threads)
        diagonal = np.diag_indices_from(hessian)
        hessian[diagonal] = o.ridge + np.maximum(hessian[diagonal], 0.0)  # less by rounding only
        return hessian

    def hess_diag(self) -> Floats:
        """Return the diagonal of ∇²F(w); a sweep for each eight columns a row has entries in."""
        o = self.objective
        o.count_sweep(max(1.0, o.entries_per_document / 8))
        diagonal: Floats = _core.hess_diag(o._matrix, self.state, o._threads)
        return o.ridge + np.maximum(diagonal, 0.0)  # less by rounding only

    def move(self, step: float, direction: Floats, direction_scores: Floats) -> "Point":
        """Look at w + step · direction, given X · direction; no sweep."""
        change = step * direction
        return self.objective._at_scores(
            self.w + change,
            self.scores + step * direction_scores,
            self,
            self.travelled + np.abs(change),
        )

    def slope(self, direction: Floats, direction_scores: Floats) -> float:
        """Return ∇F(w)ᵀ direction, given X · direction; no sweep."""
        ridge = self.objective.ridge
        return ridge * float(self.w @ direction) + float(self.score_gradient @ direction_scores)

    def curvature(self, direction: Floats, direction_scores: Floats) -> float:
        """Return directionᵀ ∇²F(w) direction, given X · direction; no sweep."""
        image = self.hess_vec_scores(direction_scores)
        ridge = self.objective.ridge
        return ridge * float(direction @ direction) + float(direction_scores @ image)
