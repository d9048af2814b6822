"""Solvers: one algorithm a file, each sees only an Objective."""

from collections.abc import Callable
from typing import NamedTuple

from marginrank._base.parameters import ParameterError, given
from marginrank.objective.losses import Loss
from marginrank.solvers.hinge.bundle import bmrm, ocas
from marginrank.solvers.hinge.smoothing import smoothing
from marginrank.solvers.result import Iteration, Pass, SolverResult, StopReason
from marginrank.solvers.smooth.newton import newton
from marginrank.solvers.smooth.tron import tron
from marginrank.solvers.sparse.frank_wolfe import fenchel
from marginrank.solvers.sparse.proximal_newton import proximal_newton
from marginrank.solvers.sparse.truncated_gradient import truncated_gradient


class Solver(NamedTuple):
    """A solver and the losses it can minimise."""

    minimise: Callable[..., SolverResult]
    takes: Callable[[Loss], bool]


def _smooth(loss: Loss) -> bool:
    return loss.smooth


def _piecewise_linear(loss: Loss) -> bool:
    return loss.piecewise_linear


# For each kind of loss, the first that takes it is the default.
SOLVERS = {
    "newton": Solver(newton, _smooth),
    "tron": Solver(tron, _smooth),
    "smoothing": Solver(smoothing, _piecewise_linear),
    "ocas": Solver(ocas, _piecewise_linear),
    "bmrm": Solver(bmrm, _piecewise_linear),
}


def solvers_for(loss: Loss) -> list[str]:
    """Return the names of the solvers that can minimise a loss, the default first."""
    return [name for name, solver in SOLVERS.items() if solver.takes(loss)]


def find_solver(name: str, loss: Loss) -> Callable[..., SolverResult]:
    """Return the solver of that name, or for "auto" the default for the loss.

    Examples
    --------
    >>> from marginrank.objective.losses import LOSSES
    >>> from marginrank.solvers import find_solver
    >>> find_solver("auto", LOSSES["hinge"]).__name__
    'smoothing'
    """
    able = solvers_for(loss)
    if name == "auto" and able:
        return SOLVERS[able[0]].minimise
    if name in able:
        return SOLVERS[name].minimise
    raise ParameterError(
        given("solver", name),
        " cannot minimise ",
        given("loss", loss.name),
        f"; these can: {', '.join(map(repr, able)) or 'none'}.",
    )


# These take a regulariser beside the objective.
SPARSE_SOLVERS = {
    "proximal_newton": proximal_newton,
    "fenchel": fenchel,
    "truncated_gradient": truncated_gradient,
}

__all__ = [
    "SOLVERS",
    "SPARSE_SOLVERS",
    "Iteration",
    "Pass",
    "Solver",
    "SolverResult",
    "StopReason",
    "bmrm",
    "fenchel",
    "find_solver",
    "newton",
    "ocas",
    "proximal_newton",
    "smoothing",
    "solvers_for",
    "tron",
    "truncated_gradient",
]
