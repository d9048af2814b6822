"""What is done for a part: functions of its kernels, that return what to keep and what to tell."""

from typing import Any, NamedTuple

import numpy as np

from marginrank._utils.types import Floats
from marginrank.objective.backends.interface import (
    PartKernels,
    QueryLosses,
    Scores,
    State,
)
from marginrank.objective.pair_sets import PairSet

Kept = tuple[Any, ...]


class Moments(NamedTuple):
    """Number, mean and squared deviations of some numbers."""

    size: int
    mean: float
    squares: float


class Survey(NamedTuple):
    """What one look at a part tells: magnitudes, and a sample of its documents.

    Attributes
    ----------
    magnitudes : ndarray of shape (n_features,)
        The largest absolute value of each feature.
    pairs : PairSet
        Some of the pairs, compact.
    X : array or sparse matrix
        The rows of their documents.
    covered : float
        What all pairs of the part cover.
    """

    magnitudes: Floats
    pairs: PairSet
    X: Any
    covered: float


def evaluate(kernels: PartKernels, like: State | None, w: Floats) -> tuple[Kept, Any]:
    """Look at w."""
    found = kernels.evaluate(w, like)
    kept = found.scores, found.by_query, found.score_gradient, found.state
    return kept, (found.losses, found.gradient)


def evaluate_scores(kernels: PartKernels, scores: Scores, like: State | None) -> tuple[Kept, Any]:
    """Look at some scores."""
    found = kernels.evaluate_scores(scores, like)
    return (found.by_query, found.score_gradient, found.state), found.losses


def evaluate_along(
    kernels: PartKernels,
    scores: Scores,
    direction: Scores,
    like: State | None,
    step: float,
    with_gradient: bool,
) -> tuple[Kept, Any]:
    """Look along a direction; with the gradient it is a sweep."""
    found, slope = kernels.evaluate_along(scores, step, direction, like)
    kept = found.scores, found.by_query, found.score_gradient, found.state
    gradient = kernels.combine(found.score_gradient) if with_gradient else None
    return kept, (found.losses, slope, gradient)


def scores(kernels: PartKernels, w: Floats) -> tuple[Kept, Any]:
    """Return Xw."""
    return (kernels.scores(w),), None


def column(kernels: PartKernels, j: int) -> tuple[Kept, Any]:
    """Return a column of X."""
    return (kernels.column(j),), None


def combine(kernels: PartKernels, z: Scores) -> tuple[Kept, Any]:
    """Return Xᵀz."""
    return (), kernels.combine(z)


def by_group(
    kernels: PartKernels, by_query: QueryLosses, z: Scores, n_groups: int
) -> tuple[Kept, Any]:
    """Return the loss and Xᵀz by groups of queries."""
    return (), kernels.by_group(by_query, z, n_groups)


def query_squares(kernels: PartKernels, by_query: QueryLosses) -> tuple[Kept, Any]:
    """Return what errors of the queries' gradients sum to, squared."""
    return (), kernels.query_squares(by_query)


def hess_vec(kernels: PartKernels, state: State, v: Floats) -> tuple[Kept, Any]:
    """Return XᵀAXv and Xv."""
    product, image = kernels.hess_vec(state, v)
    return (image,), product


def hess_vec_scores(kernels: PartKernels, state: State, u: Scores) -> tuple[Kept, Any]:
    """Return A u."""
    return (kernels.hess_vec_scores(state, u),), None


def hessian(kernels: PartKernels, state: State) -> tuple[Kept, Any]:
    """Return XᵀAX."""
    return (), kernels.hessian(state)


def hess_diag(kernels: PartKernels, state: State) -> tuple[Kept, Any]:
    """Return the diagonal of XᵀAX."""
    return (), kernels.hess_diag(state)


def zero(kernels: PartKernels) -> tuple[Kept, Any]:
    """Return the scores of w = 0."""
    return (kernels.zero(),), None


def same(kernels: PartKernels, a: Scores) -> tuple[Kept, Any]:
    """Return what is given."""
    return (a,), None


def add(kernels: PartKernels, a: Scores, b: Scores, step: float) -> tuple[Kept, Any]:
    """Return a + step · b."""
    return (kernels.add(a, step, b),), None


def dot(kernels: PartKernels, a: Scores, b: Scores) -> tuple[Kept, Any]:
    """Return aᵀb."""
    return (), kernels.dot(a, b)


def moments(kernels: PartKernels, a: Scores) -> tuple[Kept, Any]:
    """Return number, mean and squared deviations of the entries."""
    values = kernels.entries(a)
    mean = float(np.mean(values)) if values.size else 0.0
    return (), Moments(values.size, mean, float(np.sum((values - mean) ** 2)))


def is_finite(kernels: PartKernels, a: Scores) -> tuple[Kept, Any]:
    """Tell whether all entries are numbers."""
    return (), kernels.is_finite(a)


def active_documents(kernels: PartKernels) -> tuple[Kept, Any]:
    """Return the documents of queries with pairs that count, and their rows of X."""
    active = kernels.pair_set.active_documents
    return (), (active, kernels.take_rows(active.rows))


def entries(kernels: PartKernels, a: Scores, documents: Any = None) -> tuple[Kept, Any]:
    """Return the entries of some documents, or of all: where they are few."""
    values = kernels.entries(a)
    return (), values if documents is None else values[documents]


def survey(
    kernels: PartKernels, number: int, fraction: float, seed: int, among: int
) -> tuple[Kept, Survey]:
    """Look at a part once: how large its features are, and a sample of its pairs and rows."""
    seed_of_part = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    pairs = kernels.pair_set
    drawn = pairs.sample(fraction, seed_of_part, among=among)
    rows = drawn.documents.rows
    X = kernels.take_rows(np.arange(drawn.n_documents) if rows is None else rows)
    return (), Survey(kernels.magnitudes(), drawn.compact(), X, pairs.covered)
