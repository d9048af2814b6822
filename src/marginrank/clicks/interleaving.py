"""Team-draft interleaving of two rankings, and the significance test for its outcome."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from marginrank._utils.parameters import check_integer

FIRST, SECOND = 0, 1


class Interleaved(NamedTuple):
    """A list combined from two rankings, which have the numbers 0 and 1.

    For each of the `documents`, `team` has the number of the ranking that contributed it.
    """

    documents: list[Any]
    team: list[int]


class InterleavingResult(NamedTuple):
    """Comparison of two rankings by the clicks on interleaved lists.

    A session is won by the ranking whose documents got more clicks. `p_value` is the p-value of the
    two-sided sign test; sessions with a tie are ignored.
    """

    first_wins: int
    second_wins: int
    ties: int
    p_value: float

    @property
    def preference(self) -> float:
        """Share of the sessions won by the first ranking; ties are ignored, NaN if all are ties."""
        decided = self.first_wins + self.second_wins
        return self.first_wins / decided if decided else float("nan")


def interleave(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    length: int = 10,
    random_state: Any = None,
) -> Interleaved:
    """Combine two rankings into one list to show to a user, by team-draft interleaving.

    In each round, a coin flip decides which ranking goes first. Then each ranking contributes its
    best document that is not in the list yet. So both rankings have the same chance at every
    position, and the numbers of clicks on their documents can be compared.

    Parameters
    ----------
    first, second : sequence
        Ids of documents, best first.
    length : int, default=10
        Length of the combined list.
    random_state : int or Generator, optional
        Seed of the coin flips. Use another seed in each session.

    Returns
    -------
    Interleaved
        `documents`, the combined list, and `team`, which is 0 for a document contributed by `first`
        and 1 for a document contributed by `second`.

    See Also
    --------
    interleaving_test : Compare two rankings by the clicks on interleaved lists.

    References
    ----------
    F. Radlinski, M. Kurup and T. Joachims (2008). How does clickthrough data reflect retrieval
    quality? CIKM.

    Examples
    --------
    >>> from marginrank import interleave
    >>> shown = interleave(["a", "b", "c"], ["b", "d", "a"], length=3, random_state=0)
    >>> shown.documents, shown.team
    (['b', 'a', 'd'], [1, 0, 1])
    """
    check_integer("length", length, at_least=1)
    rng = np.random.default_rng(random_state)
    rankings, at = (first, second), [0, 0]
    documents: list[Any] = []
    team: list[int] = []
    seen: set[Hashable] = set()

    def pick(side: int) -> bool:
        ranking = rankings[side]
        while at[side] < len(ranking) and ranking[at[side]] in seen:
            at[side] += 1
        if at[side] == len(ranking) or len(documents) == length:
            return False
        seen.add(ranking[at[side]])
        documents.append(ranking[at[side]])
        team.append(side)
        return True

    while True:
        side = int(rng.integers(2))
        picked = [pick(side), pick(1 - side)]
        if not any(picked):
            return Interleaved(documents, team)


def interleaving_test(team: ArrayLike, click: ArrayLike, session: ArrayLike) -> InterleavingResult:
    """Compare two rankings by clicks on interleaved lists: count wins and test the difference.

    A session is won by the ranking whose documents got more clicks.

    Parameters
    ----------
    team : array-like of shape (n_shown,)
        Ranking (0 or 1) that contributed each document shown, as from :func:`interleave`.
    click : array-like of shape (n_shown,)
        Whether each document was clicked.
    session : array-like of shape (n_shown,)
        Session in which each document was shown.

    Returns
    -------
    InterleavingResult
        `first_wins`, `second_wins`, `ties`, `p_value` of the two-sided sign test, and `preference`,
        the share of the sessions with a winner that the first ranking won.

    Examples
    --------
    >>> from marginrank import interleaving_test
    >>> interleaving_test([0, 1, 0, 1, 0, 1], [1, 0, 1, 0, 0, 0], [1, 1, 2, 2, 3, 3])
    InterleavingResult(first_wins=2, second_wins=0, ties=1, p_value=0.5)
    """
    from scipy.stats import binomtest  # slow to import

    teams, clicks = np.asarray(team), np.asarray(click, dtype=np.float64)
    sessions = np.asarray(session)
    if not teams.shape == clicks.shape == sessions.shape:
        raise ValueError(
            f"team, click and session have {teams.size}, {clicks.size} and {sessions.size} "
            "entries; pass one of each per document that was shown."
        )
    bad = np.flatnonzero(~np.isin(teams, (FIRST, SECOND)))
    if bad.size:
        raise ValueError(f"team[{bad[0]}] is {teams[bad[0]]}; it must be 0 or 1.")
    _, number = np.unique(sessions, return_inverse=True)
    lead = np.bincount(number.ravel(), np.where(teams == FIRST, clicks, -clicks))
    first, second = int(np.sum(lead > 0)), int(np.sum(lead < 0))
    p = float(binomtest(first, first + second).pvalue) if first + second else 1.0
    return InterleavingResult(first, second, int(np.sum(lead == 0)), p)
