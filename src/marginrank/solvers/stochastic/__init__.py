"""Stochastic solvers, whose steps use a few queries at a time."""
