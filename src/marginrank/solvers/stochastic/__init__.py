"""Stochastic gradient solvers: each step uses a few queries."""
