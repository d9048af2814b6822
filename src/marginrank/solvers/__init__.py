"""Solvers: one algorithm per file. Each sees only an Objective; stochastic solvers see pairs."""

from marginrank.solvers.registry import SOLVERS, Solver, find_solver, solver_names, solvers_for
from marginrank.solvers.result import SolverResult

__all__ = ["SOLVERS", "Solver", "SolverResult", "find_solver", "solver_names", "solvers_for"]
