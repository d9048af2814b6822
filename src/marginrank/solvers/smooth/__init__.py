"""Solvers for differentiable losses."""
