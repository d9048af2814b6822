"""Weights in a cone, for smooth losses."""

import numpy as np

from marginrank._utils.types import Floats
from marginrank.models.fit_report import StopReason
from marginrank.objective.cones import Cone, ConePoint
from marginrank.objective.objective import Objective
from marginrank.solvers.cone.pivoting import FaceOptimum, Minimise, Pivoting
from marginrank.solvers.progress import Progress
from marginrank.solvers.result import Callback, SolverResult


def smooth_in_cone(
    objective: Objective,
    *,
    regularizer: Cone,
    minimise: Minimise,
    w0: Floats | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    seed: int = 0,
    callback: Callback | None = None,
) -> SolverResult:
    """Minimise an objective with a smooth loss over a cone.

    Parameters
    ----------
    objective : Objective
        What to minimise.
    regularizer : Cone
        Where.
    minimise : callable
        The solver for faces of the cone.
    w0 : ndarray, optional
        Where to start; zero by default.
    tol : float
        Relative distance to the optimal objective, (F − F*) / F*.
    max_iter : int
        Limit on the faces, and on the iterations on all of them.
    seed : int
        For samples of the solver.
    callback : callable, optional
        Called with each :class:`~marginrank.models.fit_report.Iteration`, one a face.
    """
    progress = Progress(objective, callback)
    pivoting = Pivoting(regularizer, minimise, max_iter, seed)
    if w0 is not None:
        pivoting.begin(w0)

    def tell(step: FaceOptimum) -> None:
        progress.record(step.inside, step.estimate, step.n_inner, gap=pivoting.gap)

    try:
        estimate, stop = pivoting.run(objective, tol, tell)
    except KeyboardInterrupt:
        estimate, stop = np.inf, StopReason.INTERRUPTED
    best = pivoting.best or _inside(objective, regularizer, pivoting.w)
    return progress.result(best, estimate, stop, gap=min(best.gap, pivoting.gap))


def _inside(objective: Objective, cone: Cone, w: Floats | None) -> ConePoint:
    """Look at the point of the cone next to where a fit was interrupted."""
    nearest = np.zeros(objective.n_features) if w is None else cone.nearest(w)[0]
    return ConePoint(cone, objective.at(nearest))
