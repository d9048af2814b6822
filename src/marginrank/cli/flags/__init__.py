"""Flags of the commands; nothing here imports NumPy, so that --help is fast."""
