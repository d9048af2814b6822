"""Solvers: one algorithm a file, each sees only an Objective; stochastic ones see pairs."""

from marginrank.solvers.registry import SOLVERS, Solver, find_solver, solver_names, solvers_for
from marginrank.solvers.result import Iteration, Pass, SolverResult, StopReason

__all__ = [
    "SOLVERS",
    "Iteration",
    "Pass",
    "Solver",
    "SolverResult",
    "StopReason",
    "find_solver",
    "solver_names",
    "solvers_for",
]
