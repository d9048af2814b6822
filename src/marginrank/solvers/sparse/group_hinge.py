"""The hinge loss with a penalty on groups of weights."""

from marginrank._utils.types import Floats
from marginrank.models.fit_report import StopReason
from marginrank.objective.groups import GroupPoint, Groups
from marginrank.objective.objective import Objective, Point
from marginrank.solvers.hinge.shaped import Found, shaped_hinge
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
        As in :func:`~marginrank.solvers.hinge.shaped.shaped_hinge`.
    """
    method = _Smoothed(regularizer, seed)
    return shaped_hinge(
        objective, method=method, w0=w0, tol=tol, max_iter=max_iter, callback=callback
    )


class _Smoothed:
    """Smoothed problems, each from the optimum of the last one."""

    def __init__(self, groups: Groups, seed: int) -> None:
        self._groups = groups
        self._seed = seed
        self._w: Floats | None = None

    def begin(self, w: Floats) -> None:
        """Start the next one from some weights."""
        self._w = w

    def minimise(self, objective: Objective, tol: float) -> Found:
        """Minimise an objective, from the optimum of the last one."""
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
        point = objective.at(result.w, result.scores, travelled=result.travelled)
        return Found(self.wrap(point), result.estimate, result.n_iter)

    def wrap(self, point: Point) -> GroupPoint:
        """Return a point with its penalty."""
        return GroupPoint(self._groups, point)

    def inside(self, w: Floats) -> Floats:
        """Return the same weights, as all are allowed."""
        return w
