"""Solvers for the hinge loss, which is not differentiable."""
