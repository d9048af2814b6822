"""Folds, paths, searches and learning curves."""
