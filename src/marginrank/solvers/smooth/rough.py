"""Rough Hessians: preconditioners for many features, by matrix products in single precision.

With more than a few hundred features, products with the Hessian are bound by memory and matrix
products are not, so the Hessian of a sample costs as much as a few products. It is made only after
conjugate gradients with the identity have taken about half as many: then it pays, and easy problems
do without it.
"""

from marginrank._utils.types import Floats
from marginrank.objective.objective import Objective, Point

ROUGH_SAMPLE = 8  # rank per feature of the sample whose Hessian is a rough one
MOST_OF_DATA = 0.75  # a sample of a larger share saves too little


def rough_cost(objective: Objective) -> float:
    """Return the predicted cost of a rough Hessian, in products."""
    return _rough_share(objective) * objective.rough_sweeps


def rough_hessian(point: Point, seed: int) -> Floats:
    """Return the rough Hessian of a sample at the w of a point."""
    objective, share = point.objective, _rough_share(point.objective)
    here = point if share == 1.0 else objective.sample(share, seed).at(point.w)
    return here.rough_hessian()


def _rough_share(objective: Objective) -> float:
    # Of the documents; if a sample would be most of them, it is all. The rank of a query is one
    # less than its documents, because pairs see differences only.
    pairs = objective.pairs
    rank = min(pairs.n_active_documents - pairs.n_queries, pairs.n_pairs)
    share = ROUGH_SAMPLE * objective.n_features / max(rank, 1)
    return share if share < MOST_OF_DATA else 1.0
