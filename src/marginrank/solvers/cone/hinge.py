"""Weights in a cone, for the hinge loss."""

from marginrank._utils.types import Floats
from marginrank.objective.cones import Cone, ConePoint
from marginrank.objective.objective import Objective, Point
from marginrank.solvers.cone.pivoting import FaceOptimum, Pivoting
from marginrank.solvers.hinge.shaped import ShapedWidths, SmoothOptimum
from marginrank.solvers.progress import Progress
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
        The cone.
    seed : int
        For samples of Newton's method.
    w0, tol, max_iter, callback
        As in :func:`~marginrank.solvers.hinge.smoothing.smoothing`.
    """
    progress = Progress(objective, callback)
    return _ConeWidths(objective, regularizer, w0, tol, seed).minimise(progress, max_iter)


class _ConeWidths(ShapedWidths):
    """Smoothed problems by pivoting, each from the face of the last one."""

    def __init__(
        self, objective: Objective, cone: Cone, w0: Floats | None, tol: float, seed: int
    ) -> None:
        self._cone = cone
        self._w0 = w0
        self._pivoting = Pivoting(cone, newton, ITERATIONS, seed)
        super().__init__(objective, tol)

    def _begin(self) -> None:
        if self._w0 is not None:
            self._pivoting.begin(self._w0)

    def _minimise(self, objective: Objective, tol: float) -> SmoothOptimum:
        faces: list[FaceOptimum] = []
        estimate, _ = self._pivoting.run(objective, tol, faces.append)
        assert self._pivoting.best is not None
        return SmoothOptimum(self._pivoting.best, estimate, sum(face.n_inner for face in faces))

    def _wrap(self, point: Point) -> ConePoint:
        return ConePoint(self._cone, point)

    def _inside(self, w: Floats) -> Floats:
        return self._cone.nearest(w)[0]
