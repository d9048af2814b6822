"""Solvers for linear constraints Gw ≥ 0 on the weights w (a cone), as in monotone curves."""
