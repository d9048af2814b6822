"""Solvers for losses with kinks."""
