"""Functions that several commands share."""
