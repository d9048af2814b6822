"""Utilities for all modules: types, checks of parameters, threads, memory, atomic files."""
