"""Solvers for a smooth loss and a regularizer that makes weights zero."""
