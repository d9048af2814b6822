"""The interface between objectives and backends: three small protocols, and the matrix X.

* :class:`ScoreSpace`: operations on vectors with one entry per document, which are opaque.
* :class:`PairLoss`: value, gradient and curvature of a loss on pairs, as a function of scores.
* :class:`Design`: X with one row per document: products, and passes that fuse them with the loss.

A backend implements their abstract methods and a :class:`Matrix`, which holds X and makes designs.
All other methods have a generic implementation, which a backend may replace by a faster one.
Vectors with one entry per feature are NumPy arrays. "A sweep" is one pass over X. z is the gradient
of the loss with respect to the scores, A the Hessian, and J subtracts the mean of each query.
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
State = NewType("State", object)  # order and windows of documents, for products with the Hessian
QueryLosses = NewType("QueryLosses", object)  # the loss of each query, and the Σ |terms| of sums
# Scores and states are valid for every loss on the same documents, and with other columns of X.
# With another loss, a state only gives an initial order of the documents.

# Cost of a rough Hessian of dense rows in sweeps: in total, per piece of the loss, and per feature.
ROUGH_SWEEPS, ROUGH_PER_PIECE, ROUGH_PER_FEATURE = 10.0, 6.0, 0.05


class LossSums(NamedTuple):
    """The total loss over all queries, with bounds for its rounding."""

    value: float
    value_size: float  # sum of |terms| of the loss, for bounds on its rounding
    slope_size: float  # sum of |terms| of its derivatives
    n_queries: int  # queries with a positive loss
    n_documents: int  # documents whose score changes the loss

    @classmethod
    def of(cls, table: Floats, n_documents: int) -> "LossSums":
        """Sum a table with one row (value, value_size, slope_size) per query."""
        value, value_size, slope_size = (float(np.sum(column)) for column in table.T)
        n_queries = int(np.count_nonzero(table[:, 0]))
        return cls(value, value_size, slope_size, n_queries, n_documents)


class Evaluation(NamedTuple):
    """The loss and its derivatives at one score vector.

    `by_query` is an array of one row per query (its loss and the two sizes of LossSums), or any
    object if the design implements all methods that take it.
    """

    scores: Scores
    losses: LossSums
    by_query: QueryLosses
    score_gradient: Scores  # z, the derivative of the loss with respect to each score
    state: State
    gradient: Floats | None = None  # Xᵀz, if the same sweep has computed it


class GroupedLoss(NamedTuple):
    """The loss at one w as a sum over groups of queries."""

    losses: Floats  # L_g(w)
    gradients: Floats  # ∇L_g(w), one row per group


class ScoreSpace(ABC):
    """Operations on vectors with one entry per document."""

    @abstractmethod
    def zero(self) -> Scores:
        """Return the scores of w = 0."""

    @abstractmethod
    def add(self, a: Scores, step: float, b: Scores) -> Scores:
        """Return a + step · b."""

    @abstractmethod
    def dot(self, a: Scores, b: Scores) -> float:
        """Return aᵀb."""

    @abstractmethod
    def entries(self, a: Scores, documents: Integers | None = None) -> Floats:
        """Return the entries of `documents` (ascending indices), or all entries, as an array."""

    @abstractmethod
    def vector(self, entries: Floats) -> Scores:
        """Return an array with one entry per document as a vector of this backend."""

    def std(self, a: Scores) -> float:
        return float(np.std(self.entries(a)))

    def is_finite(self, a: Scores) -> bool:
        return bool(np.isfinite(self.entries(a)).all())


class PairLoss(ABC):
    """A loss on pairs as a function of the scores of the documents; no method reads X."""

    space: ScoreSpace

    @abstractmethod
    def evaluate(self, scores: Scores, like: State | None) -> Evaluation:
        """Return value and gradient; faster if the state `like` ranks the documents similarly."""

    @abstractmethod
    def hess_vec(self, state: State, u: Scores) -> Scores:
        """Return Au, the product with the Hessian A at the scores of the state."""

    def evaluate_along(
        self, scores: Scores, step: float, direction: Scores, like: State | None
    ) -> tuple[Evaluation, float]:
        """Return the evaluation at scores + step · direction, and the slope along the direction."""
        found = self.evaluate(self.space.add(scores, step, direction), like)
        return found, self.space.dot(found.score_gradient, direction)


class Design(ABC):
    """X with one row per document of a set of pairs, in the order of the set.

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
        """Return `loss` summed over the pairs, as a function of scores."""

    @abstractmethod
    def dot(self, w: Floats) -> Scores:
        """Return Xw; takes one sweep."""

    @abstractmethod
    def transpose_dot(self, z: Scores) -> Floats:
        """Return Xᵀz; takes one sweep."""

    @abstractmethod
    def rows(self, rows: Integers) -> Rows:
        """Return the rows of the matrix with these ascending indices."""

    def evaluate(self, loss: PairLoss, w: Floats, like: State | None) -> Evaluation:
        """Return value and gradient of a loss at the scores Xw; takes one sweep."""
        found = loss.evaluate(self.dot(w), like)
        return found._replace(gradient=self.transpose_dot(found.score_gradient))

    def hess_vec(self, loss: PairLoss, state: State, v: Floats) -> tuple[Floats, Scores]:
        """Return the Hessian product XᵀAXv, and the scores Xv; takes one sweep."""
        scores = self.dot(v)
        return self.transpose_dot(loss.hess_vec(state, scores)), scores

    def share(self, designs: Sequence["Design"]) -> "SharedSweeps":
        """Return sweeps over X that several problems on the same documents share."""
        return SharedSweeps(designs)

    def column(self, j: int) -> Scores:
        unit = np.zeros(self.matrix.n_features)
        unit[j] = 1.0
        return self.dot(unit)

    def hessian(self, loss: PairLoss, state: State) -> Floats:
        """Return the Hessian XᵀAX; takes one sweep per eight columns."""
        images = (loss.hess_vec(state, self.column(j)) for j in range(self.matrix.n_features))
        return np.stack([self.transpose_dot(image) for image in images], axis=1)

    def rough_hessian(self, loss: PairLoss, state: State) -> Floats:
        """Return XᵀAX to a few digits."""
        return self.hessian(loss, state)

    def rough_sweeps(self, n_pieces: int) -> float:
        """Return the cost of a rough Hessian of a loss, in sweeps."""
        n = self.matrix.n_features
        fill = n * self.matrix.n_rows / max(self.matrix.n_entries, 1)
        return fill * (ROUGH_SWEEPS + ROUGH_PER_PIECE * n_pieces + ROUGH_PER_FEATURE * n)

    def hess_diag(self, loss: PairLoss, state: State) -> Floats:
        """Return the diagonal of XᵀAX; takes one sweep per eight entries of a row."""
        columns = map(self.column, range(self.matrix.n_features))
        return np.array([self.space.dot(x, loss.hess_vec(state, x)) for x in columns])

    def by_group(self, by_query: QueryLosses, z: Scores, n_groups: int) -> GroupedLoss:
        """Return loss and Xᵀz as sums over about `n_groups` groups of queries; takes one sweep."""
        queries, bounds = self.groups(n_groups)
        slopes, gradients = self.space.entries(z), []
        for first, last in pairwise(bounds):
            alone = np.zeros_like(slopes)
            alone[first:last] = slopes[first:last]
            gradients.append(self.transpose_dot(self.space.vector(alone)))
        losses = np.add.reduceat(cast(Floats, by_query)[:, 0], queries[:-1])
        return GroupedLoss(losses, np.stack(gradients))

    def groups(self, n_groups: int) -> tuple[Integers, Integers]:
        """Return offsets of about `n_groups` groups of queries, as query and document indices."""
        documents = cast(PairSet, self.pairs).documents
        n_groups = min(n_groups, documents.n_queries)
        queries = np.linspace(0, documents.n_queries, n_groups + 1).astype(np.int64)
        return queries, documents.offsets[queries]

    def query_squares(self, by_query: QueryLosses) -> Floats:
        """Return an upper bound on Σ_q c_q² · max_i x_ij² over documents i of q; takes one sweep.

        c_q is the sum of the absolute values of all slopes in query q.
        """
        sizes = cast(Floats, by_query)[:, 2]
        return float(sizes @ sizes) * self.magnitudes() ** 2

    def magnitudes(self) -> Floats:
        return self.matrix.magnitudes(self.threads)

    @cached_property
    def gram(self) -> Gram:
        """Gram matrix of the m documents in queries with pairs, m × m; cached."""
        return self.make_gram()

    def make_gram(self) -> Gram:
        rows, active = self.active_rows()
        return Gram.of_rows(rows, active.documents, active.offsets)

    def active_rows(self) -> tuple[Rows, ActiveDocuments]:
        active = cast(PairSet, self.pairs).active_documents
        return self.rows(active.rows), active

    def curved_gram(self, loss: PairLoss, state: State) -> Floats:
        """Return AK for the Gram matrix K of the active documents; takes no sweep."""
        space = self.space
        return self.gram.curved(
            lambda u: space.entries(loss.hess_vec(state, space.vector(u))), self.pairs.n_documents
        )

    def combine_active(self, values: Floats) -> Floats:
        """Return XᵀJc for an array c with one value per active document; takes one sweep."""
        return self.transpose_dot(
            self.space.vector(self.gram.spread(values, self.pairs.n_documents))
        )


class SharedSweeps:
    """Sweeps over one X for several problems (designs), such as folds with their own pairs.

    This class takes one sweep per design. A backend that serves all designs in one sweep has its
    own class, whose results for each design must not depend on the others.
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
    """The feature matrix X in the memory of a backend."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""

    @abstractmethod
    def magnitudes(self, threads: int) -> Floats:
        """Return the largest absolute value of each column, NaN if it contains NaN; cached."""

    @abstractmethod
    def restrict(self, columns: Integers, threads: int) -> "Matrix":
        """Return the submatrix with these columns (ascending indices)."""

    @abstractmethod
    def design(self, pairs: PairCounts, threads: int) -> Design:
        """Return X with the documents of a set of pairs as its rows."""

    @property
    def n_rows(self) -> int:
        return self.shape[0]

    @property
    def n_features(self) -> int:
        return self.shape[1]

    @property
    def n_entries(self) -> int:
        """Number of stored entries."""
        return self.n_rows * self.n_features

    def sample(
        self, pairs: PairCounts, fraction: float, seed: int, threads: int
    ) -> "tuple[Matrix, PairSet]":
        """Return a sample of the pairs and a matrix of their documents, in memory."""
        return self, cast(PairSet, pairs).sample(fraction, seed)

    def arranged(self, pairs: PairCounts) -> PairCounts:
        """Return the same pairs, with documents in the order that makes sweeps cheapest."""
        return pairs

    def feature(self, j: Any) -> Any:
        """Return the indices of the original features that columns j are computed from."""
        return j

    def on_host(self) -> "Matrix | None":
        """Return X for the native kernels, which verify results; None if they compute them."""
        return None

    def survey(self, pairs: PairCounts, threads: int) -> int:
        """Compute column magnitudes and a sample before a fit; return the number of sweeps."""
        return 0

    @property
    def largest_sample(self) -> float:
        """The largest `fraction` for which :meth:`sample` takes no sweep over X."""
        return 1.0

    @property
    def variances(self) -> Floats | None:
        """Approximate variance of each column, if known and dominated by a few columns."""
        return None


class _Certified(Protocol):
    @property
    def value(self) -> float: ...

    @property
    def gap(self) -> float: ...


def is_certified(point: _Certified, tol: float) -> bool:
    """Return True if the gap of a point proves that (F − F*) / F* ≤ tol."""
    return meets(tol, point.value, point.gap)


def meets(tol: float, value: float, gap: float) -> bool:
    """Return True if a gap ≥ F − F* proves that (F − F*) / F* ≤ tol."""
    # F − gap ≤ F* is a lower bound on F*, which is negative by rounding only.
    return gap <= tol * max(value - gap, 0.0)
