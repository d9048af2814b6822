"""Choosing a model: paths of sparse models over the strength of their regularisation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from marginrank._utils.parameters import (
    Mention,
    Message,
    ParameterError,
    check_choice,
    check_integer,
    check_number,
)
from marginrank._utils.tables import ResultTable
from marginrank._utils.threads import effective_threads, serial_blas
from marginrank._utils.types import Floats
from marginrank.data.held_out import check_same_features, validation_data
from marginrank.data.ranking_data import RankingData, as_ranking_data
from marginrank.fit.linear import seed_from
from marginrank.fit.scaling import (
    Scale,
    effect_message,
    find_linear_scale,
    with_scale,
    without_effect,
)
from marginrank.fit.sparse import SparseParameters, first_C, first_radius
from marginrank.metrics.names import Metric, metric_name, order_free
from marginrank.metrics.options import exceeds
from marginrank.metrics.scorers import metric_of
from marginrank.models.fit_report import StopReason, unfinished_message
from marginrank.objective.objective import Objective
from marginrank.objective.regularizers import ElasticNet, L1Ball, L1Regularizer
from marginrank.solvers.result import Callback, SolverResult
from marginrank.solvers.sparse.proximal_newton import ProximalNewton

# Parameters of a path that a fit of one of its models has, too.
SHARED_WITH_A_FIT = (
    "l1_ratio",
    "positive",
    "loss",
    "max_iter",
    "pair_selection",
    "pair_cost",
    "normalization",
    "scale",
    "n_jobs",
)

PATH_TOL = 1e-4  # neighbours on a grid differ by more
SPAN = 1000.0  # from the first value of a grid to the last


@dataclass(frozen=True, repr=False)
class SparsePath(ResultTable):
    """Sparse models over a grid of C or of the radius.

    Attributes
    ----------
    parameter : {"C", "radius"}
        What the grid is of.
    values : ndarray of shape (n_points,)
        The grid, ascending.
    coefs : scipy.sparse.csr_array of shape (n_points, n_features)
        The weights, a row a model, of the features as they are: not scaled.
    objectives, gaps : ndarray of shape (n_points,)
        Objective of each model, as :class:`~marginrank.SparseRankSVM` has it, and the certified
        bound on its distance to the optimum.
    sparsity : ndarray of shape (n_points,)
        Share of the weights that are not zero.
    seconds : ndarray of shape (n_points,)
        Time that each model took.
    stop_reasons : list of StopReason
        Why the solver stopped at each.
    metric : str or None
        Name of the metric.
    scores : ndarray of shape (n_points,), or None
        The metric on the validation data.
    scale : ndarray of shape (n_features,), or None
        What features were divided by.
    """

    parameter: str
    values: Floats
    coefs: Any
    objectives: Floats
    gaps: Floats
    sparsity: Floats
    seconds: Floats
    stop_reasons: list[StopReason]
    metric: str | None = None
    scores: Floats | None = None
    scale: Floats | None = None

    @property
    def norms(self) -> Floats:
        """‖w‖₁ of each model, or Σ scale |w|: the radius that a C stands for."""
        sizes = abs(self.coefs)
        norms = sizes.sum(axis=1) if self.scale is None else sizes @ self.scale
        return np.asarray(norms, dtype=np.float64)

    @property
    def n_unfinished(self) -> int:
        """Number of models that did not come as close to the optimum as was asked for."""
        return sum(not stop.converged for stop in self.stop_reasons)

    @property
    def best(self) -> int:
        """Index of the model with the highest score; the sparsest of equals up to rounding."""
        return best_score(self.scores, self.metric, "sparse_path")

    def _columns(self) -> dict[str, Any]:
        return path_columns(self) | {"sparsity": self.sparsity}

    def _summary(self) -> str:
        return path_summary(self)


def path_columns(path: Any) -> dict[str, Any]:
    """Return the columns that tables of all paths have."""
    scores = {} if path.scores is None else {"score": path.scores}
    return {
        path.parameter: path.values,
        **scores,
        "objective": path.objectives,
        "gap": path.gaps,
        "norm": path.norms,
        "seconds": path.seconds,
        "stop_reason": [stop.name for stop in path.stop_reasons],
    }


def path_summary(path: Any) -> str:
    """Return the grid of a path and, if it has scores, the best of them in a few words."""
    name, values, scores = path.parameter, path.values, path.scores
    grid = f"{values.size} values of {name} from {values[0]:.4g} to {values[-1]:.4g}"
    if scores is None or np.isnan(scores).all():
        return grid
    return f"{grid}, best {path.metric} {scores[path.best]:.4f} at {name}={values[path.best]:.4g}"


def best_score(scores: Floats | None, metric: str | None, path: str) -> int:
    """Return the index of the highest score of a path, the first of equals up to rounding."""
    if scores is None:
        raise ValueError(f"the path has no scores; give {path} validation data.")
    if np.all(np.isnan(scores)):
        raise ValueError(
            f"{metric} has no value on the validation data; check its labels and queries."
        )
    return int(np.argmin(exceeds(np.nanmax(scores), scores) | np.isnan(scores)))


def sparse_path(
    X: Any,
    y: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    Cs: ArrayLike | None = None,
    radii: ArrayLike | None = None,
    n_points: int = 50,
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
    data = as_ranking_data(X, y, qid, n_jobs=n_jobs)
    held_out = validation_data(validation, n_jobs=n_jobs)
    check_same_features(held_out, data.n_features, data.feature_names)
    parameter, grid = _given_grid(Cs, radii, parameter)
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
    path, divisor = fit_path(
        data,
        parameters,
        grid,
        n_points=n_points,
        held_out=held_out,
        metric=metric,
        random_state=random_state,
        callback=callback,
    )
    unseen = effect_message(without_effect(divisor), data.feature_names)
    for message in (unseen, early_message(path)):
        if message is not None:
            warnings.warn(message, stacklevel=2)
    return path


def fit_path(
    data: RankingData,
    parameters: SparseParameters,
    grid: Floats | None,
    *,
    n_points: int,
    held_out: RankingData | None,
    metric: str | Metric,
    random_state: int,
    callback: Callback | None = None,
) -> tuple[SparsePath, Scale | None]:
    """Return a path and its scale, without a word: whoever fits several warns once.

    Parameters
    ----------
    data : RankingData
        The training data.
    parameters : SparseParameters
        Those of all models: with any radius, the grid is of radii, else of C, which is 1.
    grid : ndarray or None
        The grid, ascending; None for the default one of `n_points`.
    held_out : RankingData or None
        Data to score each model on, with the features of the training data.
    metric, random_state, callback
        As in :func:`sparse_path`.
    """
    asked = metric_of(metric)
    evaluate = order_free(asked)
    with serial_blas():
        objective = parameters.objective(data)
        scale = find_linear_scale(data, parameters.scale)
        objective = with_scale(objective, scale)
        if grid is None:
            grid = _default_grid(objective, parameters, n_points)
        path = _walk(objective, parameters, grid, seed_from(random_state), callback)
        path = _in_raw_units(path, scale)
    if held_out is None:
        return path, scale
    scores = [
        evaluate(
            held_out.y, _predict(held_out, path.coefs[[k]], parameters.n_jobs), qid=held_out.qid
        )
        for k in range(grid.size)
    ]
    scored = replace(path, metric=metric_name(asked), scores=np.array(scores, dtype=np.float64))
    return scored, scale


def early_message(path: SparsePath) -> Message | None:
    """Return what to warn of, if models of a path stopped early."""
    return unfinished_message(
        path.n_unfinished, path.values.size, "models of the path", has_tol=False
    )


def _walk(
    objective: Objective,
    parameters: SparseParameters,
    grid: Floats,
    seed: int,
    callback: Callback | None,
) -> SparsePath:
    """Solve at one value after another; all share the objective, its points and the Hessian."""
    solver = ProximalNewton(objective, max_iter=parameters.max_iter, seed=seed, callback=callback)
    point = objective.at_zero()
    results: list[SolverResult] = []
    seconds = []
    for value in grid:
        begin = perf_counter()
        result = solver.solve(_regularizer(parameters, value), start_at=point, tol=parameters.tol)
        if result.stop is StopReason.INTERRUPTED or solver.point is None:
            raise KeyboardInterrupt
        point = solver.point.base
        results.append(result)
        seconds.append(perf_counter() - begin)
    # The solver has divided the objective of the penalised form by C, so that points can be shared.
    unit = grid if parameters.radius is None else np.ones_like(grid)
    coefs = sp.csr_array(sp.vstack([sp.csr_array(result.w[None, :]) for result in results]))
    return SparsePath(
        parameter="C" if parameters.radius is None else "radius",
        values=grid,
        coefs=coefs,
        objectives=unit * np.array([result.objective for result in results]),
        gaps=unit * np.array([result.gap for result in results]),
        sparsity=np.diff(coefs.indptr) / objective.n_features,
        seconds=np.array(seconds),
        stop_reasons=[result.stop for result in results],
    )


def _in_raw_units(path: SparsePath, scale: Scale | None) -> SparsePath:
    """Return a path with the weights of the features as they are."""
    if scale is None:
        return path
    coefs = path.coefs.copy()
    coefs.data /= scale.values[coefs.indices]
    return replace(path, coefs=coefs, scale=scale.values)


def _regularizer(parameters: SparseParameters, value: float) -> L1Regularizer:
    if parameters.radius is not None:
        return L1Ball(value, parameters.positive)
    l1 = parameters.l1_ratio
    return ElasticNet(l1 / value, (1.0 - l1) / value, parameters.positive)


def _default_grid(objective: Objective, parameters: SparseParameters, n_points: int) -> Floats:
    check_integer("n_points", n_points, at_least=1)
    positive = parameters.positive
    if parameters.radius is not None:
        first = first_radius(objective, positive=positive)
    else:
        first = first_C(objective, l1_ratio=parameters.l1_ratio, positive=positive)
    if first == 0:
        raise ValueError("l1_ratio=0 makes no weight zero, so that a path has no start; give Cs.")
    if not np.isfinite(first):
        raise ValueError("no feature of X tells documents with different labels apart; check X.")
    return np.geomspace(first, SPAN * first, n_points)


def _given_grid(
    Cs: ArrayLike | None, radii: ArrayLike | None, parameter: str
) -> tuple[str, Floats | None]:
    """Return what the grid is of, and the grid unless it is the default one."""
    check_choice("parameter", parameter, ("C", "radius"))
    if Cs is not None and radii is not None:
        raise ValueError("Cs and radii are two forms of one grid; give one of them.")
    if Cs is not None:
        return "C", check_grid("Cs", Cs)
    if radii is not None:
        return "radius", check_grid("radii", radii)
    return parameter, None


def check_grid(name: str, values: ArrayLike) -> Floats:
    """Return the values of a grid, ascending; refuse wrong ones by the name they were given as."""
    try:
        grid = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        grid = np.empty(0)
    if grid.ndim != 1 or not grid.size:  # a number alone may be meant as a number of points
        raise ParameterError(Mention(name), " must be a list of numbers with at least one entry.")
    for value in grid:
        check_number(name, float(value))
    return np.unique(grid)


def _predict(data: RankingData, coef: Any, n_jobs: int | None) -> Floats:
    scores: Floats = data.matrix.dot(np.ravel(coef.toarray()), None, effective_threads(n_jobs))
    return scores
