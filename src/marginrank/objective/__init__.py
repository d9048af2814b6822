"""What is minimized: losses on pairs, pair weights, margins, regularizers."""
