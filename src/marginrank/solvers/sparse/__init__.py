"""Solvers for a smooth loss with an l1 norm or a group penalty, which set weights to zero."""
