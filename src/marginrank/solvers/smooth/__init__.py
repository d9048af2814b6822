"""Solvers for losses with a derivative."""
