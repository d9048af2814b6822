"""The loss by groups of queries."""

from typing import NamedTuple

from marginrank._utils.types import Floats


class GroupedLoss(NamedTuple):
    """The loss at one w as a sum over groups of queries."""

    losses: Floats  # L_g(w)
    gradients: Floats  # ∇L_g(w), a row a group
