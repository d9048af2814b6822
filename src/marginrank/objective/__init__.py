"""The function to minimize: losses on pairs, pair weights, margins, regularizers."""
