"""Hessians of a sample in single precision (*rough*), as preconditioners for many features.

With more than a few hundred features, Hessian-vector products are limited by memory bandwidth and
products of matrices are not, so the Hessian of a sample costs as much as a few Hessian-vector
products. It is computed only after conjugate gradients without a preconditioner have taken half of
this cost, so easy problems never need it.
"""

from marginrank._utils.types import Floats
from marginrank.objective.objective import Objective, Point

ROUGH_SAMPLE = 8  # rank per feature of the sample whose Hessian is computed
MOST_OF_DATA = 0.75  # a sample of a larger share saves too little


def rough_cost(objective: Objective) -> float:
    """Return the cost of a single-precision Hessian as a number of Hessian-vector products."""
    return _rough_share(objective) * objective.rough_sweeps


def rough_hessian(point: Point, seed: int) -> Floats:
    """Return the Hessian of a random sample in single precision, at the w of `point`."""
    objective, share = point.objective, _rough_share(point.objective)
    here = point if share == 1.0 else objective.sample(share, seed).at(point.w)
    return here.rough_hessian()


def _rough_share(objective: Objective) -> float:
    # Share of the documents in the sample; 1 if it would be most of them. A query of m documents
    # has rank m - 1, because pairs depend on differences only.
    pairs = objective.pairs
    rank = min(pairs.n_active_documents - pairs.n_queries, pairs.n_pairs)
    share = ROUGH_SAMPLE * objective.n_features / max(rank, 1)
    return share if share < MOST_OF_DATA else 1.0
