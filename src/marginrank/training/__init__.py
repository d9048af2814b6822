"""From data and parameters to weights, without the conventions of scikit-learn."""
