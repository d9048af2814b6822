"""Regularization paths: linear or sparse models over a grid of C or of the l1 radius."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
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
from marginrank.fit.positions import check_no_positions
from marginrank.fit.scaling import Scale, effect_message, values_of, without_effect
from marginrank.fit.sparse import SparseParameters
from marginrank.metrics.names import Metric
from marginrank.metrics.options import exceeds
from marginrank.models.fit_report import StopReason, unfinished_message
from marginrank.selection.learner import PathLearner
from marginrank.selection.linear_paths import LINEAR
from marginrank.selection.scoring import Split, SplitScorer
from marginrank.selection.search import Search
from marginrank.selection.space import SearchSpace, check_grid
from marginrank.selection.sparse_paths import PATH_TOL, SparseLearner
from marginrank.solvers.result import Callback


@dataclass(frozen=True, repr=False)
class ModelPath(ResultTable):
    """Fitted models over a grid of one parameter: a regularization path.

    Attributes
    ----------
    parameter : {"C", "radius"}
        Name of the parameter.
    values : ndarray of shape (n_points,)
        The grid, ascending.
    coefs : ndarray or scipy.sparse.csr_array of shape (n_points, n_features)
        The weights of the unscaled features, one row per model.
    objectives, gaps : ndarray of shape (n_points,)
        Objective of each model, and the certified bound on its distance to the optimum, as in a fit
        with this value alone.
    seconds : ndarray of shape (n_points,)
        Time of each fit. If neighbors on a linear path are within `tol` of each other, they share
        one fit.
    stop_reasons : list of StopReason
        Why the solver stopped at each model.
    n_unfinished : int
        Number of models that did not reach `tol`.
    scale : ndarray of shape (n_features,), or None
        Divisors of the features.
    metric : str or None
        Name of the metric.
    scores : ndarray of shape (n_points,), or None
        The metric on the validation data.
    feature_names : list of str, or None
        Names of the features, in the order of the columns.
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
    feature_names: list[str] | None = None

    @property
    def norms(self) -> Floats:
        """The norm of the weights of each model on the path."""
        raise NotImplementedError

    def convergence_message(self, *, has_tol: bool = True) -> Message | None:
        """Return the warning that some models of the path did not reach `tol`, or None."""
        n = self.values.size
        return unfinished_message(self.n_unfinished, n, "models of the path", has_tol=has_tol)

    @property
    def best_index(self) -> int:
        """Index of the model with the best validation score; among equals, the smallest value."""
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
    """A regularization path of linear models over a grid of C, as :func:`linear_path` returns.

    Attributes are described in :class:`ModelPath`.
    """

    @property
    def norms(self) -> Floats:
        """The l2 norm ‖w‖ of the weights of each model on the path."""
        return np.asarray(np.linalg.norm(self.coefs, axis=1))


class SparsePath(ModelPath):
    """A regularization path of sparse models over a grid of C or radius.

    :func:`sparse_path` returns it; attributes are described in :class:`ModelPath`.
    """

    @property
    def norms(self) -> Floats:
        """The l1 norm of the weights of each model: the radius that corresponds to its C.

        With a `scale`, it is the norm of the weights of scaled features, Σ scale · abs(w).
        """
        sizes = abs(self.coefs)
        norms = sizes.sum(axis=1) if self.scale is None else sizes @ self.scale
        return np.asarray(norms, dtype=np.float64)

    @property
    def sparsity(self) -> Floats:
        """Share of the weights that are not zero, for each model on the path."""
        return np.asarray(np.diff(self.coefs.indptr) / self.coefs.shape[1])

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
    """Fit linear models over a grid of C, each warm-started from the previous one.

    Parameters
    ----------
    X : RankingData, or array-like or sparse matrix of shape (n_documents, n_features)
        The training data.
    y, qid : array-like of shape (n_documents,), optional
        Labels and queries, if X is a matrix.
    Cs : array-like, optional
        The grid. By default it has `n_points` values, evenly spaced on a logarithmic scale, around
        the C at which loss and regularizer have the same curvature at w = 0: from 1/64 of this C
        for the upper quartile of the features to 16,384 times this C for the lower quartile.
    n_points : int, default=21
        Length of the default grid.
    loss, solver, max_iter, pair_selection, pair_cost, margin, normalization, scale, n_jobs
        As in :class:`~marginrank.RankSVM`.
    tol : float, default=1e-4
        Relative distance of each model to its optimum.
    validation : (X, y), (X, y, qid) or RankingData, optional
        Data to score each model on.
    metric : str or callable, default="ndcg@10"
        The score, as in :func:`~marginrank.metrics.get_metric`, with ``ties="average"`` by default.
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
    """Fit sparse models over a grid of C or radius, each warm-started from the previous one.

    Parameters
    ----------
    X : RankingData, or array-like or sparse matrix of shape (n_documents, n_features)
        The training data.
    y, qid : array-like of shape (n_documents,), optional
        Labels and queries, if X is a matrix.
    Cs, radii : array-like, optional
        The grid, of one of the two parameters. By default it has `n_points` values, evenly spaced
        on a logarithmic scale, from the smallest useful value up to 1,000 times that: the C above
        which a weight is not zero, or the radius above which more than one weight is not zero.
    n_points : int, default=50
        Length of the default grid.
    parameter : {"C", "radius"}, default="C"
        Parameter of the default grid.
    l1_ratio, positive, loss, max_iter, pair_selection, pair_cost, normalization, scale, n_jobs
        As in :class:`~marginrank.SparseRankSVM`.
    tol : float, default=1e-4
        Certified relative distance of each model to its optimum.
    validation : (X, y), (X, y, qid) or RankingData, optional
        Data to score each model on.
    metric : str or callable, default="ndcg@10"
        The score, as in :func:`~marginrank.metrics.get_metric`, with ``ties="average"`` by default:
        a model of zeros must not win because the rows are sorted by label.
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
    """Return a fitted path; warn about features without effect and models that missed tol."""
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
    """Fit a regularization path; return it with the scale of the features, without warnings.

    `held_out` are data to score each model on. `grid` is ascending, or None for the default grid of
    `n_points` values.
    """
    check_no_positions(data, "A path")
    space = SearchSpace(parameters, {}, grid, n_points, learner, search_tol=parameters.tol)
    scorer = SplitScorer([Split(None, held_out)], metric, parameters.n_jobs, learner)
    search = Search(data, space, scorer, seed)
    fits = [search.fits(candidate)[0] for candidate in search.run()]
    models = [fit.model for fit in fits]
    path = kind(
        parameter=learner.parameter,
        values=np.array([candidate.value for candidate in search.candidates]),
        coefs=sp.csr_array(sp.vstack(models)) if sp.issparse(models[0]) else np.array(models),
        objectives=np.array([fit.objective for fit in fits]),
        gaps=np.array([fit.gap for fit in fits]),
        seconds=np.array([fit.seconds for fit in fits]),
        stop_reasons=[fit.stop_reason for fit in fits],
        n_unfinished=search.count.unfinished,
        scale=values_of(fits[-1].scale),
        metric=None if held_out is None else scorer.metric,
        scores=None if held_out is None else np.ravel([one.scores for one in search.candidates]),
        feature_names=data.feature_names,
    )
    return path, fits[-1].scale


def given_grid(
    Cs: ArrayLike | None, radii: ArrayLike | None, parameter: str
) -> tuple[str, Floats | None]:
    """Return the name of the path's parameter ("C" or "radius"), and the user's grid or None."""
    check_choice("parameter", parameter, ("C", "radius"))
    if Cs is not None and radii is not None:
        raise ValueError("Cs and radii cannot be combined; pass one of them.")
    if Cs is not None:
        return "C", check_grid("Cs", Cs)
    if radii is not None:
        return "radius", check_grid("radii", radii)
    return parameter, None
