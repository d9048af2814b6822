"""Fits: functions that compute a model's weights from training data and parameters."""
