"""The objective F(w) of a fit: a loss on pairs of documents plus a ridge; its derivatives.

F(w) = ρ · ½‖w‖² + C · Σ_q ω_q Σ_{(i,j)} δ_ij ℓ(s_i − s_j),  s = Xw

The sums are over queries q, with weights ω_q, and over their pairs (i, j), with weights δ_ij. The
weight ρ of the ridge is 1 in a RankSVM, and 0 if a solver adds a regularizer of its own.

A solver creates a :class:`Point` at each w. Only methods whose description says so read X. Vectors
with one entry per document are handled by :attr:`Objective.space` only, because they may be on
another device or machine.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from marginrank._utils.threads import cached_property
from marginrank._utils.types import Floats, Integers
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
SMALL = 1e-3  # no tighter rounding bound is computed below this share of the gradient norm
MANY_FEATURES = 1 << 16  # above, sums per feature and query for that bound need much memory


@dataclass
class Journal:
    """Counters and best weights, shared by an objective and all objectives derived from it."""

    sweeps: float = 0.0  # number of passes over X; a pass over a sample counts as a fraction
    w: Floats | None = None  # best weights so far; used if the solver fails
    history: list[Any] | None = None  # iterations of the outermost solver


@dataclass(frozen=True, kw_only=True, eq=False)
class Objective:
    """The objective F(w) of a fit: the sum of a loss over pairs of documents, plus a ridge."""

    design: Design  # X and the pairs, whose query weights include C and the normalization
    loss: Loss
    ridge: float = 1.0  # ρ
    features: Integers | None = None  # columns of the original X that it has; None for all
    fraction: float = 1.0  # number of its documents / number of documents of the original data
    share: float = 1.0  # number of stored entries of its X / number in the original X
    journal: Journal = field(default_factory=Journal)

    @cached_property
    def pair_loss(self) -> PairLoss:
        """The function that maps a score vector to the sum of the loss over all pairs."""
        return self.design.pair_loss(self.loss)

    @property
    def space(self) -> ScoreSpace:
        return self.design.space

    @property
    def matrix(self) -> Matrix:
        return self.design.matrix

    @property
    def pairs(self) -> PairCounts:
        return self.design.pairs

    @property
    def threads(self) -> int:
        """Number of threads; results are the same for any number."""
        return self.design.threads

    @property
    def n_features(self) -> int:
        return self.matrix.n_features

    @property
    def entries_per_document(self) -> float:
        """Mean number of stored entries per row of X."""
        return self.matrix.n_entries / self.matrix.n_rows

    @property
    def rough_sweeps(self) -> float:
        """The cost of :meth:`Point.rough_hessian`, as a number of passes over X."""
        return self.design.rough_sweeps(len(self.loss.pieces))

    @property
    def n_active_documents(self) -> int:
        """Number of documents in queries with pairs of positive weight, or in listed pairs."""
        return self.pairs.n_active_documents

    @property
    def sweeps(self) -> float:
        """Number of passes over X so far, by this objective and all objectives derived from it."""
        return self.journal.sweeps

    def count_sweep(self, sweeps: float = 1.0) -> None:
        self.journal.sweeps += sweeps * self.fraction * self.share

    def at(
        self,
        w: Floats,
        scores: Scores | None = None,
        *,
        accumulated_update: Floats | None = None,
        like: "Point | None" = None,
    ) -> "Point":
        """Return the objective F evaluated at w, with its gradient; reads X once.

        If the scores Xw are given, X is not read and the gradient is computed when it is first
        used. If `scores` were updated step by step, `accumulated_update` is Σ |change| of each
        weight over the steps, which bounds their rounding error. Sorting is faster if the point
        `like` ranks the documents similarly.
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
        return self.at(np.zeros(self.n_features), self.space.zero())

    def at_point(self, point: "Point") -> "Point":
        """Return this objective evaluated at the weights of `point`; does not read X.

        `point` is an evaluation of another objective on the same documents.
        """
        evaluation = self.pair_loss.evaluate(point.scores, point.state)
        return Point(self, point.w, evaluation, point.accumulated_update)

    def with_loss(self, loss: Loss) -> "Objective":
        return replace(self, loss=loss)

    def with_ridge(self, ridge: float) -> "Objective":
        return replace(self, ridge=ridge)

    def on(self, matrix: Matrix | None = None, pairs: PairCounts | None = None) -> "Objective":
        """Return a copy of this objective with another feature matrix or pair set."""
        matrix, pairs = matrix or self.matrix, pairs or self.pairs
        return replace(self, design=matrix.design(pairs, self.threads))

    def restrict(self, columns: Integers) -> "Objective":
        """Return a copy of this objective with only some columns of X, at ascending indices."""
        matrix = self.matrix.restrict(columns, self.threads)
        share = self.share * matrix.n_entries / max(self.matrix.n_entries, 1)
        return replace(self.on(matrix), features=self.feature(columns), share=share)

    def feature(self, j: Any) -> Any:
        """Return the column indices in the original data for feature indices of this objective."""
        return self.matrix.feature(j) if self.features is None else self.features[j]

    def sample(self, fraction: float, seed: int) -> "Objective":
        """Return this objective on a random sample of about `fraction` of its documents.

        Queries without pairs are ignored. Whole queries are drawn; of a long query, some
        documents are drawn, or some pairs if pairs are listed. Weights are scaled up, so the
        objective of the sample estimates this objective. With the same seed, a smaller sample is
        part of a larger one.
        """
        return self._sampled(*self.matrix.sample(self.pairs, fraction, seed, self.threads))

    def sample_parts(self, fraction: float, seed: int, n_parts: int) -> "list[Objective]":
        """Return objectives on disjoint parts of a random sample of the documents.

        `fraction` is the share of the documents in the sample. Each of the objectives estimates
        this objective.
        """
        matrix, pairs = self.matrix.sample(self.pairs, fraction, seed, self.threads)
        return [self._sampled(matrix, part) for part in pairs.deal(n_parts, seed)]

    def _sampled(self, matrix: Matrix, pairs: PairCounts) -> "Objective":
        kept = self.fraction * pairs.n_documents / self.pairs.n_documents
        return replace(self.on(matrix, pairs), fraction=kept)

    @property
    def feature_magnitudes(self) -> Floats:
        """The largest absolute value of each feature; the first access may read X once."""
        return self.matrix.magnitudes(self.threads)

    @property
    def feature_variances(self) -> Floats | None:
        """Approximate variances of the features if a few vary far more than others, else None."""
        return self.matrix.variances

    def scores(self, w: Floats) -> Scores:
        """Return the scores Xw; reads X once."""
        self.count_sweep()
        return self.design.dot(w)

    def combine(self, z: Scores) -> Floats:
        """Return Xᵀz for a vector z with one entry per document; reads X once."""
        self.count_sweep()
        return self.design.transpose_dot(z)

    def combine_active(self, values: Floats) -> Floats:
        """Return a weighted sum of the rows of X in queries with pairs; reads X once.

        The coefficients are `values`, with one entry per such row, minus their mean in each query.
        """
        self.count_sweep()
        return self.design.combine_active(values)


class Point:
    """An objective evaluated at one w: value, gradient, Hessian products and an error bound.

    The error bound is a proven upper bound on F(w) − min F. It includes its own rounding error: the
    machine epsilon times the sum of the absolute values of all added terms, which the C++ kernels
    return. Scores that were updated along line searches carry the rounding of all steps;
    `accumulated_update` is Σ |change| of each weight over these steps.
    """

    penalty = slack = 0.0  # points with constraints or a group penalty have values above zero

    def __init__(
        self, objective: Objective, w: Floats, evaluation: Evaluation, accumulated_update: Floats
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
        # The last direction of a line search, and the slope along it from the kernel.
        self._slope_along: tuple[Scores | None, float] = None, 0.0
        if evaluation.gradient is not None:
            self.gradient = objective.ridge * w + evaluation.gradient

    @cached_property
    def value(self) -> float:
        """The value F(w) of the objective, ridge included."""
        return 0.5 * self.objective.ridge * float(self.w @ self.w) + self.loss_value

    @cached_property
    def gradient(self) -> Floats:
        """The gradient ∇F(w); the first access reads X once if it is not known yet."""
        return self.objective.ridge * self.w + self.objective.combine(self.score_gradient)

    @property
    def has_gradient(self) -> bool:
        """Whether the attribute `gradient` is already computed, so using it does not read X."""
        return "gradient" in self.__dict__

    def by_group(self, n_groups: int) -> GroupedLoss:
        """Return the loss and its gradient for about `n_groups` groups of queries; reads X once.

        The attribute `gradient` is then known, too.
        """
        o = self.objective
        o.count_sweep()
        grouped = o.design.by_group(self._evaluation.by_query, self.score_gradient, n_groups)
        if not self.has_gradient:
            self.gradient = o.ridge * self.w + grouped.gradients.sum(axis=0)
        return grouped

    @property
    def sum_rounding(self) -> float:
        """Bound on the rounding error of the loss that comes from adding up its terms."""
        return PRECISION * self.losses.value_size

    @cached_property
    def score_rounding(self) -> float:
        """Bound on the error of linear lower bounds (tangents) of the loss, from rounded scores."""
        return self.losses.slope_size * self._score_error

    @cached_property
    def _score_error(self) -> float:
        """Bound on the rounding error of a score."""
        return PRECISION * float(self.objective.feature_magnitudes @ self.accumulated_update)

    @property
    def slope_rounding(self) -> float:
        """Bound on the rounding error of a gradient entry, for a feature with values in [−1, 1]."""
        return PRECISION * self.losses.slope_size

    @cached_property
    def rounding(self) -> float:
        """Upper bound on the rounding error of the loss: the exact value minus the computed one."""
        if self.objective.loss.smooth:
            return self.sum_rounding + self.score_rounding
        # Whether a pair at a kink has a slope depends on the last digits of its scores, so bound
        # the loss by one whose kinks are moved by the largest error of a score difference.
        raised = self.objective.with_loss(self.objective.loss.shifted(2.0 * self._score_error))
        above = raised.at_point(self)
        return max(above.loss_value - self.loss_value, 0.0) + above.sum_rounding

    @cached_property
    def gradient_rounding(self) -> float:
        """Bound on the norm of the rounding error of the gradient ∇F(w); may read X once."""
        o = self.objective
        of_ridge = PRECISION * o.ridge * float(np.linalg.norm(self.w))
        of_loss = self.slope_rounding * float(np.linalg.norm(o.feature_magnitudes))
        if of_loss > SMALL * float(np.linalg.norm(self.gradient)) and o.n_features <= MANY_FEATURES:
            # The simpler bound is loose: errors of queries are independent, and few queries hold
            # the largest value of a feature.
            o.count_sweep()
            squares = o.design.query_squares(self._evaluation.by_query)
            of_loss = min(of_loss, PRECISION * float(np.sqrt(np.sum(squares))))
        return of_loss + of_ridge

    @property
    def gradient_gap(self) -> float:
        """The bound ½‖∇F(w)‖² / ρ on F(w) − min F, with ρ the weight of the ridge.

        It is valid because F is strongly convex. It includes the rounding error of the gradient.
        """
        ridge = self.objective.ridge
        length = float(np.linalg.norm(self.gradient)) + self.gradient_rounding
        return 0.5 * length * length / ridge if ridge > 0 else np.inf

    @property
    def gap(self) -> float:
        """Proven upper bound on F(w) − min F; includes the rounding error."""
        return self.gradient_gap + self.rounding

    def hess_vec(self, v: Floats) -> tuple[Floats, Scores]:
        """Return the Hessian-vector product ∇²F(w) v and the scores Xv; reads X once."""
        o = self.objective
        o.count_sweep()
        product, scores = o.design.hess_vec(o.pair_loss, self.state, v)
        return o.ridge * v + product, scores

    def hess_vec_scores(self, u: Scores) -> Scores:
        """Return Au for the Hessian A of the loss with respect to the scores; does not read X."""
        return self.objective.pair_loss.hess_vec(self.state, u)

    def hessian(self) -> Floats:
        """Return the n × n Hessian for n features; takes about n / 8 passes over X."""
        o = self.objective
        o.count_sweep(max(1.0, o.n_features / 8))
        hessian = o.design.hessian(o.pair_loss, self.state)
        diagonal = np.diag_indices_from(hessian)  # negative by rounding only
        hessian[diagonal] = o.ridge + np.maximum(hessian[diagonal], 0.0)
        return hessian

    def rough_hessian(self) -> Floats:
        """Return the n × n Hessian correct to a few digits, by products of dense matrices."""
        o = self.objective
        o.count_sweep(o.rough_sweeps)
        hessian = o.design.rough_hessian(o.pair_loss, self.state)
        diagonal = np.diag_indices_from(hessian)  # negative by rounding only
        hessian[diagonal] = o.ridge + np.maximum(hessian[diagonal], 0.0)
        return hessian

    def hess_diag(self) -> Floats:
        """Return the diagonal of the Hessian; takes k / 8 passes for k stored entries per row."""
        o = self.objective
        o.count_sweep(max(1.0, o.entries_per_document / 8))
        diagonal = o.design.hess_diag(o.pair_loss, self.state)
        return o.ridge + np.maximum(diagonal, 0.0)  # negative by rounding only

    def curved_gram(self) -> Floats:
        """Return the product AK of a Hessian A and the Gram matrix K.

        A is the Hessian of the loss with respect to the scores. A and K have one row per document
        in a query with pairs. Only the first call reads X, to compute K.
        """
        return self.objective.design.curved_gram(self.objective.pair_loss, self.state)

    def move(self, step: float, direction: Floats, direction_scores: Scores) -> "Point":
        """Return the objective evaluated at w + step · direction; reads X at most once.

        `direction_scores` is the product of X and `direction`.
        """
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
        of_loss = self.gradient - self.objective.ridge * self.w if self.has_gradient else None
        there = self._evaluation._replace(gradient=of_loss)
        return Point(self.objective.with_ridge(ridge), self.w, there, self.accumulated_update)

    def through(self, features: Integers) -> "Point":
        """Return this point as a point of the objective that has only some of the features.

        All other features must have zero weight. The columns of `features` are copied. The scores
        are reused, unless they carry rounding errors of the other features.
        """
        restricted, w = self.objective.restrict(features), self.w[features]
        if np.delete(self.accumulated_update, features).any():
            return restricted.at(w, like=self)
        evaluation = restricted.pair_loss.evaluate(self.scores, self.state)
        gradient = self.gradient[features] - self.objective.ridge * w
        evaluation = evaluation._replace(gradient=gradient)
        return Point(restricted, w, evaluation, self.accumulated_update[features])

    def loss_slope(self, direction_scores: Scores) -> float:
        """Return the derivative of the loss along a direction; does not read X.

        `direction_scores` is the product of X and the direction.
        """
        if self._slope_along[0] is direction_scores:
            return self._slope_along[1]
        return self.objective.space.dot(self.score_gradient, direction_scores)

    def slope(self, direction: Floats, direction_scores: Scores) -> float:
        """Return the derivative of the objective at w along `direction`; does not read X.

        `direction_scores` is the product of X and `direction`.
        """
        # Avoid touching scores: they may live on another machine.
        if self.has_gradient and self._slope_along[0] is not direction_scores:
            return float(self.gradient @ direction)
        ridge = self.objective.ridge
        return ridge * float(self.w @ direction) + self.loss_slope(direction_scores)

    def curvature(self, direction: Floats, direction_scores: Scores) -> float:
        """Return the second derivative of the objective at w along `direction`; does not read X.

        `direction_scores` is the product of X and `direction`.
        """
        o, image = self.objective, self.hess_vec_scores(direction_scores)
        return o.ridge * float(direction @ direction) + o.space.dot(direction_scores, image)
