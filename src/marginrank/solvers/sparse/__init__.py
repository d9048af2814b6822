"""Solvers for a smooth loss with an l1 or group regularizer, which makes weights zero."""
