"""Solvers, one algorithm per file: each is a function that minimizes an objective.

Stochastic solvers work on pairs and rows of X instead of an objective.
"""

from marginrank.solvers.registry import SOLVERS, Solver, find_solver, solver_names, solvers_for
from marginrank.solvers.result import SolverResult

__all__ = ["SOLVERS", "Solver", "SolverResult", "find_solver", "solver_names", "solvers_for"]
