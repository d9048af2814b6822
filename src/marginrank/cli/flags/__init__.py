"""Declarations of the flags of all commands; nothing here imports NumPy, so that --help is fast."""
