"""The interface between an objective and a backend, which stores X and multiplies with it.

* :class:`ScoreSpace`: operations on vectors with one entry per document, such as scores.
* :class:`PairLoss`: value, gradient and curvature of a loss on pairs, as a function of scores.
* :class:`Design`: products with X, and passes over X that also evaluate the loss.

A backend implements their abstract methods and a :class:`Matrix`, which holds X and makes designs.
All other methods have a generic implementation, which a backend may replace by a faster one.
Vectors with one entry per document may be of any type; vectors with one entry per feature are NumPy
arrays.

A *sweep* is one pass over X. z is the gradient and A the Hessian of the loss with respect to the
scores.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, NewType, Protocol, cast

import numpy as np

from marginrank._utils.threads import cached_property
from marginrank._utils.types import Floats, Integers
from marginrank.objective.gram import Gram, Rows
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sets import ActiveDocuments, PairCounts, PairSet

Scores = NewType("Scores", object)  # one entry per document, in the order of the pair set
State = NewType("State", object)  # sorted documents and active pairs, for Hessian products
QueryLosses = NewType("QueryLosses", object)  # per query: its loss, and sums that bound rounding
# Scores and states are valid for every loss on the same documents, and with other columns of X.
# With another loss, a state only gives an initial order of the documents.

# Cost of a rough Hessian of dense rows in sweeps: constant, per piece of the loss, per feature.
ROUGH_SWEEPS, ROUGH_PER_PIECE, ROUGH_PER_FEATURE = 10.0, 6.0, 0.05


class LossSums(NamedTuple):
    """The loss summed over all queries, with two sums of absolute terms that bound its rounding."""

    value: float
    value_size: float  # sum of |terms| of the loss, for bounds on its rounding
    slope_size: float  # sum of |terms| of its derivatives
    n_queries: int  # queries with a positive loss
    n_documents: int  # documents whose score changes the loss

    @classmethod
    def of(cls, table: Floats, n_documents: int) -> "LossSums":
        """Return the sums of `table`, with one row (value, value_size, slope_size) per query."""
        value, value_size, slope_size = (float(np.sum(column)) for column in table.T)
        n_queries = int(np.count_nonzero(table[:, 0]))
        return cls(value, value_size, slope_size, n_queries, n_documents)


class Evaluation(NamedTuple):
    """The loss on pairs and its gradient at one score vector.

    `by_query` has the loss of each query and the two sizes of LossSums, usually as an array with
    one row per query. A backend may use another type, which only its own methods read.
    """

    scores: Scores
    losses: LossSums
    by_query: QueryLosses
    score_gradient: Scores  # z, the derivative of the loss with respect to each score
    state: State
    gradient: Floats | None = None  # Xᵀz, if the same sweep has computed it


class GroupedLoss(NamedTuple):
    """The loss and its gradient at one w, split into one term per group of queries."""

    losses: Floats  # L_g(w)
    gradients: Floats  # ∇L_g(w), one row per group


class ScoreSpace(ABC):
    """Vector operations on scores, for backends that store them on another device or machine."""

    @abstractmethod
    def zero(self) -> Scores:
        """Return a vector of zeros with one entry per document: the scores of w = 0."""

    @abstractmethod
    def add(self, a: Scores, step: float, b: Scores) -> Scores:
        """Return the vector a + step · b; the vectors have one entry per document."""

    @abstractmethod
    def dot(self, a: Scores, b: Scores) -> float:
        """Return the inner product aᵀb of two vectors with one entry per document."""

    @abstractmethod
    def entries(self, a: Scores, documents: Integers | None = None) -> Floats:
        """Return entries of a score vector `a` as a NumPy array: at ascending indices, or all."""

    @abstractmethod
    def vector(self, entries: Floats) -> Scores:
        """Return a NumPy array with one entry per document as a score vector of this backend."""

    def std(self, a: Scores) -> float:
        return float(np.std(self.entries(a)))

    def is_finite(self, a: Scores) -> bool:
        return bool(np.isfinite(self.entries(a)).all())


class PairLoss(ABC):
    """A loss on pairs as a function of the scores of the documents; no method reads X."""

    space: ScoreSpace

    @abstractmethod
    def evaluate(self, scores: Scores, like: State | None) -> Evaluation:
        """Return the loss on pairs and its gradient with respect to the scores.

        `like` is the state of an earlier evaluation. Sorting is faster if its scores rank the
        documents similarly; the result does not depend on it.
        """

    @abstractmethod
    def hess_vec(self, state: State, u: Scores) -> Scores:
        """Return Au for the Hessian A of the loss with respect to the scores."""

    def evaluate_along(
        self, scores: Scores, step: float, direction: Scores, like: State | None
    ) -> tuple[Evaluation, float]:
        """Return the loss at scores + step · direction, and its slope along `direction`.

        `direction` is a vector with one entry per document. The slope is the derivative with
        respect to `step`.
        """
        found = self.evaluate(self.space.add(scores, step, direction), like)
        return found, self.space.dot(found.score_gradient, direction)


class Design(ABC):
    """The feature matrix X with one row per document of a pair set, and operations that read it.

    The generic methods need `pairs` to be a PairSet, in memory. Results do not depend on `threads`.
    """

    space: ScoreSpace
    has_rough_hessian = False  # whether a rough Hessian costs less than the Hessian

    def __init__(self, matrix: "Matrix", pairs: PairCounts, threads: int) -> None:
        self.matrix = matrix
        self.pairs = pairs
        self.threads = threads

    @abstractmethod
    def pair_loss(self, loss: Loss) -> PairLoss:
        """Return the loss summed over all pairs, as a function of the scores of the documents."""

    @abstractmethod
    def dot(self, w: Floats) -> Scores:
        """Return the scores Xw; reads X once."""

    @abstractmethod
    def transpose_dot(self, z: Scores) -> Floats:
        """Return Xᵀz for a vector z with one entry per document; reads X once."""

    @abstractmethod
    def rows(self, rows: Integers) -> Rows:
        """Return the rows of X for the documents with the ascending indices `rows`."""

    def evaluate(self, loss: PairLoss, w: Floats, like: State | None) -> Evaluation:
        """Return the loss of the scores Xw, and its gradient with respect to w; reads X once."""
        found = loss.evaluate(self.dot(w), like)
        return found._replace(gradient=self.transpose_dot(found.score_gradient))

    def hess_vec(self, loss: PairLoss, state: State, v: Floats) -> tuple[Floats, Scores]:
        """Return the product of the Hessian of the loss with v, and the scores Xv; reads X once.

        The Hessian is XᵀAX, with A the Hessian of the loss with respect to the scores.
        """
        scores = self.dot(v)
        return self.transpose_dot(loss.hess_vec(state, scores)), scores

    def share(self, designs: Sequence["Design"]) -> "SharedSweeps":
        """Return an object that multiplies X for several designs with one pass over X."""
        return SharedSweeps(designs)

    def column(self, j: int) -> Scores:
        unit = np.zeros(self.matrix.n_features)
        unit[j] = 1.0
        return self.dot(unit)

    def hessian(self, loss: PairLoss, state: State) -> Floats:
        """Return the Hessian of the loss with respect to w; reads X once per eight columns of X.

        It is XᵀAX, with A the Hessian of the loss with respect to the scores.
        """
        images = (loss.hess_vec(state, self.column(j)) for j in range(self.matrix.n_features))
        return np.stack([self.transpose_dot(image) for image in images], axis=1)

    def rough_hessian(self, loss: PairLoss, state: State) -> Floats:
        """Return the Hessian of the loss with respect to w, correct to a few digits."""
        return self.hessian(loss, state)

    def rough_sweeps(self, n_pieces: int) -> float:
        """Return the cost of an approximate Hessian, as a number of passes over X."""
        n = self.matrix.n_features
        fill = n * self.matrix.n_rows / max(self.matrix.n_entries, 1)
        return fill * (ROUGH_SWEEPS + ROUGH_PER_PIECE * n_pieces + ROUGH_PER_FEATURE * n)

    def hess_diag(self, loss: PairLoss, state: State) -> Floats:
        """Return the diagonal of the Hessian of the loss; this version reads X once per column."""
        columns = map(self.column, range(self.matrix.n_features))
        return np.array([self.space.dot(x, loss.hess_vec(state, x)) for x in columns])

    def by_group(self, by_query: QueryLosses, z: Scores, n_groups: int) -> GroupedLoss:
        """Return the loss and its gradient for about `n_groups` groups of queries; reads X once.

        A group consists of successive queries. `by_query` has the loss of each query, and z is the
        gradient with respect to the scores.
        """
        queries, bounds = self.groups(n_groups)
        slopes, gradients = self.space.entries(z), []
        for first, last in pairwise(bounds):
            alone = np.zeros_like(slopes)
            alone[first:last] = slopes[first:last]
            gradients.append(self.transpose_dot(self.space.vector(alone)))
        losses = np.add.reduceat(cast(Floats, by_query)[:, 0], queries[:-1])
        return GroupedLoss(losses, np.stack(gradients))

    def groups(self, n_groups: int) -> tuple[Integers, Integers]:
        """Divide the queries into about `n_groups` groups; return where each group begins.

        The first array has the index of the first query of each group, the second the index of its
        first document; both end with the total number.
        """
        documents = cast(PairSet, self.pairs).documents
        n_groups = min(n_groups, documents.n_queries)
        queries = np.linspace(0, documents.n_queries, n_groups + 1).astype(np.int64)
        return queries, documents.offsets[queries]

    def query_squares(self, by_query: QueryLosses) -> Floats:
        """Return one number per feature, for a bound on rounding of the gradient; reads X once.

        For feature j it is Σ_q c_q² · max x_ij², or an upper bound on it, where the maximum is over
        the documents i of query q. c_q is the sum of the absolute values of all terms of the
        gradient with respect to the scores in query q.
        """
        sizes = cast(Floats, by_query)[:, 2]
        return float(sizes @ sizes) * self.magnitudes() ** 2

    def magnitudes(self) -> Floats:
        return self.matrix.magnitudes(self.threads)

    @cached_property
    def gram(self) -> Gram:
        """The Gram matrix (inner products) of the documents in queries with pairs; cached."""
        return self.make_gram()

    def make_gram(self) -> Gram:
        rows, active = self.active_rows()
        return Gram.of_rows(rows, active.documents, active.offsets)

    def active_rows(self) -> tuple[Rows, ActiveDocuments]:
        active = cast(PairSet, self.pairs).active_documents
        return self.rows(active.rows), active

    def curved_gram(self, loss: PairLoss, state: State) -> Floats:
        """Return the product AK of a Hessian A and the Gram matrix K.

        A is the Hessian of the loss with respect to the scores. A and K have one row per document
        in a query with pairs.
        """
        space = self.space
        return self.gram.curved(
            lambda u: space.entries(loss.hess_vec(state, space.vector(u))), self.pairs.n_documents
        )

    def combine_active(self, values: Floats) -> Floats:
        """Return a weighted sum of the rows of X in queries with pairs; reads X once.

        The coefficients are `values`, with one entry per such row, minus their mean in each query.
        """
        return self.transpose_dot(
            self.space.vector(self.gram.spread(values, self.pairs.n_documents))
        )


class SharedSweeps:
    """Products with one X for several pair sets, such as the folds of a cross-validation.

    This class makes one pass over X per pair set. A backend may have a subclass that makes one
    pass for all; the result for a pair set must not depend on the others.
    """

    def __init__(self, designs: Sequence[Design]) -> None:
        self._designs = designs

    def evaluate(
        self, losses: Sequence[PairLoss], ws: Sequence[Floats], likes: Sequence[State | None]
    ) -> list[Evaluation]:
        arguments = zip(self._designs, losses, ws, likes, strict=True)
        return [design.evaluate(loss, w, like) for design, loss, w, like in arguments]

    def dot(self, ws: Sequence[Floats]) -> list[Scores]:
        return [design.dot(w) for design, w in zip(self._designs, ws, strict=True)]

    def transpose_dot(self, zs: Sequence[Scores]) -> list[Floats]:
        return [design.transpose_dot(z) for design, z in zip(self._designs, zs, strict=True)]

    def hess_vec(
        self, losses: Sequence[PairLoss], states: Sequence[State], vs: Sequence[Floats]
    ) -> list[tuple[Floats, Scores]]:
        arguments = zip(self._designs, losses, states, vs, strict=True)
        return [design.hess_vec(loss, state, v) for design, loss, state, v in arguments]


class Matrix(ABC):
    """The feature matrix X as stored by a backend: in memory, on disk, on a GPU or on a cluster."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Number of rows and number of columns of X."""

    @abstractmethod
    def magnitudes(self, threads: int) -> Floats:
        """Return the largest absolute value of each column, NaN if the column has NaN; cached."""

    @abstractmethod
    def restrict(self, columns: Integers, threads: int) -> "Matrix":
        """Return the matrix with only the columns of X at the ascending indices `columns`."""

    @abstractmethod
    def design(self, pairs: PairCounts, threads: int) -> Design:
        """Return X with one row per document of `pairs`, for products and losses."""

    @property
    def n_rows(self) -> int:
        return self.shape[0]

    @property
    def n_features(self) -> int:
        return self.shape[1]

    @property
    def n_entries(self) -> int:
        """Number of stored entries of X: nonzeros if sparse, rows × columns if dense."""
        return self.n_rows * self.n_features

    def sample(
        self, pairs: PairCounts, fraction: float, seed: int, threads: int
    ) -> "tuple[Matrix, PairSet]":
        """Draw a random sample of documents; return their rows of X, in memory, and their pairs.

        `fraction` is the share of the documents to draw.
        """
        return self, cast(PairSet, pairs).sample(fraction, seed)

    def arranged(self, pairs: PairCounts) -> PairCounts:
        """Return the same pairs, with documents in the order that makes passes over X fastest."""
        return pairs

    def feature(self, j: Any) -> Any:
        """Return the column indices in the original data for column indices of this matrix."""
        return j

    def on_host(self) -> "Matrix | None":
        """Return X in host memory for use by the C++ kernels; None if X is already there."""
        return None

    def survey(self, pairs: PairCounts, threads: int) -> int:
        """Store the largest absolute value of each column and a random sample, before a fit.

        Return the number of passes over X that this took.
        """
        return 0

    @property
    def largest_sample(self) -> float:
        """The largest `fraction` for which the method `sample` does not read all of X again."""
        return 1.0

    @property
    def variances(self) -> Floats | None:
        """Approximate variances of the columns if a few vary far more than others, else None."""
        return None


class _Certified(Protocol):
    @property
    def value(self) -> float: ...

    @property
    def gap(self) -> float: ...


def is_certified(point: _Certified, tol: float) -> bool:
    """Return True if `point.gap`, a bound on F − min F, proves (F − min F) / min F ≤ tol."""
    return meets(tol, point.value, point.gap)


def meets(tol: float, value: float, gap: float) -> bool:
    """Return True if (F(w) − min F) / min F ≤ tol is proven for an objective F.

    `value` is F(w), and `gap` is an upper bound on F(w) − min F.
    """
    # F − gap is a lower bound on F* ≥ 0, so it is negative by rounding only.
    return gap <= tol * max(value - gap, 0.0)
