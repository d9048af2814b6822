"""From data and parameters to weights, without scikit-learn."""
