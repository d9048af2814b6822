"""All solvers by name, and which problems each of them takes.

A new solver is a file with a function and a line in :data:`SOLVERS`.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from marginrank._utils.parameters import ParameterError, given
from marginrank.objective.cones import Cone
from marginrank.objective.groups import Groups
from marginrank.objective.losses import LOSSES, Loss
from marginrank.objective.regularizers import ElasticNet, L1Ball, L1Regularizer, Regularizer
from marginrank.solvers.cone.hinge import hinge_in_cone
from marginrank.solvers.cone.smooth import smooth_in_cone
from marginrank.solvers.hinge.bundle import bmrm, ocas
from marginrank.solvers.hinge.smoothing import smoothing
from marginrank.solvers.result import SolverResult
from marginrank.solvers.smooth.newton import newton
from marginrank.solvers.smooth.tron import tron
from marginrank.solvers.sparse.frank_wolfe import fenchel
from marginrank.solvers.sparse.group_hinge import group_hinge
from marginrank.solvers.sparse.group_newton import group_newton
from marginrank.solvers.sparse.proximal_newton import proximal_newton
from marginrank.solvers.sparse.truncated_gradient import truncated_gradient

POINTS = 2  # that are kept at a time
PIECE_BYTES = 8  # of a point, for the windows of another piece of the loss


Structure = Regularizer | Cone | Groups  # what a problem has beside its loss and ridge


class Solver(NamedTuple):
    """A solver and the problems it can minimise.

    Attributes
    ----------
    minimise : callable
        Function of an objective, and of a `regularizer` if the problem has one.
    takes : callable
        Whether it can minimise a loss with a regularizer, or with the ridge alone (None).
    regularized : bool
        Whether it takes a regularizer beside the ridge of the objective.
    method : str or None
        The solver that it extends to cones or groups of weights, by whose name it is found.
    state_bytes : int
        What it keeps of each document at most, for plans of memory. A point has 40 bytes: scores,
        slopes, and the documents of a query by score with their windows; scores alone have 8.
    """

    minimise: Callable[..., SolverResult]
    takes: Callable[[Loss, Structure | None], bool]
    regularized: bool = False
    state_bytes: int = 112
    method: str | None = None


def _takes(
    loss_property: str, kind: type[Structure] | None = None
) -> Callable[[Loss, Structure | None], bool]:
    """Return the condition on a loss, by the name of a property, and on the kind of regularizer."""

    def takes(loss: Loss, regularizer: Structure | None) -> bool:
        if kind is None:
            return regularizer is None and bool(getattr(loss, loss_property))
        return isinstance(regularizer, kind) and bool(getattr(loss, loss_property))

    return takes


# For each kind of problem, the first that takes it is the default.
SOLVERS = {
    "newton": Solver(newton, _takes("smooth")),
    "tron": Solver(tron, _takes("smooth")),
    "smoothing": Solver(smoothing, _takes("piecewise_linear"), state_bytes=344),
    "ocas": Solver(ocas, _takes("piecewise_linear"), state_bytes=240),
    "bmrm": Solver(bmrm, _takes("piecewise_linear"), state_bytes=120),
    "proximal_newton": Solver(
        proximal_newton, _takes("smooth", L1Regularizer), True, state_bytes=168
    ),
    "fenchel": Solver(fenchel, _takes("smooth", L1Ball), True, state_bytes=152),
    "truncated_gradient": Solver(truncated_gradient, _takes("smooth", ElasticNet), True),
    "cone_newton": Solver(
        partial(smooth_in_cone, minimise=newton), _takes("smooth", Cone), True, method="newton"
    ),
    "cone_tron": Solver(
        partial(smooth_in_cone, minimise=tron), _takes("smooth", Cone), True, method="tron"
    ),
    "cone_smoothing": Solver(
        hinge_in_cone, _takes("piecewise_linear", Cone), True, method="smoothing"
    ),
    "group_newton": Solver(group_newton, _takes("smooth", Groups), True, method="newton"),
    "group_smoothing": Solver(
        group_hinge, _takes("piecewise_linear", Groups), True, method="smoothing"
    ),
}


def solvers_for(loss: Loss, regularizer: Structure | None = None) -> list[str]:
    """Return the names of the solvers that can minimise a loss, the default first.

    Examples
    --------
    >>> from marginrank.objective.losses import LOSSES
    >>> from marginrank.objective.regularizers import L1Ball
    >>> from marginrank.solvers import solvers_for
    >>> solvers_for(LOSSES["huber"], L1Ball(1.0))
    ['proximal_newton', 'fenchel']
    """
    return list(_able(loss, regularizer))


def _able(loss: Loss, regularizer: Structure | None) -> dict[str, Solver]:
    """Return the solvers that can minimise a loss, by the names that users give."""
    return {
        solver.method or name: solver
        for name, solver in SOLVERS.items()
        if solver.takes(loss, regularizer)
    }


def find_solver(
    name: str, loss: Loss, regularizer: Structure | None = None
) -> Callable[..., SolverResult]:
    """Return the solver of that name as a function of an objective, or for "auto" the default.

    Examples
    --------
    >>> from marginrank.objective.losses import LOSSES
    >>> from marginrank.solvers import find_solver
    >>> find_solver("auto", LOSSES["hinge"]).__name__
    'smoothing'
    """
    able = _able(loss, regularizer)
    if not able:
        raise ParameterError(
            given("loss", loss.name),
            " has no solver",
            *_and(regularizer),
            f"; these have: {_listed(_losses_for(regularizer))}.",
        )
    if name != "auto" and name not in able:
        raise ParameterError(
            given("solver", name),
            " cannot minimise ",
            given("loss", loss.name),
            *_and(regularizer),
            f"; these can: {_listed(able)}.",
        )
    minimise = able[next(iter(able)) if name == "auto" else name].minimise
    return minimise if regularizer is None else partial(minimise, regularizer=regularizer)


def state_bytes(name: str, loss: Loss, regularizer: Structure | None = None) -> int:
    """Return what a solver keeps of each document, at most."""
    found = SOLVERS[solvers_for(loss, regularizer)[0] if name == "auto" else name]
    return found.state_bytes + POINTS * PIECE_BYTES * (len(loss.pieces) - 1)


def solver_names(*, regularized: bool) -> list[str]:
    """Return the names of the solvers that take a regularizer, or of those that do not."""
    return [
        name
        for name, solver in SOLVERS.items()
        if solver.regularized == regularized and solver.method is None
    ]


def _losses_for(regularizer: Structure | None) -> list[str]:
    return [name for name, loss in LOSSES.items() if solvers_for(loss, regularizer)]


def _and(regularizer: Structure | None) -> tuple[str, ...]:
    return () if regularizer is None else (" ", regularizer.phrase)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "none"
