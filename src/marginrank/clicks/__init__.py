"""Click logs: simulation, propensities of positions, and interleaving of two rankings."""
