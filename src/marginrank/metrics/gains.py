"""Gains of labels and discounts of ranks."""

from collections.abc import Callable

import numpy as np

from marginrank._utils.parameters import Mention, ParameterError, check_choice
from marginrank._utils.types import Floats
from marginrank.metrics.ranking import Ranking

LARGEST_EXPONENT = 960  # the sum of any number of gains up to 2**960 is finite


def gains(ranking: Ranking, kind: str) -> Floats:
    """Return the gain of each document, 2^y − 1 or y, in the order of ``ranking.labels``."""
    check_choice("gain", kind, ("exponential", "linear"))
    y = ranking.labels
    if y.size and y.min() < 0:
        at = int(np.argmin(y))
        row = ranking.documents.row(at)
        raise ValueError(
            f"y[{row}] is {y[at]:g}, and a gain needs labels of zero or more; map the "
            "labels, for example to y - min(y)."
        )
    largest = LARGEST_EXPONENT if kind == "exponential" else 2.0**LARGEST_EXPONENT
    if y.size and y.max() > largest:
        at = int(np.argmax(y))
        what, fix = _TOO_LARGE[kind]
        row = ranking.documents.row(at)
        raise ParameterError(f"y[{row}] is {y[at]:g}, and {what} is too large; ", *fix, ".")
    return np.exp2(y) - 1.0 if kind == "exponential" else y


_TOO_LARGE: dict[str, tuple[str, tuple[str | Mention, ...]]] = {
    "exponential": (
        "its exponential gain 2**y - 1",
        (
            "use ndcg with ",
            Mention("gain", '"linear"'),
            ", or map the labels to a few grades such as 0 to 4",
        ),
    ),
    "linear": ("a sum of such gains", ("divide the labels by a constant",)),
}


def _standard(rank: Floats) -> Floats:
    return 1.0 / np.log2(rank + 1.0)


def _letor(rank: Floats) -> Floats:
    return 1.0 / np.log2(np.maximum(rank, 2.0))


DISCOUNTS: dict[str, Callable[[Floats], Floats]] = {"standard": _standard, "letor": _letor}


def discounts(ranking: Ranking, kind: str, k: int | None) -> Floats:
    """Return the discount of each rank, 0 beyond k, in the order of ``ranking.rank``."""
    check_choice("discount", kind, DISCOUNTS)
    longest = int(ranking.sizes.max(initial=0))
    table = np.zeros(longest + 1)
    top = longest if k is None else min(k, longest)
    table[1 : top + 1] = DISCOUNTS[kind](np.arange(1.0, top + 1))
    return table[ranking.rank]
