"""Weights in a cone, for the hinge loss."""

from marginrank._utils.types import Floats
from marginrank.objective.cones import Cone, ConePoint
from marginrank.objective.objective import Objective, Point
from marginrank.solvers.cone.pivoting import Pivoting, Step
from marginrank.solvers.hinge.shaped import Found, shaped_hinge
from marginrank.solvers.result import Callback, SolverResult
from marginrank.solvers.smooth.newton import newton

ITERATIONS = 500  # of Newton's method for one width


def hinge_in_cone(
    objective: Objective,
    *,
    regularizer: Cone,
    w0: Floats | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    seed: int = 0,
    callback: Callback | None = None,
) -> SolverResult:
    """Minimise an objective with a hinge loss over a cone.

    Parameters
    ----------
    objective : Objective
        What to minimise; its loss is a sum of hinges.
    regularizer : Cone
        Where.
    seed : int
        For samples of Newton's method.
    w0, tol, max_iter, callback
        As in :func:`~marginrank.solvers.hinge.shaped.shaped_hinge`.
    """
    method = _Faces(regularizer, seed)
    return shaped_hinge(
        objective, method=method, w0=w0, tol=tol, max_iter=max_iter, callback=callback
    )


class _Faces:
    """Smoothed problems by pivoting, each from the face of the last one."""

    def __init__(self, cone: Cone, seed: int) -> None:
        self._cone = cone
        self._pivoting = Pivoting(cone, newton, ITERATIONS, seed)

    def begin(self, w: Floats) -> None:
        """Start the next one from some weights."""
        self._pivoting.begin(w)

    def minimise(self, objective: Objective, tol: float) -> Found:
        """Minimise an objective, from the optimum of the last one."""
        steps: list[Step] = []
        estimate, _ = self._pivoting.run(objective, tol, steps.append)
        assert self._pivoting.best is not None
        return Found(self._pivoting.best, estimate, sum(step.n_inner for step in steps))

    def wrap(self, point: Point) -> ConePoint:
        """Return a point of the cone."""
        return ConePoint(self._cone, point)

    def inside(self, w: Floats) -> Floats:
        """Return the nearest weights in the cone."""
        return self._cone.nearest(w)[0]
