"""Additive models (one curve per feature, grids for pairs of features): fit and search."""
