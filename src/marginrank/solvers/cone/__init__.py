"""Solvers for weights in a cone."""
