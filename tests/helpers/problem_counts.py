"""The number of random problems that a test draws."""

import os


def n_problems(in_gate):
    """Return MARGINRANK_PROBLEMS if it is set, or else `in_gate`, which keeps the test short."""
    return int(os.environ.get("MARGINRANK_PROBLEMS", in_gate))
