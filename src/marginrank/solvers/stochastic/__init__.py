"""Solvers that see a few queries at a time."""
