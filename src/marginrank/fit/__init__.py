"""Fits: functions that compute the weights of a model from data and parameters."""
