"""Solvers for weights in a cone Gu ≥ 0, for monotone curves."""
