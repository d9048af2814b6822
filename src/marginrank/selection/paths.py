"""Paths of linear and sparse models over the strength of their regularization."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from marginrank._utils.parameters import Message, check_choice
from marginrank._utils.tables import ResultTable
from marginrank._utils.types import Floats
from marginrank.data.held_out import check_same_features, validation_data
from marginrank.data.ranking_data import RankingData, as_ranking_data
from marginrank.fit.linear import Parameters, seed_from
from marginrank.fit.scaling import Scale, effect_message, values_of, without_effect
from marginrank.fit.sparse import SparseParameters
from marginrank.metrics.names import Metric
from marginrank.metrics.options import exceeds
from marginrank.models.fit_report import StopReason, is_close, unfinished_message
from marginrank.selection.learner import PathLearner
from marginrank.selection.linear_paths import LINEAR
from marginrank.selection.scoring import Split, SplitScorer
from marginrank.selection.space import check_grid
from marginrank.selection.sparse_paths import PATH_TOL, SparseLearner
from marginrank.solvers.result import Callback


@dataclass(frozen=True, repr=False)
class ModelPath(ResultTable):
    """Models over a grid of one parameter.

    Attributes
    ----------
    parameter : {"C", "radius"}
        What the grid is of.
    values : ndarray of shape (n_points,)
        The grid, ascending.
    coefs : ndarray or scipy.sparse.csr_array of shape (n_points, n_features)
        The weights, one row per model, of the features as they are: not scaled.
    objectives, gaps : ndarray of shape (n_points,)
        Objective of each model, as a fit with its value alone has it, and the certified bound on
        its distance to the optimum.
    seconds : ndarray of shape (n_points,)
        Time that each model took. Where neighbours on a linear path are within `tol` of each other,
        one serves both.
    stop_reasons : list of StopReason
        Why the solver stopped at each.
    n_unfinished : int
        Number of models that did not reach `tol`.
    scale : ndarray of shape (n_features,), or None
        What features were divided by.
    metric : str or None
        Name of the metric.
    scores : ndarray of shape (n_points,), or None
        The metric on the validation data.
    """

    parameter: str
    values: Floats
    coefs: Any
    objectives: Floats
    gaps: Floats
    seconds: Floats
    stop_reasons: list[StopReason]
    n_unfinished: int
    scale: Floats | None = None
    metric: str | None = None
    scores: Floats | None = None

    @property
    def norms(self) -> Floats:
        """The norm of each model."""
        raise NotImplementedError

    def convergence_message(self, *, has_tol: bool = True) -> Message | None:
        """Return the warning about models that did not reach tol, or None."""
        n = self.values.size
        return unfinished_message(self.n_unfinished, n, "models of the path", has_tol=has_tol)

    @property
    def best_index(self) -> int:
        """Index of the highest score; of equals up to rounding, the smallest value."""
        if self.scores is None:
            raise ValueError("the path has no scores; pass validation data.")
        if np.all(np.isnan(self.scores)):
            raise ValueError(
                f"{self.metric} has no value on the validation data; check its labels and queries."
            )
        return int(np.argmin(exceeds(np.nanmax(self.scores), self.scores) | np.isnan(self.scores)))

    def _columns(self) -> dict[str, Any]:
        scores = {} if self.scores is None else {"score": self.scores}
        return {
            self.parameter: self.values,
            **scores,
            "objective": self.objectives,
            "gap": self.gaps,
            "norm": self.norms,
            "seconds": self.seconds,
            "stop_reason": [stop.name for stop in self.stop_reasons],
        }

    def _summary(self) -> str:
        name, values, scores = self.parameter, self.values, self.scores
        grid = f"{values.size} values of {name} from {values[0]:.4g} to {values[-1]:.4g}"
        if scores is None or np.isnan(scores).all():
            return grid
        best = self.best_index
        return f"{grid}, best {self.metric} {scores[best]:.4f} at {name}={values[best]:.4g}"


class LinearPath(ModelPath):
    """Linear models over a grid of C; see :func:`linear_path` and :class:`ModelPath`."""

    @property
    def norms(self) -> Floats:
        """‖w‖ of each model."""
        norms: Floats = np.linalg.norm(self.coefs, axis=1)
        return norms


class SparsePath(ModelPath):
    """Sparse models over a grid of C or of the radius; see :func:`sparse_path`.

    Its attributes are those of :class:`ModelPath` and `sparsity`.
    """

    @property
    def norms(self) -> Floats:
        """‖w‖₁ of each model, or Σ scale |w|: the radius that a C stands for."""
        sizes = abs(self.coefs)
        norms = sizes.sum(axis=1) if self.scale is None else sizes @ self.scale
        return np.asarray(norms, dtype=np.float64)

    @property
    def sparsity(self) -> Floats:
        """Share of the weights that are not zero, for each model."""
        shares: Floats = np.diff(self.coefs.indptr) / self.coefs.shape[1]
        return shares

    def _columns(self) -> dict[str, Any]:
        return super()._columns() | {"sparsity": self.sparsity}


Path = TypeVar("Path", bound=ModelPath)


def linear_path(
    X: Any,
    y: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    Cs: ArrayLike | None = None,
    n_points: int = LINEAR.n_points,
    loss: str = "squared_hinge",
    solver: str = "auto",
    tol: float = PATH_TOL,
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
) -> LinearPath:
    """Fit linear models over a grid of C, each from the last one's solution.

    Parameters
    ----------
    X : RankingData, or array-like or sparse matrix of shape (n_documents, n_features)
        The training data.
    y, qid : array-like of shape (n_documents,), optional
        Labels and queries, if X is a matrix.
    Cs : array-like, optional
        The grid. By default it has `n_points` values, evenly spaced on a logarithmic scale, from
        1/64 to 16,384 times the C for which loss and regularizer have the same curvature at
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
    LinearPath

    Examples
    --------
    >>> from marginrank import linear_path, make_ranking
    >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=20, random_state=0)
    >>> path = linear_path(X, y, qid=qid, n_points=10)
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
    grid = None if Cs is None else check_grid("Cs", Cs)
    return _path_of(
        LinearPath,
        LINEAR,
        parameters,
        as_ranking_data(X, y, qid, n_jobs=n_jobs),
        validation,
        metric,
        grid=grid,
        n_points=n_points,
        random_state=random_state,
    )


def sparse_path(
    X: Any,
    y: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    Cs: ArrayLike | None = None,
    radii: ArrayLike | None = None,
    n_points: int = SparseLearner.n_points,
    parameter: str = "C",
    l1_ratio: float = 1.0,
    positive: bool = False,
    loss: str = "squared_hinge",
    tol: float = PATH_TOL,
    max_iter: int = 1000,
    pair_selection: str = "all",
    pair_cost: Any = None,
    normalization: str = "pairs",
    scale: Any = "standard",
    validation: RankingData | Sequence[Any] | None = None,
    metric: str | Metric = "ndcg@10",
    n_jobs: int | None = None,
    random_state: int = 0,
    callback: Callback | None = None,
) -> SparsePath:
    """Fit sparse models over a grid, each from the last one's solution.

    Parameters
    ----------
    X : RankingData, or array-like or sparse matrix of shape (n_documents, n_features)
        The training data.
    y, qid : array-like of shape (n_documents,), optional
        Labels and queries, if X is a matrix.
    Cs, radii : array-like, optional
        The grid, of either form. By default it has `n_points` values, evenly spaced on a
        logarithmic scale, from the smallest at which it matters up to 1,000 times that: the C above
        which a weight is not zero, or the radius above which more than one is not zero.
    n_points : int, default=50
        Length of the default grid.
    parameter : {"C", "radius"}, default="C"
        What the default grid is of.
    l1_ratio, positive, loss, max_iter, pair_selection, pair_cost, normalization, scale, n_jobs
        As in :class:`~marginrank.SparseRankSVM`.
    tol : float, default=1e-4
        Certified relative distance of each model to its optimum.
    validation : (X, y), (X, y, qid) or RankingData, optional
        Data to score each model on.
    metric : str or callable, default="ndcg@10"
        The score, as :func:`~marginrank.metrics.get_metric` takes it. Tied scores count as in
        random order, unless the metric was made with ``ties="order"``: a model of zeros must not
        win because the rows are sorted. A function of your own decides for itself.
    random_state : int, default=0
        Seed of the samples that speed up the fits.
    callback : callable, optional
        Called with each :class:`~marginrank.models.fit_report.Iteration` of each fit.

    Returns
    -------
    SparsePath

    Examples
    --------
    >>> from marginrank import make_ranking, sparse_path
    >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=20, random_state=0)
    >>> path = sparse_path(X, y, qid=qid, n_points=10)
    >>> int((path.coefs[[0]] != 0).sum()), bool(path.sparsity[-1] > 0.5)
    (0, True)
    """
    parameter, grid = given_grid(Cs, radii, parameter)
    parameters = SparseParameters(
        l1_ratio=l1_ratio,
        positive=positive,
        loss=loss,
        tol=tol,
        max_iter=max_iter,
        pair_selection=pair_selection,
        pair_cost=pair_cost,
        normalization=normalization,
        scale=scale,
        n_jobs=n_jobs,
        radius=1.0 if parameter == "radius" else None,
    )
    return _path_of(
        SparsePath,
        SparseLearner(parameter, callback),
        parameters,
        as_ranking_data(X, y, qid, n_jobs=n_jobs),
        validation,
        metric,
        grid=grid,
        n_points=n_points,
        random_state=random_state,
    )


def _path_of(
    kind: type[Path],
    learner: PathLearner,
    parameters: Any,
    data: RankingData,
    validation: RankingData | Sequence[Any] | None,
    metric: str | Metric,
    *,
    grid: Floats | None,
    n_points: int,
    random_state: int,
) -> Path:
    """Return a path, and warn of its features without effect and its unfinished models."""
    held_out = validation_data(validation, n_jobs=parameters.n_jobs)
    check_same_features(held_out, data.n_features, data.feature_names)
    seed = seed_from(random_state)
    path, scale = fit_path(
        kind, learner, data, parameters, held_out, metric, grid=grid, n_points=n_points, seed=seed
    )
    for message in (
        effect_message(without_effect(scale), data.feature_names),
        path.convergence_message(),
    ):
        if message is not None:
            warnings.warn(message, stacklevel=3)
    return path


def fit_path(
    kind: type[Path],
    learner: PathLearner,
    data: RankingData,
    parameters: Any,
    held_out: RankingData | None = None,
    metric: str | Metric = "ndcg@10",
    *,
    grid: Floats | None,
    n_points: int,
    seed: int,
) -> tuple[Path, Scale | None]:
    """Return a path and its scale, without warnings.

    Parameters
    ----------
    kind : type
        Class of the path.
    learner : PathLearner
        Fits the models.
    data : RankingData
        The training data.
    parameters : Parameters or SparseParameters
        All parameters but the one of the grid.
    held_out : RankingData, optional
        Data to score each model on, with the features of the training data.
    metric : str or callable
        The score.
    grid : ndarray or None
        The grid, ascending; None for the default one of `n_points`.
    seed : int
        Seed of the samples that speed up the fits.
    """
    splits = [] if held_out is None else [Split(None, held_out)]
    scorer = SplitScorer(splits, metric, parameters.n_jobs, learner)
    if grid is None:
        grid = learner.default_grid(data, parameters, n_points)
    begin = perf_counter()
    models, results, ends = [], [], []
    scale, unfinished = None, 0
    for one in learner.fit_paths(data, parameters, grid, [None], seed=seed):
        models.append(one.model)
        found, scale = one.result, one.scale
        # Without the scores of all documents.
        results.append((found.objective, found.gap, found.stop_reason))
        ends.append(perf_counter() - begin)
        unfinished += not is_close(found, parameters.tol)
    objectives, gaps, stop_reasons = zip(*results, strict=True)
    path = kind(
        parameter=learner.parameter,
        values=grid,
        coefs=sp.csr_array(sp.vstack(models)) if sp.issparse(models[0]) else np.array(models),
        objectives=np.array(objectives),
        gaps=np.array(gaps),
        seconds=np.diff(ends, prepend=0.0),
        stop_reasons=list(stop_reasons),
        n_unfinished=unfinished,
        scale=values_of(scale),
    )
    if held_out is None:
        return path, scale
    scores = np.array([scorer.score(0, model) for model in models])
    return replace(path, metric=scorer.metric, scores=scores), scale


def given_grid(
    Cs: ArrayLike | None, radii: ArrayLike | None, parameter: str
) -> tuple[str, Floats | None]:
    """Return what the grid of a sparse path is of, and the grid unless it is the default one."""
    check_choice("parameter", parameter, ("C", "radius"))
    if Cs is not None and radii is not None:
        raise ValueError("Cs and radii are two forms of one grid; give one of them.")
    if Cs is not None:
        return "C", check_grid("Cs", Cs)
    if radii is not None:
        return "radius", check_grid("radii", radii)
    return parameter, None
