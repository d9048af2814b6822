"""Click logs: reading, simulation, position bias, off-policy evaluation and interleaving."""
