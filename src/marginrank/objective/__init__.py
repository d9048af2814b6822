"""The function that a fit minimizes: losses on pairs, pair weights, margins and regularizers."""
