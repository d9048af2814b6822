"""Tasks: functions of the kernels of a part, which return results to keep and one to report."""

from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from marginrank._utils.types import Floats
from marginrank.objective.pair_sets import PairSet
from marginrank.objective.protocols import Evaluation, Scores, State
from marginrank.operators.parts.executor import PartKernels

Kept = tuple[Any, ...]


def keep(method: str, part: PartKernels, *arguments: Any) -> tuple[Kept, Any]:
    """Call a method of a part, such as "design.dot", and keep its result."""
    return (attrgetter(method)(part)(*arguments),), None


def report(method: str, part: PartKernels, *arguments: Any) -> tuple[Kept, Any]:
    """Call a method of a part, such as "design.transpose_dot", and report its result."""
    return (), attrgetter(method)(part)(*arguments)


def evaluate(part: PartKernels, like: State | None, w: Floats) -> tuple[Kept, Any]:
    """Evaluate the loss at w; a sweep."""
    found = part.design.evaluate(part.pair_loss, w, like)
    return _vectors(found), (found.losses, found.gradient)


def evaluate_scores(part: PartKernels, scores: Scores, like: State | None) -> tuple[Kept, Any]:
    """Evaluate the loss at some scores."""
    found = part.pair_loss.evaluate(scores, like)
    return _vectors(found)[1:], (found.losses,)


def evaluate_along(
    part: PartKernels,
    scores: Scores,
    direction: Scores,
    like: State | None,
    step: float,
    with_gradient: bool,
) -> tuple[Kept, Any]:
    """Evaluate the loss along a direction; with the gradient it is a sweep."""
    found, slope = part.pair_loss.evaluate_along(scores, step, direction, like)
    gradient = part.design.transpose_dot(found.score_gradient) if with_gradient else None
    return _vectors(found), (found.losses, slope, gradient)


def _vectors(found: Evaluation) -> Kept:
    return found.scores, found.by_query, found.score_gradient, found.state


def hess_vec(part: PartKernels, state: State, v: Floats) -> tuple[Kept, Any]:
    """Return XᵀAXv and Xv; a sweep."""
    product, image = part.design.hess_vec(part.pair_loss, state, v)
    return (image,), product


def hessian(part: PartKernels, state: State) -> tuple[Kept, Any]:
    """Return XᵀAX."""
    return (), part.design.hessian(part.pair_loss, state)


def hess_diag(part: PartKernels, state: State) -> tuple[Kept, Any]:
    """Return the diagonal of XᵀAX."""
    return (), part.design.hess_diag(part.pair_loss, state)


def add(part: PartKernels, a: Scores, b: Scores, step: float) -> tuple[Kept, Any]:
    """Return a + step · b."""
    return (part.design.space.add(a, step, b),), None


def same(part: PartKernels, a: Scores) -> tuple[Kept, Any]:
    """Return the argument."""
    return (a,), None


def active_rows(part: PartKernels) -> tuple[Kept, Any]:
    """Return the rows of X of documents of queries with pairs that count, and their numbers."""
    rows, active = part.design.active_rows()
    return (), (rows.copy(), active)


class Survey(NamedTuple):
    """Facts of a part from one sweep: magnitudes, and a sample of its documents.

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


def survey(
    part: PartKernels, number: int, fraction: float, seed: int, among: int
) -> tuple[Kept, Survey]:
    """Return how large the features of a part are, and a sample of its pairs and rows."""
    seed_of_part = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    design = part.design
    pairs = design.pairs
    assert isinstance(pairs, PairSet)
    drawn = pairs.sample(fraction, seed_of_part, among=among)
    rows = drawn.documents.rows
    X = design.rows(np.arange(drawn.n_documents) if rows is None else rows).copy()
    return (), Survey(design.magnitudes(), drawn.compact(), X, pairs.covered)
