"""Shared by all layers: types, checks of parameters, threads, memory, atomic files."""
