"""Solvers: one algorithm a file, each sees only an Objective."""

from marginrank.solvers.newton import newton
from marginrank.solvers.result import Iteration, Pass, SolverResult, StopReason
from marginrank.solvers.tron import tron

SOLVERS = {"newton": newton, "tron": tron}

__all__ = ["SOLVERS", "Iteration", "Pass", "SolverResult", "StopReason", "newton", "tron"]
