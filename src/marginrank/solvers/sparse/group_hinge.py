"""The hinge loss with a penalty on groups of weights."""

from marginrank._utils.types import Floats
from marginrank.models.fit_report import StopReason
from marginrank.objective.groups import GroupPoint, Groups
from marginrank.objective.objective import Objective, Point
from marginrank.solvers.hinge.shaped import ShapedWidths, SmoothOptimum
from marginrank.solvers.progress import Progress
from marginrank.solvers.result import Callback, SolverResult
from marginrank.solvers.sparse.group_newton import group_newton

ITERATIONS = 50  # for one width


def group_hinge(
    objective: Objective,
    *,
    regularizer: Groups,
    w0: Floats | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    seed: int = 0,
    callback: Callback | None = None,
) -> SolverResult:
    """Minimise an objective with a hinge loss and a penalty on groups.

    Parameters
    ----------
    objective : Objective
        What to minimise, but for the penalty; its loss is a sum of hinges.
    regularizer : Groups
        The penalty.
    seed : int
        For samples of preconditioners.
    w0, tol, max_iter, callback
        As in :func:`~marginrank.solvers.hinge.smoothing.smoothing`.
    """
    progress = Progress(objective, callback)
    return _GroupWidths(objective, regularizer, w0, tol, seed).minimise(progress, max_iter)


class _GroupWidths(ShapedWidths):
    """Smoothed problems, each from the optimum of the last one."""

    def __init__(
        self, objective: Objective, groups: Groups, w0: Floats | None, tol: float, seed: int
    ) -> None:
        self._groups = groups
        self._w = w0
        self._seed = seed
        super().__init__(objective, tol)

    def _begin(self) -> None:
        """Nothing to prepare: weights to start from are taken as they are."""

    def _minimise(self, objective: Objective, tol: float) -> SmoothOptimum:
        result = group_newton(
            objective,
            regularizer=self._groups,
            w0=self._w,
            tol=tol,
            max_iter=ITERATIONS,
            seed=self._seed,
        )
        if result.stop is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        self._w = result.w
        point = objective.at(result.w, result.scores, accumulated_update=result.accumulated_update)
        return SmoothOptimum(self._wrap(point), result.estimate, result.n_iter)

    def _wrap(self, point: Point) -> GroupPoint:
        return GroupPoint(self._groups, point)
