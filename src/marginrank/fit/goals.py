"""What the pairs are to serve: the parameter `objective`, and what does not go with it."""

import re
from typing import Any

from marginrank._utils.parameters import Mention, ParameterError, given

PAIRS = "pairs"
NDCG = re.compile(r"ndcg@([1-9][0-9]*)", re.IGNORECASE)


def cutoff_of(objective: Any) -> int | None:
    """Return the k of "ndcg@k", or None for "pairs"; refuse anything else.

    Examples
    --------
    >>> from marginrank.fit.goals import cutoff_of
    >>> cutoff_of("ndcg@10")
    10
    """
    match = NDCG.fullmatch(objective) if isinstance(objective, str) else None
    if match is None and objective != PAIRS:
        raise ParameterError(
            given("objective", objective), " must be 'pairs', or 'ndcg@' and a cut-off: 'ndcg@10'."
        )
    return None if match is None else int(match[1])


def refuse_beside_goal(objective: str, pair_cost: Any, pair_selection: str) -> None:
    """Refuse parameters that say of pairs what the goal says itself."""
    if cutoff_of(objective) is None:
        return
    if pair_cost is not None:
        raise _does_not_go(objective, "pair_cost", ", as it weighs the pairs itself")
    if pair_selection != "all":
        raise _does_not_go(objective, "pair_selection", ", as it needs all pairs of the first k")


def refuse_goal(objective: str, other: str, why: str) -> None:
    """Refuse a goal beside something that a fit was given."""
    if cutoff_of(objective) is not None:
        raise _does_not_go(objective, other, f", {why}")


def _does_not_go(objective: str, other: str, why: str) -> ParameterError:
    return ParameterError(
        given("objective", objective),
        " does not go with ",
        Mention(other),
        f"{why}; drop one of them.",
    )
