"""Solvers for weights w with linear constraints Gw ≥ 0 (a cone), as in monotone curves."""
