"""Every kind of pairs that learners take, and the same pairs written down one by one."""

from dataclasses import dataclass, field

import numpy as np

from helpers.brute_force import ExplicitPairs, explicit_pairs
from marginrank.data.pair_lists import PairList


@dataclass
class PairKind:
    """Parameters and arguments that choose pairs, and what is chosen."""

    explicit: ExplicitPairs
    parameters: dict = field(default_factory=dict)
    weights: dict = field(default_factory=dict)  # of documents and queries
    given: dict = field(default_factory=dict)  # pairs and propensity

    def of_query(self, qid, query):
        """Return the pairs of one query."""
        inside = qid[self.explicit.preferred] == query
        parts = (getattr(self.explicit, name) for name in ("preferred", "other", "weight", "shift"))
        return ExplicitPairs(*(part[inside] for part in parts))


NAMES = (
    "plain",
    "weighted",
    "cost",
    "ndcg",
    "margin",
    "margin of two labels",
    "adjacent",
    "within",
    "label-within",
    "propensity",
    "listed",
    "listed margins",
)


def pair_kind(name, y, qid, seed=0):
    """Return a kind of pairs of documents with these labels and queries."""
    rng = np.random.default_rng(seed)
    if name == "plain":
        return PairKind(explicit_pairs(y, qid))
    if name == "weighted":
        weight = rng.uniform(0.2, 2.0, size=len(y)) * (rng.random(len(y)) < 0.9)
        by_query = rng.uniform(0.2, 2.0, size=qid.max() + 1)[qid]
        explicit = explicit_pairs(y, qid, sample_weight=weight, query_weight=by_query)
        return PairKind(explicit, weights={"sample_weight": weight, "query_weight": by_query})
    if name == "cost":
        weight = rng.uniform(0.2, 2.0, size=len(y))
        explicit = explicit_pairs(
            y, qid, sample_weight=weight, pair_weight=lambda a, b: 2.0**a - 2.0**b
        )
        return PairKind(explicit, {"pair_cost": "gain"}, {"sample_weight": weight})
    if name == "ndcg":
        explicit = explicit_pairs(y, qid)
        explicit.weight = np.array(
            [ndcg_lost(y, qid, i, j) for i, j in np.stack([explicit.preferred, explicit.other], 1)]
        )
        return PairKind(explicit, {"pair_cost": "ndcg"})
    if name == "margin":
        return PairKind(explicit_pairs(y, qid, margin=y), {"margin": "label"})
    if name == "adjacent":
        explicit = explicit_pairs(y, qid, close=within(y, qid, 1))
        return PairKind(explicit, {"pair_selection": "adjacent"})
    if name == "margin of two labels":
        return _two_labels(y, qid, rng)
    if name == "within":
        return PairKind(
            explicit_pairs(y, qid, close=within(y, qid, 2)), {"pair_selection": "within:2"}
        )
    if name == "label-within":
        explicit = explicit_pairs(y, qid, close=lambda i, j: y[i] - y[j] <= 2)
        return PairKind(explicit, {"pair_selection": "label-within:2"})
    if name == "propensity":
        propensity = rng.uniform(0.1, 1.0, size=len(y))
        explicit = explicit_pairs(y, qid)
        explicit.weight = explicit.weight / propensity[explicit.preferred]
        return PairKind(explicit, given={"propensity": propensity})
    return listed_pairs(qid, rng, has_margins=name == "listed margins")


def _two_labels(y, qid, rng):
    # Some margins are equal, and pairs have weights of rank two besides.
    labels = np.unique(y)
    table = rng.integers(0, 4, size=(labels.size, labels.size)) / 2.0
    weight = rng.uniform(0.2, 2.0, size=len(y))

    def margin(a, b):
        return table[np.searchsorted(labels, a), np.searchsorted(labels, b)]

    gain = {"pair_weight": lambda a, b: 2.0**a - 2.0**b}
    explicit = explicit_pairs(y, qid, sample_weight=weight, margin=margin, **gain)
    return PairKind(explicit, {"pair_cost": "gain", "margin": margin}, {"sample_weight": weight})


def within(y, qid, distance):
    """Return whether the dense ranks of two rows of one query differ by at most a distance."""

    def is_close(i, j):
        between = (qid == qid[i]) & (y > y[j]) & (y <= y[i])
        return np.unique(y[between]).size <= distance

    return is_close


def listed_pairs(qid, rng, has_margins=False):
    """List pairs at random, whatever the labels; some twice, some of weight zero."""
    pairs = np.argwhere((qid[:, None] == qid) & ~np.eye(len(qid), dtype=bool))
    pairs = pairs[rng.integers(len(pairs), size=len(pairs) // 2)]
    weight = rng.uniform(0.2, 2.0, size=len(pairs)) * (rng.random(len(pairs)) < 0.9)
    margin = rng.uniform(0.0, 2.0, size=len(pairs)) if has_margins else None
    shift = margin if has_margins else np.zeros(len(pairs))
    explicit = ExplicitPairs(pairs[:, 0], pairs[:, 1], weight, shift)
    return PairKind(explicit, given={"pairs": PairList(pairs, weight, margin=margin)})


def ndcg_lost(y, qid, i, j):
    """Return the share of its ideal DCG that a query loses if two documents change places."""
    labels = np.sort(y[qid == qid[i]])[::-1]
    discounts = 1.0 / np.log2(2.0 + np.arange(labels.size))
    ideal = np.sum((2.0**labels - 1.0) * discounts)
    discount = {label: discounts[labels == label].mean() for label in (y[i], y[j])}
    return (2.0 ** y[i] - 2.0 ** y[j]) * (discount[y[i]] - discount[y[j]]) / ideal
