"""Solvers, one algorithm per file: each is a function that minimizes an objective.

Only stochastic solvers see more than the objective: the pairs and the rows of X.
"""

from marginrank.solvers.registry import SOLVERS, Solver, find_solver, solver_names, solvers_for
from marginrank.solvers.result import SolverResult

__all__ = ["SOLVERS", "Solver", "SolverResult", "find_solver", "solver_names", "solvers_for"]
