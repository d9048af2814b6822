"""The table of all solvers: name, function, and the losses and regularizers it supports.

A new solver is a file with a function and one line in :data:`SOLVERS`.
"""

from collections.abc import Callable
from functools import partial
from types import NoneType
from typing import NamedTuple

from marginrank._utils.parameters import ParameterError, given
from marginrank.objective.cones import Cone
from marginrank.objective.groups import Groups
from marginrank.objective.losses import LOSSES, Loss
from marginrank.objective.regularizers import ElasticNet, L1Ball, L1Regularizer, Regularizer
from marginrank.solvers.cone.pivoting import smooth_in_cone
from marginrank.solvers.hinge.bundle import bmrm, ocas
from marginrank.solvers.hinge.smoothing import smoothing
from marginrank.solvers.hinge.structured import structured_smoothing
from marginrank.solvers.result import SolverResult
from marginrank.solvers.smooth.newton import newton
from marginrank.solvers.smooth.tron import tron
from marginrank.solvers.sparse.frank_wolfe import fenchel
from marginrank.solvers.sparse.group_newton import group_newton
from marginrank.solvers.sparse.proximal_newton import proximal_newton
from marginrank.solvers.sparse.truncated_gradient import truncated_gradient

# A solver holds two points (evaluations of the objective) at a time, the best and the next one.
# Each further hinge term of the loss adds 8 bytes per document to a point.
POINTS = 2
PIECE_BYTES = 8

Structure = Regularizer | Cone | Groups  # what a problem may have besides the loss and the ridge


class Solver(NamedTuple):
    """A solver and its supported problems: losses, and regularizers or constraints.

    `minimize` is a function of an objective, and of a `regularizer` if the problem has one. `takes`
    returns True if a loss and a regularizer (None for the ridge alone) are supported.
    """

    minimize: Callable[..., SolverResult]
    takes: Callable[[Loss, Structure | None], bool]
    regularized: bool = False  # takes a regularizer in addition to the ridge of the objective
    # Largest memory per document. A point takes 40 bytes: scores, slopes, the order of documents
    # by score, and the range of their active pairs. Scores alone take 8.
    state_bytes: int = 112
    # Public name, if it differs: this solver extends the solver of that name to cones, groups of
    # weights or the hinge.
    method: str | None = None


def _takes(
    loss_property: str, kind: type[Structure | None] = NoneType
) -> Callable[[Loss, Structure | None], bool]:
    def takes(loss: Loss, regularizer: Structure | None) -> bool:
        return isinstance(regularizer, kind) and bool(getattr(loss, loss_property))

    return takes


# For each kind of problem, the first solver that supports it is the default.
SOLVERS = {
    "newton": Solver(newton, _takes("smooth")),
    "tron": Solver(tron, _takes("smooth")),
    "smoothing": Solver(smoothing, _takes("piecewise_linear"), state_bytes=344),
    "ocas": Solver(ocas, _takes("piecewise_linear"), state_bytes=240),
    "bmrm": Solver(bmrm, _takes("piecewise_linear"), state_bytes=120),
    "proximal_newton": Solver(
        proximal_newton, _takes("smooth", L1Regularizer), True, state_bytes=168
    ),
    "sparse_smoothing": Solver(
        structured_smoothing,
        _takes("piecewise_linear", L1Regularizer),
        True,
        state_bytes=344,
        method="proximal_newton",
    ),
    "fenchel": Solver(fenchel, _takes("smooth", L1Ball), True, state_bytes=152),
    "truncated_gradient": Solver(truncated_gradient, _takes("smooth", ElasticNet), True),
    "cone_newton": Solver(
        partial(smooth_in_cone, minimize=newton), _takes("smooth", Cone), True, method="newton"
    ),
    "cone_tron": Solver(
        partial(smooth_in_cone, minimize=tron), _takes("smooth", Cone), True, method="tron"
    ),
    "cone_smoothing": Solver(
        structured_smoothing, _takes("piecewise_linear", Cone), True, method="smoothing"
    ),
    "group_newton": Solver(group_newton, _takes("smooth", Groups), True, method="newton"),
    "group_smoothing": Solver(
        structured_smoothing, _takes("piecewise_linear", Groups), True, method="smoothing"
    ),
}


def solvers_for(loss: Loss, regularizer: Structure | None = None) -> list[str]:
    """Return the names of the solvers for a loss and a regularizer, the default first.

    Examples
    --------
    >>> from marginrank.objective.losses import LOSSES
    >>> from marginrank.objective.regularizers import L1Ball
    >>> from marginrank.solvers import solvers_for
    >>> solvers_for(LOSSES["huber"], L1Ball(1.0))
    ['proximal_newton', 'fenchel']
    """
    return list(_by_public_name(loss, regularizer))


def _by_public_name(loss: Loss, regularizer: Structure | None) -> dict[str, Solver]:
    return {
        solver.method or name: solver
        for name, solver in SOLVERS.items()
        if solver.takes(loss, regularizer)
    }


def find_solver(
    name: str, loss: Loss, regularizer: Structure | None = None
) -> Callable[..., SolverResult]:
    """Return a solver by name, or the default for "auto"; it is a function of an objective.

    Raise ParameterError if the solver does not support the loss and the regularizer.

    Examples
    --------
    >>> from marginrank.objective.losses import LOSSES
    >>> from marginrank.solvers import find_solver
    >>> find_solver("auto", LOSSES["hinge"]).__name__
    'smoothing'
    """
    able = _by_public_name(loss, regularizer)
    problem = () if regularizer is None else (" ", regularizer.phrase)
    if not able:
        losses = [other for other, its in LOSSES.items() if solvers_for(its, regularizer)]
        raise ParameterError(
            given("loss", loss.name),
            " has no solver",
            *problem,
            f"; use one of {', '.join(map(repr, losses))}.",
        )
    if name != "auto" and name not in able:
        raise ParameterError(
            given("solver", name),
            " does not support ",
            given("loss", loss.name),
            *problem,
            f"; use one of {', '.join(map(repr, able))}.",
        )
    minimize = able[next(iter(able)) if name == "auto" else name].minimize
    return minimize if regularizer is None else partial(minimize, regularizer=regularizer)


def state_bytes(name: str, loss: Loss, regularizer: Structure | None = None) -> int:
    """Return the number of bytes per document that a solver needs at most."""
    able = _by_public_name(loss, regularizer)
    found = able[next(iter(able)) if name == "auto" else name]
    return found.state_bytes + POINTS * PIECE_BYTES * (len(loss.pieces) - 1)


def solver_names(*, regularized: bool) -> list[str]:
    """Return the names of all solvers for objectives whose only regularizer is the ridge.

    With `regularized`, return the names of the solvers that support other regularizers instead.
    """
    return [
        name
        for name, solver in SOLVERS.items()
        if solver.regularized == regularized and solver.method is None
    ]
