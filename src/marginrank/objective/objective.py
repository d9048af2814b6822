"""The objective: X, a loss on pairs and a regulariser, seen through values and derivatives.

F(w) = ρ · ½‖w‖² + C · Σ_q ω_q Σ_{(i,j)} δ_ij ℓ(s_i − s_j),  s = Xw

ρ, the ridge, is 1 in a RankSVM and 0 where a solver adds a regulariser of its own.

A solver gets a :class:`Point` for each w it evaluates and asks it for what it needs. X is touched
only where a method's description says "a sweep". Vectors with one entry per document are opaque:
:attr:`Objective.space` computes with them.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from marginrank._utils.threads import cached_property
from marginrank._utils.types import Floats, Integers
from marginrank.objective.journal import Journal
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sets import PairCounts
from marginrank.objective.protocols import (
    Design,
    Evaluation,
    GroupedLoss,
    Matrix,
    PairLoss,
    Scores,
    ScoreSpace,
)

PRECISION = float(np.finfo(np.float64).eps)
SMALL = 1e-3  # of a gradient, that its rounding may be without a closer look
MANY_FEATURES = 1 << 16  # for a sum of each in every block of documents


@dataclass(frozen=True, kw_only=True, eq=False)
class Objective:
    """F(w) for a matrix, a set of pairs and a loss.

    Parameters
    ----------
    design : Design
        X and the pairs; C, normalization and all weights are in the weights of its queries and
        pairs.
    loss : Loss
        The loss on a pair.
    ridge : float
        ρ, the weight of ½‖w‖².
    features : ndarray of int64, optional
        Numbers of its features in the data; None where these are all.
    fraction : float
        Share of the documents of the data that this is a sample of.
    share : float
        Share of the entries of X that are in its columns.
    journal : Journal
        What has happened to this objective and all that were made from it.
    """

    design: Design
    loss: Loss
    ridge: float = 1.0
    features: Integers | None = None
    fraction: float = 1.0
    share: float = 1.0
    journal: Journal = field(default_factory=Journal)

    @cached_property
    def pair_loss(self) -> PairLoss:
        """The loss as a function of scores."""
        return self.design.pair_loss(self.loss)

    @property
    def space(self) -> ScoreSpace:
        """Computes with scores."""
        return self.design.space

    @property
    def matrix(self) -> Matrix:
        """X, as a backend holds it."""
        return self.design.matrix

    @property
    def pairs(self) -> PairCounts:
        """The pairs."""
        return self.design.pairs

    @property
    def threads(self) -> int:
        """Number of threads; the results do not depend on it."""
        return self.design.threads

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.matrix.n_features

    @property
    def entries_per_document(self) -> float:
        """Stored entries of X by row, on average."""
        return self.matrix.n_entries / self.matrix.n_rows

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return self.pairs.n_documents

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.pairs.n_queries

    @property
    def n_active_documents(self) -> int:
        """Number of documents that matter: of queries with pairs that count, or of listed pairs."""
        return self.pairs.n_active_documents

    @property
    def n_pairs(self) -> int:
        """Number of pairs in the loss, exactly."""
        return self.pairs.n_pairs

    @property
    def has_weight(self) -> bool:
        """Whether any pair has a positive weight."""
        return self.pairs.has_weight

    @property
    def sweeps(self) -> float:
        """Sweeps over X so far, by this objective and its samples."""
        return self.journal.sweeps

    def count_sweep(self, sweeps: float = 1.0) -> None:
        """Add to :attr:`sweeps`."""
        self.journal.sweeps += sweeps * self.fraction * self.share

    def at(
        self,
        w: Floats,
        scores: Scores | None = None,
        *,
        accumulated_update: Floats | None = None,
        like: "Point | None" = None,
    ) -> "Point":
        """Evaluate w: a sweep, that also gives the gradient; none if its scores Xw are known.

        Scores that come from another point carry its rounding, by its `accumulated_update`. It is
        faster if the scores rank documents much as those of the point `like` do.
        """
        w = np.ascontiguousarray(w, dtype=np.float64)
        state = None if like is None else like.state
        if scores is None:
            self.count_sweep()
            evaluation = self.design.evaluate(self.pair_loss, w, state)
        else:
            evaluation = self.pair_loss.evaluate(scores, state)
        return Point(
            self, w, evaluation, np.abs(w) if accumulated_update is None else accumulated_update
        )

    def at_zero(self) -> "Point":
        """Evaluate w = 0; no sweep."""
        return self.at(np.zeros(self.n_features), self.space.zero())

    def at_point(self, point: "Point") -> "Point":
        """Evaluate the w of a point of another loss on the same documents; no sweep."""
        evaluation = self.pair_loss.evaluate(point.scores, point.state)
        return Point(self, point.w, evaluation, point.accumulated_update)

    def with_loss(self, loss: Loss) -> "Objective":
        """Return the same objective with another loss on the pairs."""
        return replace(self, loss=loss)

    def with_ridge(self, ridge: float) -> "Objective":
        """Return the same objective with another weight of ½‖w‖²."""
        return replace(self, ridge=ridge)

    def on(self, matrix: Matrix | None = None, pairs: PairCounts | None = None) -> "Objective":
        """Return the same objective on another X, or with other pairs."""
        matrix, pairs = matrix or self.matrix, pairs or self.pairs
        return replace(self, design=matrix.design(pairs, self.threads))

    def restrict(self, columns: Integers) -> "Objective":
        """Return the objective of some features alone (ascending), whose columns are copied."""
        matrix = self.matrix.restrict(columns, self.threads)
        share = self.share * matrix.n_entries / max(self.matrix.n_entries, 1)
        return replace(self.on(matrix), features=self.feature(columns), share=share)

    def feature(self, j: Any) -> Any:
        """Return the number in the data of the feature with number j here, or of several."""
        return self.matrix.feature(j) if self.features is None else self.features[j]

    def sample(self, fraction: float, seed: int) -> "Objective":
        """Return the objective of a random sample of about `fraction` of the active documents.

        Whole queries are drawn; one that has much of the data is thinned instead, document by
        document, or pair by pair if the pairs are listed. Weights are scaled up so that it
        estimates this objective. For one seed, smaller samples are part of larger ones.
        """
        return self._sampled(*self.matrix.sample(self.pairs, fraction, seed, self.threads))

    def sample_parts(self, fraction: float, seed: int, n_parts: int) -> "list[Objective]":
        """Return a sample in parts without a common document, each an estimate of this one."""
        matrix, pairs = self.matrix.sample(self.pairs, fraction, seed, self.threads)
        return [self._sampled(matrix, part) for part in pairs.deal(n_parts, seed)]

    def _sampled(self, matrix: Matrix, pairs: PairCounts) -> "Objective":
        kept = self.fraction * pairs.n_documents / self.n_documents
        return replace(self.on(matrix, pairs), fraction=kept)

    @property
    def largest_sample(self) -> float:
        """The share of the documents up to which :meth:`sample` does not read X anew."""
        return self.matrix.largest_sample

    @property
    def feature_magnitudes(self) -> Floats:
        """The largest absolute value of each feature; a sweep, if X was not checked before."""
        return self.matrix.magnitudes(self.threads)

    @property
    def feature_variances(self) -> Floats | None:
        """How much each feature varies, about, if that is known and a few are far ahead."""
        return self.matrix.variances

    def scores(self, w: Floats) -> Scores:
        """Return Xw; a sweep."""
        self.count_sweep()
        return self.design.dot(w)

    def combine(self, z: Scores) -> Floats:
        """Return Xᵀz for one entry per document; a sweep."""
        self.count_sweep()
        return self.design.transpose_dot(z)

    def combine_active(self, values: Floats) -> Floats:
        """Return XᵀJc for a value c per active document, where J takes off means; a sweep."""
        self.count_sweep()
        return self.design.combine_active(values)


class Point:
    """The objective at one w.

    Every certificate counts its own rounding. What was added up is known, by size, from the
    kernels: about one part in 10¹⁶ of it may be wrong. Scores are sums of products of features and
    weights, and those of a point that was reached along lines carry the rounding of all the steps.

    Attributes
    ----------
    accumulated_update : ndarray of shape (n_features,)
        How far each weight has gone in steps along which scores were updated, from zero.
    losses : LossSums
        The loss, and how many queries and documents have to do with it.
    """

    def __init__(
        self,
        objective: Objective,
        w: Floats,
        evaluation: Evaluation,
        accumulated_update: Floats,
    ) -> None:
        self.objective = objective
        self.w = w
        self._evaluation = evaluation
        self.scores = evaluation.scores
        self.score_gradient = evaluation.score_gradient
        self.state = evaluation.state
        self.accumulated_update = accumulated_update
        self.losses = evaluation.losses
        self.loss_value = self.losses.value
        self._slope_along: tuple[Scores | None, float] = None, 0.0  # where it came from
        if evaluation.gradient is not None:
            self.gradient = objective.ridge * w + evaluation.gradient

    @cached_property
    def value(self) -> float:
        """F(w)."""
        return 0.5 * self.objective.ridge * float(self.w @ self.w) + self.loss_value

    @cached_property
    def gradient(self) -> Floats:
        """∇F(w); a sweep, unless the point was made by one."""
        return self.objective.ridge * self.w + self.objective.combine(self.score_gradient)

    @property
    def has_gradient(self) -> bool:
        """Whether the gradient costs no sweep any more."""
        return "gradient" in self.__dict__

    def by_group(self, n_groups: int) -> GroupedLoss:
        """Return the loss as a sum over about `n_groups` groups of queries.

        A sweep, that also gives the gradient if there is none yet.
        """
        o = self.objective
        o.count_sweep()
        grouped = o.design.by_group(self._evaluation.by_query, self.score_gradient, n_groups)
        if not self.has_gradient:
            self.gradient = o.ridge * self.w + grouped.gradients.sum(axis=0)
        return grouped

    @property
    def sum_rounding(self) -> float:
        """How far the loss may be from that of the scores."""
        return PRECISION * self.losses.value_size

    @cached_property
    def score_rounding(self) -> float:
        """Bound on the error of subgradient planes due to rounding of the scores."""
        return self.losses.slope_size * self._score_error

    @cached_property
    def _score_error(self) -> float:
        """How far a score may be from that of w."""
        return PRECISION * float(self.objective.feature_magnitudes @ self.accumulated_update)

    @property
    def slope_rounding(self) -> float:
        """How far the loss's gradient may be off, for a feature of magnitude one."""
        return PRECISION * self.losses.slope_size

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
            squares = o.design.query_squares(self._evaluation.by_query)
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

    def hess_vec(self, v: Floats) -> tuple[Floats, Scores]:
        """Return ∇²F(w) v and Xv; a sweep."""
        o = self.objective
        o.count_sweep()
        product, scores = o.design.hess_vec(o.pair_loss, self.state, v)
        return o.ridge * v + product, scores

    def hess_vec_scores(self, u: Scores) -> Scores:
        """Return A u, where A is the Hessian of the loss as a function of scores; no sweep."""
        return self.objective.pair_loss.hess_vec(self.state, u)

    def hessian(self) -> Floats:
        """Return ∇²F(w), an n × n matrix; a sweep for each eight columns."""
        o = self.objective
        o.count_sweep(max(1.0, o.n_features / 8))
        hessian = o.design.hessian(o.pair_loss, self.state)
        diagonal = np.diag_indices_from(hessian)
        hessian[diagonal] = o.ridge + np.maximum(hessian[diagonal], 0.0)  # less by rounding only
        return hessian

    def hess_diag(self) -> Floats:
        """Return the diagonal of ∇²F(w); a sweep for each eight columns a row has entries in."""
        o = self.objective
        o.count_sweep(max(1.0, o.entries_per_document / 8))
        diagonal = o.design.hess_diag(o.pair_loss, self.state)
        return o.ridge + np.maximum(diagonal, 0.0)  # less by rounding only

    def curved_gram(self) -> Floats:
        """Return A K for the inner products K of the active documents; no sweep."""
        return self.objective.design.curved_gram(self.objective.pair_loss, self.state)

    def move(self, step: float, direction: Floats, direction_scores: Scores) -> "Point":
        """Evaluate w + step · direction, given X · direction; no sweep, or one for the gradient."""
        along = self.scores, step, direction_scores, self.state
        evaluation, slope = self.objective.pair_loss.evaluate_along(*along)
        if evaluation.gradient is not None:
            self.objective.count_sweep()
        change = step * direction
        accumulated_update = self.accumulated_update + np.abs(change)
        moved = Point(self.objective, self.w + change, evaluation, accumulated_update)
        moved._slope_along = direction_scores, slope
        return moved

    def with_ridge(self, ridge: float) -> "Point":
        """Return the same w with another weight of ½‖w‖²; no sweep."""
        of_loss = self.gradient - self.objective.ridge * self.w if self.has_gradient else None
        there = self._evaluation._replace(gradient=of_loss)
        return Point(self.objective.with_ridge(ridge), self.w, there, self.accumulated_update)

    def through(self, features: Integers) -> "Point":
        """Return the same w in some features alone, which hold all non-zero weights.

        Their columns are copied; no sweep, unless scores carry the rounding of other features.
        """
        restricted, w = self.objective.restrict(features), self.w[features]
        if np.delete(self.accumulated_update, features).any():
            return restricted.at(w, like=self)
        evaluation = restricted.pair_loss.evaluate(self.scores, self.state)
        gradient = self.gradient[features] - self.objective.ridge * w
        evaluation = evaluation._replace(gradient=gradient)
        return Point(restricted, w, evaluation, self.accumulated_update[features])

    def loss_slope(self, direction_scores: Scores) -> float:
        """Return the derivative of the loss along a direction, given X · direction; no sweep."""
        if self._slope_along[0] is direction_scores:
            return self._slope_along[1]
        return self.objective.space.dot(self.score_gradient, direction_scores)

    def slope(self, direction: Floats, direction_scores: Scores) -> float:
        """Return ∇F(w)ᵀ direction, given X · direction; no sweep."""
        # Avoid touching scores: they may live on another machine.
        if self.has_gradient and self._slope_along[0] is not direction_scores:
            return float(self.gradient @ direction)
        ridge = self.objective.ridge
        return ridge * float(self.w @ direction) + self.loss_slope(direction_scores)

    def curvature(self, direction: Floats, direction_scores: Scores) -> float:
        """Return directionᵀ ∇²F(w) direction, given X · direction; no sweep."""
        o, image = self.objective, self.hess_vec_scores(direction_scores)
        return o.ridge * float(direction @ direction) + o.space.dot(direction_scores, image)
