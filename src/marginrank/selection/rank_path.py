"""Paths of linear models over C."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from marginrank._utils.parameters import Message
from marginrank._utils.tables import ResultTable
from marginrank._utils.types import Floats
from marginrank.data.held_out import check_same_features, validation_data
from marginrank.data.ranking_data import RankingData, as_ranking_data
from marginrank.fit.linear import Parameters, seed_from
from marginrank.fit.scaling import effect_message, without_effect
from marginrank.metrics.names import Metric
from marginrank.models.fit_report import StopReason, is_close, unfinished_message
from marginrank.selection.judges import HeldOutJudge
from marginrank.selection.linear_paths import default_Cs, solve_paths
from marginrank.selection.path import best_score, check_grid, path_columns, path_summary


@dataclass(frozen=True, repr=False)
class RankPath(ResultTable):
    """Linear models over a grid of C.

    Attributes
    ----------
    values : ndarray of shape (n_points,)
        The grid, ascending.
    coefs : ndarray of shape (n_points, n_features)
        The weights, a row a model.
    objectives, gaps : ndarray of shape (n_points,)
        Objective of each model, as :class:`~marginrank.RankSVM` has it, and the certified bound on
        its distance to the optimum.
    seconds : ndarray of shape (n_points,)
        Time that each model took. Where neighbours are within `tol` of each other, one serves both.
    stop_reasons : list of StopReason
        Why the solver stopped at each.
    metric : str or None
        Name of the metric.
    scores : ndarray of shape (n_points,), or None
        The metric on the validation data.
    """

    values: Floats
    coefs: Floats
    objectives: Floats
    gaps: Floats
    seconds: Floats
    stop_reasons: list[StopReason]
    metric: str | None = None
    scores: Floats | None = None

    @property
    def parameter(self) -> str:
        """What the grid is of."""
        return "C"

    @property
    def norms(self) -> Floats:
        """‖w‖ of each model."""
        norms: Floats = np.linalg.norm(self.coefs, axis=1)
        return norms

    @property
    def best(self) -> int:
        """Index of the model with the highest score; the smallest C of equals up to rounding."""
        return best_score(self.scores, self.metric, "rank_path")

    def _columns(self) -> dict[str, Any]:
        return path_columns(self)

    def _summary(self) -> str:
        return path_summary(self)


def rank_path(
    X: Any,
    y: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    Cs: ArrayLike | None = None,
    n_points: int = 21,
    loss: str = "squared_hinge",
    solver: str = "auto",
    tol: float = 1e-4,
    max_iter: int = 1000,
    pair_selection: str = "all",
    pair_cost: Any = None,
    margin: Any = "unit",
    normalization: str = "none",
    scale: Any = None,
    validation: RankingData | Sequence[Any] | None = None,
    metric: str | Metric = "ndcg@10",
    n_jobs: int | None = None,
    random_state: int = 0,
) -> RankPath:
    """Fit linear models over a grid of C, each from the last one's solution.

    Parameters
    ----------
    X : RankingData, or array-like or sparse matrix of shape (n_documents, n_features)
        The training data.
    y, qid : array-like of shape (n_documents,), optional
        Labels and queries, if X is a matrix.
    Cs : array-like, optional
        The grid. By default it has `n_points` values, evenly spaced on a logarithmic scale, from
        1/64 to 16,384 times the C for which loss and regulariser have the same curvature at
        w = 0, along a feature of the upper quartile and of the lower quartile of curvatures.
    n_points : int, default=21
        Length of the default grid.
    loss, solver, max_iter, pair_selection, pair_cost, margin, normalization, scale, n_jobs
        As in :class:`~marginrank.RankSVM`.
    tol : float, default=1e-4
        Relative distance of each model to its optimum.
    validation : (X, y), (X, y, qid) or RankingData, optional
        Data to score each model on.
    metric : str or callable, default="ndcg@10"
        The score, as :func:`~marginrank.metrics.get_metric` takes it. Tied scores count as in
        random order.
    random_state : int, default=0
        Seed of the samples that speed up the fits.

    Returns
    -------
    RankPath

    Examples
    --------
    >>> from marginrank import make_ranking, rank_path
    >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=20, random_state=0)
    >>> path = rank_path(X, y, qid=qid, n_points=10)
    >>> path.coefs.shape[0], bool((path.norms[1:] > path.norms[:-1]).all())
    (10, True)
    """
    parameters = Parameters(
        loss=loss,
        solver=solver,
        tol=tol,
        max_iter=max_iter,
        pair_selection=pair_selection,
        pair_cost=pair_cost,
        margin=margin,
        normalization=normalization,
        scale=scale,
        n_jobs=n_jobs,
    )
    given = None if Cs is None else check_grid("Cs", Cs)
    data = as_ranking_data(X, y, qid, n_jobs=n_jobs)
    held_out = validation_data(validation, n_jobs=n_jobs)
    check_same_features(held_out, data.n_features, data.feature_names)
    judge = None if held_out is None else HeldOutJudge(held_out, metric, n_jobs)
    grid = default_Cs(data, parameters, n_points) if given is None else given
    path, messages = _walk(data, parameters, grid, seed_from(random_state))
    for message in messages:
        warnings.warn(message, stacklevel=2)
    if judge is None:
        return path
    scores = np.array([judge.score(0, w) for w in path.coefs])
    return replace(path, metric=judge.metric, scores=scores)


def _walk(
    data: RankingData, parameters: Parameters, grid: Floats, seed: int
) -> tuple[RankPath, list[Message]]:
    """Solve at one value after another; return what to warn of, too."""
    models = []
    unfinished, scale = 0, None
    begin = perf_counter()
    for solution in solve_paths(data, parameters, grid, [None], seed=seed):
        scale = solution.scale
        unfinished += not is_close(solution.result, parameters.tol)
        found = solution.result  # with scores of all documents, which are not kept
        models.append((found.w, found.objective, found.gap, found.stop, perf_counter() - begin))
    coefs, objectives, gaps, stop_reasons, seconds = zip(*models, strict=True)
    path = RankPath(
        values=grid,
        coefs=np.array(coefs),
        objectives=np.array(objectives),
        gaps=np.array(gaps),
        seconds=np.diff(seconds, prepend=0.0),
        stop_reasons=list(stop_reasons),
    )
    messages = (
        effect_message(without_effect(scale), data.feature_names),
        unfinished_message(unfinished, grid.size, "models of the path"),
    )
    return path, [message for message in messages if message is not None]
