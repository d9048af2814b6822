"""Choosing C, smoothness and bins of additive rankers by folds of whole queries."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from marginrank._base.threads import effective_threads
from marginrank._base.types import Floats
from marginrank.data.ranking_data import RankingData
from marginrank.metrics._names import metric_name, order_free
from marginrank.metrics.scorers import metric_of
from marginrank.training.additive import AdditiveParameters, prepare
from marginrank.training.folds import Fold, has_pairs, over_folds, rows_of

FOLD_TOL = 1e-3  # closer fits would not change what is chosen


class Grid(NamedTuple):
    """What there is to choose from, ascending."""

    max_bins: Sequence[int]
    smoothness: Sequence[float]
    Cs: Sequence[float]


class AdditiveChoice(NamedTuple):
    """What was chosen, and why.

    Attributes
    ----------
    parameters : AdditiveParameters
        Those of the best mean; of equals, those with fewer bins, smoother curves and a lower C.
    scores : ndarray of shape (n_bins, n_smoothness, n_Cs, n_folds)
        The metric of each candidate on each fold; nan where it has none.
    """

    parameters: AdditiveParameters
    scores: Floats


def choose_additive(
    data: RankingData,
    X: Any,
    parameters: AdditiveParameters,
    grid: Grid,
    folds: Sequence[Fold],
    *,
    metric: Any = "ndcg@10",
    feature_names: Sequence[str] | None = None,
    seed: int = 0,
) -> AdditiveChoice:
    """Judge every candidate of a grid on the documents of each fold that it has not seen.

    Knots and scales are those of the documents that a model learns from. Models of one fold that
    differ in C share the places of their values, and each starts from the one before.
    """
    evaluate = order_free(metric_of(metric))
    scores = np.full((*map(len, grid), len(folds)), np.nan)
    for k, fold in enumerate(folds):
        y, qid = data.y[fold.test], data.qid[fold.test]
        if not has_pairs(y, qid):
            continue
        train = rows_of(data, fold.train, n_jobs=parameters.n_jobs)
        for b, s in product(range(len(grid.max_bins)), range(len(grid.smoothness))):
            base = replace(parameters, max_bins=grid.max_bins[b], smoothness=grid.smoothness[s])
            models = _along(train, X[fold.train], X[fold.test], base, grid.Cs, feature_names, seed)
            for c, predicted in enumerate(models):
                scores[b, s, c, k] = evaluate(y, predicted, qid=qid)
    mean = over_folds(scores, metric_name(metric_of(metric)), stacklevel=4).mean
    b, s, c = _simplest(mean)
    best = replace(
        parameters, lam=None, C=grid.Cs[c], max_bins=grid.max_bins[b], smoothness=grid.smoothness[s]
    )
    return AdditiveChoice(best, scores)


def _along(
    train: RankingData,
    X: Any,
    held_out: Any,
    base: AdditiveParameters,
    Cs: Sequence[float],
    feature_names: Sequence[str] | None,
    seed: int,
) -> Iterator[Floats]:
    """Yield the scores of held-out documents by the models of all C, ascending."""
    curves = prepare(train, base, X=X, feature_names=feature_names)
    threads = effective_threads(base.n_jobs)
    start = None
    for C in Cs:
        here = replace(base, C=C, lam=None, tol=max(base.tol, FOLD_TOL))
        problem = curves.with_interactions(train, here, seed=seed)
        objective = problem.objective(train, here)
        fit = problem.minimise(objective, here, seed=seed, w0=start)
        if problem is curves:  # with other pairs of features, weights are those of other functions
            start = fit.result.w
        yield problem.outcome(fit).scores(held_out, threads)


def _simplest(mean: Floats) -> tuple[int, int, int]:
    """Return the place of the best mean: of equals the fewest bins, the smoothest, the lowest C."""
    ties = np.argwhere(mean >= np.nanmax(mean))
    b, s, c = min(ties.tolist(), key=lambda at: (at[0], -at[1], at[2]))
    return b, s, c
