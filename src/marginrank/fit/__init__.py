"""From data and parameters to weights."""
