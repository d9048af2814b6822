"""Additive models: their fit and the search for interactions."""
