"""Hessians shared by several problems on the same documents (such as folds), as preconditioners."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from marginrank._utils.types import Floats
from marginrank.objective.objective import Objective
from marginrank.solvers.smooth.preconditioner import (
    FEW_FEATURES,
    HESSIAN_FEATURES,
    Diagonal,
    Preconditioner,
    check_overflow,
    parts_of_sample,
    sampled_hessians,
    stand_ins,
)

FEWEST_DOCUMENTS = 1024  # with fewer, each problem's own Hessian costs next to nothing
FEWEST_PRODUCTS = 16  # products that conjugate gradients may take, however cheap a Hessian is
GOOD = 1  # the fewest possible products for one direction, which a new Hessian cannot save
OTHERS = 0.25  # cost of each further problem in a product, relative to the first one


class HessianGroup(NamedTuple):
    """A group of queries: its objective, and the factors of its Hessian in several problems."""

    objective: Objective
    shares: Floats  # the factor of its Hessian in each problem, 0 for none


class SharedHessian:
    """Preconditioners for several problems, such as folds, from shared Hessians of the loss.

    The Hessians have no ridge and are computed at one w, the mean of the weights of all problems.

    Problems that are folds leave out different queries. The Hessian of each group of queries that
    are in the same problems is formed once; a problem's Hessian is the sum over its groups. If the
    documents are many, the Hessian of a sample serves all problems.

    With many features there is no Hessian at first: as long as the ridge dominates, conjugate
    gradients do not need it. It is computed, and renewed, once the products of steps without a new
    one have cost as much as a Hessian. So the total cost is at most about twice the cost of the
    best schedule. A poor step also renews it.
    """

    def __init__(self, reference: Objective, groups: Sequence[HessianGroup], seed: int) -> None:
        n = reference.n_features
        # With fewer documents than features a system in document space is smaller.
        fewest = max(FEWEST_DOCUMENTS, n)
        self.is_available = n <= HESSIAN_FEATURES and reference.n_active_documents >= fewest
        sample = stand_ins(reference, seed)
        share = sum(part.fraction for part in sample) if sample else 1.0
        self._cost = share * (1.0 + n / 8)  # in sweeps: products for one problem
        self._cost_of_product = 1.0 + OTHERS * (groups[0].shares.size - 1)
        self._n_features = n
        # With few features, a Hessian costs less than finding out that it is needed.
        self._n_products = np.inf if n <= FEW_FEATURES else 0.0  # weighted by cost
        self._made_at: Floats | None = None
        self._source = _Sample(sample) if sample else _Groups(groups)
        self._factors: dict[tuple[int, float], Preconditioner] = {}

    @property
    def most_products(self) -> int:
        """The number of Hessian-vector products that cost as much as a new Hessian."""
        return max(FEWEST_PRODUCTS, int(self._cost))

    def count(self, n_products: int) -> None:
        """Count the Hessian-vector products that one step of all problems took.

        `n_products` is the largest number of products that one of the problems needed. The count
        starts again at 0 with each new Hessian.
        """
        self._n_products += self._cost_of_product * max(n_products - GOOD, 0)

    def expire(self) -> None:
        """Mark the shared Hessians as out of date: the next :meth:`refresh` computes them again."""
        self._n_products = np.inf

    def refresh(self, ws: Sequence[Floats]) -> None:
        """Compute the shared Hessians again, if the products since then have cost as much.

        They are computed at the mean of `ws`, the current weights of the problems.
        """
        if self._n_products < self._cost:
            return
        w = sum(ws, np.zeros_like(ws[0])) / len(ws)
        if self._made_at is not None and np.array_equal(w, self._made_at):
            return
        self._n_products, self._made_at = 0.0, w
        if self._source.renew(w):
            self._factors.clear()

    def of(self, problem: int, ridge: float) -> Preconditioner:
        """Return the preconditioner of one problem: its Hessian plus a ridge, factorized.

        Before the first Hessian is computed, return a multiple of the identity.
        """
        key = (self._source.shared_by(problem), ridge)
        if key not in self._factors:
            hessians = self._source.hessians(problem)
            factors = parts_of_sample(hessians, ridge) if hessians else None
            self._factors[key] = factors or Diagonal(np.full(self._n_features, ridge), ridge, 0.0)
        return self._factors[key]


class _Sample:
    """Source of one Hessian for all problems: parts of a sample that share no document."""

    def __init__(self, parts: Sequence[Objective]) -> None:
        self._parts = parts
        self._hessians: list[Floats] = []

    def renew(self, w: Floats) -> bool:
        # Keep the former Hessians if the sample holds too few pairs with a loss.
        found = sampled_hessians(self._parts, w)
        self._hessians = found or self._hessians
        return bool(found)

    def shared_by(self, problem: int) -> int:
        return 0

    def hessians(self, problem: int) -> list[Floats]:
        return self._hessians


class _Groups:
    """Source of one Hessian per problem: a weighted sum over groups of queries."""

    def __init__(self, groups: Sequence[HessianGroup]) -> None:
        self._objectives = [group.objective.with_ridge(0.0) for group in groups]
        shares = np.array([group.shares for group in groups])
        # One row per different Hessian.
        columns, self._number_of = np.unique(shares, axis=1, return_inverse=True)
        self._shares = columns.T
        self._hessians: list[Floats] = []

    def renew(self, w: Floats) -> bool:
        self._hessians = [np.zeros((w.size, w.size)) for _ in self._shares]
        for group, objective in enumerate(self._objectives):
            of_group = objective.at(w).hessian()
            check_overflow(of_group, objective)
            for shares, hessian in zip(self._shares, self._hessians, strict=True):
                if shares[group] > 0.0:
                    hessian += shares[group] * of_group
        return True

    def shared_by(self, problem: int) -> int:
        return int(np.ravel(self._number_of)[problem])

    def hessians(self, problem: int) -> list[Floats]:
        number = self.shared_by(problem)
        return self._hessians[number : number + 1]
