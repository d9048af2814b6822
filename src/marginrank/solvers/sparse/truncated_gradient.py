"""Truncated gradient descent: TGRank and RSRank, baselines for sparse ranking.

Truncated gradient (Langford, Li and Zhang, 2009) takes a gradient step and then shrinks every
weight towards zero by step · l1. TGRank (Lai et al., 2013, section 8.5) applies it to the mean of
squared hinges. RSRank (Sun, Qin, Tao and Wang, 2009) applies it to a Huber-type loss with weights
of pairs that depend on the current ranks; here, these are the loss "huber" and the parameter
`objective="ndcg@k"`.

Each step takes one pass over X, and a gradient method needs many steps.
"""

import numpy as np

from marginrank._utils.parameters import check_number
from marginrank._utils.types import Floats
from marginrank.models.fit_report import StopReason
from marginrank.objective.composite import Composite
from marginrank.objective.objective import Objective
from marginrank.objective.protocols import Scores, is_certified
from marginrank.objective.regularizers import Regularizer
from marginrank.solvers.progress import Progress, check_smooth, start_inside
from marginrank.solvers.result import Callback, SolverResult

POWER_STEPS = 30  # steps of the power method
SAFETY = 1.05  # factor on its result, which approaches the largest eigenvalue from below


def truncated_gradient(
    objective: Objective,
    regularizer: Regularizer,
    *,
    batch: float = 1.0,
    w0: Floats | None = None,
    scores0: Scores | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    seed: int = 0,
    callback: Callback | None = None,
) -> SolverResult:
    """Minimize a smooth loss plus an l1 penalty by truncated gradient descent (TGRank).

    Stops when a proven bound shows that `tol` is reached. `regularizer` needs only a proximal
    operator. `batch` is the share of the documents, in whole queries, that a step uses; with less
    than 1 the steps shrink like 1/√t, and the result is the last point, not the best one. The other
    parameters are as in :func:`~marginrank.solvers.sparse.proximal_newton.proximal_newton`.
    """
    check_number("batch", batch)
    check_smooth(objective)
    progress = Progress(objective, callback)
    composite = Composite(objective, regularizer)
    point = composite.wrap(start_inside(objective, regularizer, w0, scores0))
    stop = StopReason.MAX_ITER
    try:
        longest = 1.0 / (SAFETY * _largest_curvature(objective, seed))
        for t in range(max_iter):
            if is_certified(point, tol):
                stop = StopReason.CERTIFIED
                break
            gradient = point.base.gradient
            step = longest
            if batch < 1.0:
                gradient = objective.sample(batch, seed + t).at(point.w).gradient
                step = longest / np.sqrt(t + 1.0)
            point = composite.at(regularizer.prox(point.w - step * gradient, step))
            progress.record(point, point.gap, 0)
    except KeyboardInterrupt:
        stop = StopReason.INTERRUPTED
    if stop is StopReason.MAX_ITER and is_certified(point, tol):
        stop = StopReason.CERTIFIED
    return progress.result(point, point.gap, stop)


def _largest_curvature(objective: Objective, seed: int) -> float:
    # A bound on the eigenvalues of all Hessians, from the one at w = 0, where every t is 0.
    n = objective.n_features
    zero = objective.at_zero()
    v = np.random.default_rng(seed).standard_normal(n)
    norm = float(np.linalg.norm(v))
    for _ in range(POWER_STEPS):
        v, _ = zero.hess_vec(v / norm)
        norm = float(np.linalg.norm(v))
        if norm == 0.0:
            return 1.0
    loss = objective.loss
    return norm * loss.largest_curvature / float(loss.curvature(0.0))
