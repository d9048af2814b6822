"""What an objective asks of a backend: sums over pairs, and sweeps over X.

A backend holds X (:class:`Matrix`) and computes with it for a set of pairs and a loss
(:class:`Kernels`). Vectors with an entry a feature are short: they are NumPy arrays. Those with an
entry a document are :data:`Scores`: whatever the backend keeps them in, in memory, on a card or on
other machines. Nobody but the backend looks into them.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, NewType

from marginrank._base.types import Floats, Integers
from marginrank.objective.gram import Gram
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sets import PairSet

Scores = NewType("Scores", object)  # an entry a document, in the order of the grouped documents
State = NewType("State", object)  # what products at some scores need
# Scores and states go from one Kernels to another on the same documents: with another loss, with
# other columns of X. There a state only tells an order of the documents to begin with.


class Evaluation(NamedTuple):
    """The loss at some scores.

    Attributes
    ----------
    scores : Scores
        Where.
    losses : ndarray of shape (n_queries, 3)
        The loss of each query; the sizes of what was added up for it and for its derivatives.
    score_gradient : Scores
        The derivative of the loss by each score, z.
    state : State
        For products with the Hessian there.
    gradient : ndarray of shape (n_features,) or None
        Xᵀz, if the same sweep has made it.
    """

    scores: Scores
    losses: Floats
    score_gradient: Scores
    state: State
    gradient: Floats | None


class Kernels(ABC):
    """Sums over a set of pairs, with a loss, and sweeps over X."""

    @abstractmethod
    def evaluate(self, w: Floats, like: State | None) -> Evaluation:
        """Look at w, gradient included; a sweep. It is faster if `like` ranks documents alike."""

    @abstractmethod
    def evaluate_scores(self, scores: Scores, like: State | None) -> Evaluation:
        """Look at some scores; no sweep, and no gradient."""

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
    def combine_by_group(self, z: Scores, queries: Integers) -> Floats:
        """Return Xᵀz as a sum over groups of queries, a row each, given where groups begin.

        The last entry of `queries` is their number; a sweep.
        """

    @abstractmethod
    def query_squares(self, sizes: Floats) -> Floats:
        """Return Σ_q sizes_q² · max_i x_ij² over the documents i of q, or more; a sweep."""

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
    def zero(self) -> Scores:
        """Return the scores of w = 0."""

    @abstractmethod
    def add(self, a: Scores, step: float, b: Scores) -> Scores:
        """Return a + step · b."""

    @abstractmethod
    def dot(self, a: Scores, b: Scores) -> float:
        """Return aᵀb."""

    @abstractmethod
    def spread(self, a: Scores) -> float:
        """Return the standard deviation of the entries."""

    @abstractmethod
    def count_nonzero(self, a: Scores) -> int:
        """Return how many entries are not zero."""

    @abstractmethod
    def is_finite(self, a: Scores) -> bool:
        """Tell whether all entries are numbers."""


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
    def kernels(self, pairs: PairSet, loss: Loss, threads: int) -> Kernels:
        """Return what computes with it for a set of pairs and a loss."""

    def share(self, kernels: Sequence[Kernels]) -> SharedSweeps:
        """Return sweeps for several kernels of this matrix and the same documents."""
        return SharedSweeps(kernels)
