"""Utilities unrelated to ranking: types, parameter checks, threads, memory, atomic files."""
