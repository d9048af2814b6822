"""What an objective asks of a backend: sums over pairs, and sweeps over X.

A backend holds X (:class:`Matrix`) and computes with it for a set of pairs and a loss
(:class:`Kernels`). Vectors with an entry a feature are short: they are NumPy arrays. Those with an
entry a document are :data:`Scores`: whatever the backend keeps them in, in memory, on a card or on
other machines. Nobody but the backend looks into them.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, NewType

import numpy as np

from marginrank._utils.types import Floats, Integers
from marginrank.objective.gram import Gram
from marginrank.objective.grouped_loss import GroupedLoss
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sets import PairCounts, PairSet

Scores = NewType("Scores", object)  # an entry a document, in the order of the grouped documents
State = NewType("State", object)  # what products at some scores need
QueryLosses = NewType("QueryLosses", object)  # the loss of each query, and the sizes of its sums
# Scores and states go from one Kernels to another on the same documents: with another loss, with
# other columns of X. There a state only tells an order of the documents to begin with.


class LossSums(NamedTuple):
    """The loss of all queries.

    Attributes
    ----------
    value : float
        The loss.
    value_size, slope_size : float
        The sizes of what was added up for it, and for its derivatives.
    n_queries, n_documents : int
        How many queries have any, and how many documents have a score that changes it.
    """

    value: float
    value_size: float
    slope_size: float
    n_queries: int
    n_documents: int

    @classmethod
    def of(cls, table: Floats, n_documents: int) -> "LossSums":
        """Sum the loss of each query and its two sizes, a row a query."""
        value, value_size, slope_size = (float(np.sum(column)) for column in table.T)
        n_queries = int(np.count_nonzero(table[:, 0]))
        return cls(value, value_size, slope_size, n_queries, n_documents)


class Evaluation(NamedTuple):
    """The loss at some scores.

    Attributes
    ----------
    scores : Scores
        Where.
    losses : LossSums
        The loss.
    by_query : QueryLosses
        The same for each query.
    score_gradient : Scores
        The derivative of the loss by each score, z.
    state : State
        For products with the Hessian there.
    gradient : ndarray of shape (n_features,) or None
        Xᵀz, if the same sweep has made it.
    """

    scores: Scores
    losses: LossSums
    by_query: QueryLosses
    score_gradient: Scores
    state: State
    gradient: Floats | None


class BasicKernels(ABC):
    """What there is of the documents of a problem, or of a part of it."""

    @abstractmethod
    def evaluate(self, w: Floats, like: State | None) -> Evaluation:
        """Look at w, gradient included; a sweep. It is faster if `like` ranks documents alike."""

    @abstractmethod
    def evaluate_scores(self, scores: Scores, like: State | None) -> Evaluation:
        """Look at some scores; no sweep, and no gradient."""

    def evaluate_along(
        self, scores: Scores, step: float, direction: Scores, like: State | None
    ) -> tuple[Evaluation, float]:
        """Look at scores + step · direction, and tell the slope of the loss along it; no sweep."""
        found = self.evaluate_scores(self.add(scores, step, direction), like)
        return found, self.dot(found.score_gradient, direction)

    @abstractmethod
    def scores(self, w: Floats) -> Scores:
        """Return Xw; a sweep."""

    @abstractmethod
    def column(self, j: int) -> Scores:
        """Return the scores of the weights e_j: a column of X."""

    @abstractmethod
    def combine(self, z: Scores) -> Floats:
        """Return Xᵀz; a sweep."""

    @abstractmethod
    def by_group(self, by_query: QueryLosses, z: Scores, n_groups: int) -> GroupedLoss:
        """Return the loss, and Xᵀz, as sums over about `n_groups` groups of queries; a sweep."""

    @abstractmethod
    def query_squares(self, by_query: QueryLosses) -> Floats:
        """Return Σ_q c_q² · max_i x_ij² over the documents i of q, or more; a sweep.

        c_q is the size of what was added up for the derivatives of the loss of query q.
        """

    @abstractmethod
    def hess_vec(self, state: State, v: Floats) -> tuple[Floats, Scores]:
        """Return XᵀAXv and Xv; A is the Hessian of the loss as a function of scores. A sweep."""

    @abstractmethod
    def hess_vec_scores(self, state: State, u: Scores) -> Scores:
        """Return A u; no sweep."""

    @abstractmethod
    def hessian(self, state: State) -> Floats:
        """Return XᵀAX; a sweep for each eight columns."""

    @abstractmethod
    def hess_diag(self, state: State) -> Floats:
        """Return the diagonal of XᵀAX; a sweep for each eight columns a row has entries in."""

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
    def is_finite(self, a: Scores) -> bool:
        """Tell whether all entries are numbers."""


class Kernels(BasicKernels):
    """Sums over a set of pairs, with a loss, and sweeps over X."""

    @abstractmethod
    def gram(self, scale: Floats | None = None) -> Gram:
        """Return the inner products of the m active documents, from X, or from X / scale."""

    @abstractmethod
    def curved_gram(self, state: State, gram: Gram) -> Floats:
        """Return A K, an m × m matrix, where K are the inner products; no sweep."""

    @abstractmethod
    def select(self, gram: Gram, scores: Scores) -> Floats:
        """Return the m entries of the active documents."""

    @abstractmethod
    def combine_selected(self, gram: Gram, values: Floats) -> Floats:
        """Return XᵀJc for m values c of the active documents, where J takes off means; a sweep."""

    @abstractmethod
    def spread(self, a: Scores) -> float:
        """Return the standard deviation of the entries."""


class PartKernels(BasicKernels):
    """The same for a part of the documents, in this process: its vectors can be looked into."""

    @property
    @abstractmethod
    def pair_set(self) -> PairSet:
        """The pairs."""

    @abstractmethod
    def entries(self, a: Scores) -> Floats:
        """Return the entries of a vector."""

    @abstractmethod
    def magnitudes(self) -> Floats:
        """Return the largest absolute value of each feature."""

    @abstractmethod
    def take_rows(self, rows: Integers) -> Any:
        """Return some rows of X (ascending), as an array or as CSR."""


class SharedSweeps:
    """Sweeps over X for several kernels of one matrix and the same documents, in their order.

    Here each makes its own. A backend that can serve all in one sweep has a class of its own, whose
    results are the same for each of them whoever the others are.
    """

    def __init__(self, kernels: Sequence[Kernels]) -> None:
        self._kernels = kernels

    def evaluate(self, ws: Sequence[Floats], likes: Sequence[State | None]) -> list[Evaluation]:
        """Look at a w each, gradients included."""
        return [k.evaluate(w, like) for k, w, like in zip(self._kernels, ws, likes, strict=True)]

    def scores(self, ws: Sequence[Floats]) -> list[Scores]:
        """Return Xw for a w each."""
        return [k.scores(w) for k, w in zip(self._kernels, ws, strict=True)]

    def combine(self, zs: Sequence[Scores]) -> list[Floats]:
        """Return Xᵀz for a z each."""
        return [k.combine(z) for k, z in zip(self._kernels, zs, strict=True)]

    def hess_vec(
        self, states: Sequence[State], vs: Sequence[Floats]
    ) -> list[tuple[Floats, Scores]]:
        """Return XᵀAXv and Xv for a state and a v each."""
        return [k.hess_vec(s, v) for k, s, v in zip(self._kernels, states, vs, strict=True)]


class Matrix(ABC):
    """X as a backend holds it."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of columns."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def n_entries(self) -> int:
        """Number of stored entries."""

    @abstractmethod
    def magnitudes(self, threads: int) -> Floats:
        """Return the largest absolute value of each column, NaN if it holds one; made once."""

    @abstractmethod
    def restrict(self, columns: Integers, threads: int) -> "Matrix":
        """Return some columns alone (ascending)."""

    @abstractmethod
    def kernels(self, pairs: PairCounts, loss: Loss, threads: int) -> Kernels:
        """Return what computes with it for a set of pairs and a loss."""

    @abstractmethod
    def sample(
        self, pairs: PairCounts, fraction: float, seed: int, threads: int
    ) -> "tuple[Matrix, PairSet]":
        """Return a sample of the pairs and the matrix of their documents, in memory."""

    def feature(self, j: Any) -> Any:
        """Return the number in the data of the feature that column j is made of, or of several."""
        return j

    def on_host(self) -> "Matrix | None":
        """Return the same X for the native kernels, to have the last word; None if it is theirs."""
        return None

    def survey(self, pairs: PairCounts, threads: int) -> int:
        """Look at all that a fit will ask for besides sums, if that saves sweeps; tell how many."""
        return 0

    @property
    def largest_sample(self) -> float:
        """The share of the documents up to which samples are to be had at once."""
        return 1.0

    @property
    def variances(self) -> Floats | None:
        """How much each column varies, about, if that is known and a few are far ahead."""
        return None

    def share(self, kernels: Sequence[Kernels]) -> SharedSweeps:
        """Return sweeps for several kernels of this matrix and the same documents."""
        return SharedSweeps(kernels)
