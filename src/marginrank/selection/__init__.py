"""Model selection: folds, regularization paths, searches over parameters and learning curves."""
