"""Solvers for a smooth loss and a regulariser that makes weights zero."""
