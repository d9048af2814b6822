"""Solvers: one algorithm a file, each sees only an Objective."""

from marginrank.solvers.frank_wolfe import fenchel
from marginrank.solvers.newton import newton
from marginrank.solvers.proximal_newton import proximal_newton
from marginrank.solvers.result import Iteration, SolverResult, StopReason
from marginrank.solvers.tron import tron
from marginrank.solvers.truncated_gradient import truncated_gradient

SOLVERS = {"newton": newton, "tron": tron}

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
    "SolverResult",
    "StopReason",
    "fenchel",
    "newton",
    "proximal_newton",
    "tron",
    "truncated_gradient",
]
