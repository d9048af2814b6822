"""Numbers as text that reads back exactly, and sums of many terms."""

from collections.abc import Sequence

import numpy as np

FLOAT32_ACCURACY = 1e-5  # of the spread of scores: the accuracy that exports in float32 promise
FLOAT64_ACCURACY = 1e-12  # of the largest score: that of other exports
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
GROUP = 16  # terms added one after the other; more would nest too deeply for some parsers


def exact(value: float) -> str:
    """Return up to 17 digits, with a point or an exponent, so that it is no integer to anybody.

    Examples
    --------
    >>> exact(1.0), exact(0.1 + 0.2), exact(-1e-5)
    ('1.0', '0.30000000000000004', '-1e-05')
    """
    return repr(float(value))


def scientific(value: float) -> str:
    """Return 17 digits with an exponent, for systems that take what has none for a decimal.

    Examples
    --------
    >>> scientific(-0.5)
    '-5.0000000000000000e-01'
    """
    return f"{value:.16e}"


def sum_of(terms: Sequence[str], empty: str, indent: str = "  ") -> str:
    r"""Return a sum of terms, of 16 and of sums of 16, so that ten thousand nest four deep.

    Examples
    --------
    >>> sum_of(["a", "b"], empty="0.0")
    'a\n  + b'
    """
    if not terms:
        return empty
    while len(terms) > GROUP:
        groups = [terms[k : k + GROUP] for k in range(0, len(terms), GROUP)]
        terms = ["(" + " + ".join(group) + ")" for group in groups]
    return f"\n{indent}+ ".join(terms)
