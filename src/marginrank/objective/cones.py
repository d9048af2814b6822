"""Linear constraints Gu ≥ 0 on weights u (a cone), such as for monotone curves; and an error bound.

A row of G is a constraint on the weights of one block of columns of X. It is active, or *held*, if
(Gu)_i = 0. With the objective F, the weight ρ of its ridge, its minimum F* subject to Gu ≥ 0, and
any μ ≥ 0,

    F(u) − F* ≤ ‖∇F(u) − Gᵀμ‖² / 2ρ + μᵀGu.

The bound is smallest for the μ ≥ 0 that minimizes ‖∇L(u) − Gᵀμ‖, with L the loss alone: a small
non-negative least squares problem per block. For this μ, ∇F(u) − Gᵀμ is zero only at the minimum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from marginrank._utils.parameters import Mention, Message
from marginrank._utils.threads import cached_property
from marginrank._utils.types import Booleans, Floats
from marginrank.objective.derived_point import StructuredPoint
from marginrank.objective.faces import Combination, Face, on_face
from marginrank.objective.objective import PRECISION, Objective, Point


class ConeBlock(NamedTuple):
    """Linear constraints Gu ≥ 0 on the weights u of one block of columns of X."""

    number: int  # index of the block
    weights: slice
    rows: Floats  # G, of full rank, with rows of length one

    @classmethod
    def of(cls, number: int, weights: slice, constraints: Floats) -> "ConeBlock":
        return cls(
            number, weights, constraints / np.linalg.norm(constraints, axis=1, keepdims=True)
        )

    def multipliers(self, target: Floats) -> Floats:
        """Return the multipliers μ ≥ 0 of the constraints Gu ≥ 0 that minimize ‖Gᵀμ − target‖."""
        from scipy.optimize import lsq_linear, nnls  # slow to import, and most fits have no cone

        try:
            found = nnls(self.rows.T, target)[0]
        except RuntimeError:  # nnls cycled due to rounding; any μ ≥ 0 gives a valid certificate
            found = lsq_linear(self.rows.T, target, (0.0, np.inf)).x
        return np.maximum(np.asarray(found, dtype=np.float64), 0.0)

    def nearest(self, u: Floats) -> tuple[Floats, Booleans]:
        """Return the weights closest to u with Gu ≥ 0, and a mask of the active constraints."""
        held = self.multipliers(-u) > 0.0
        free = self.free(held)
        nearest = free @ (free.T @ u)
        if np.linalg.norm(nearest) <= PRECISION * u.size * np.linalg.norm(u):
            return np.zeros_like(u), held  # the projection is rounding error only
        short = np.maximum(-(self.rows @ nearest), 0.0)
        if short.any():  # violated by rounding, or because lsq_linear is not exact
            nearest = nearest + np.linalg.lstsq(self.rows, short)[0]
        return nearest, held

    def free(self, held: Booleans) -> Floats:
        """Return an orthonormal basis of the weights that satisfy some constraints as equations.

        The constraints are Gu ≥ 0; (Gu)_i = 0 holds for all i in the mask `held`. The basis vectors
        are the columns of the result.
        """
        n_held = int(np.count_nonzero(held))
        directions, _ = np.linalg.qr(self.rows[held].T, mode="complete")
        return np.asarray(directions[:, n_held:])


@dataclass(frozen=True)
class Cone:
    """Linear constraints Gu ≥ 0 on weights u, in blocks; weights outside all blocks are free."""

    blocks: Sequence[ConeBlock]

    phrase = Message("with ", Mention("monotonic_cst"))

    def face(self, objective: Objective, held: Booleans) -> Face:
        """Return an objective restricted to weights u that satisfy some constraints as equations.

        The constraints are Gu ≥ 0; (Gu)_i = 0 holds for all i in the mask `held`.
        """
        variances = objective.feature_variances
        assert variances is not None
        combinations = {
            block.number: _uncorrelated(block.free(here), variances[block.weights])
            for block, here in zip(self.blocks, self.by_block(held), strict=True)
            if here.any()
        }
        return on_face(objective, combinations)

    @cached_property
    def n_constraints(self) -> int:
        return sum(len(block.rows) for block in self.blocks)

    def constraints(self, u: Floats) -> Floats:  # Gu
        return np.concatenate([block.rows @ u[block.weights] for block in self.blocks])

    def by_block(self, constraints: Any) -> list[Any]:
        """Return an array with one entry per constraint, split into one array per block."""
        ends = np.cumsum([len(block.rows) for block in self.blocks])
        return np.split(constraints, ends)[:-1]

    def nearest(self, u: Floats) -> tuple[Floats, Booleans]:
        """Return the weights closest to u with Gu ≥ 0, and a mask of the active constraints."""
        nearest, held = u.copy(), []
        for block in self.blocks:
            nearest[block.weights], of_block = block.nearest(u[block.weights])
            held.append(of_block)
        return nearest, np.concatenate(held)

    def forces(self, gradient: Floats, held: Booleans) -> Floats:
        """Return the μ, of any sign, that minimizes ‖Gᵀμ − gradient‖ for the constraints Gu ≥ 0.

        μ is zero for constraints that are not in the mask `held`.
        """
        forces = np.zeros(self.n_constraints)
        parts = zip(self.blocks, self.by_block(held), self.by_block(forces), strict=True)
        for block, here, of_block in parts:
            if here.any():
                of_block[here] = np.linalg.lstsq(block.rows[here].T, gradient[block.weights])[0]
        return forces


def _uncorrelated(free: Floats, variances: Floats) -> Combination:
    # Combinations that span the same space and are uncorrelated, the largest variance first.
    spread, vectors = np.linalg.eigh((free.T * variances) @ free)
    return Combination(free @ vectors[:, ::-1], np.maximum(spread[::-1], 0.0))


class ConePoint(StructuredPoint):
    """An objective evaluated at weights u with Gu ≥ 0, and a proven upper bound on F(u) − min F."""

    def __init__(self, cone: Cone, base: Point) -> None:
        super().__init__(base)
        self.cone = cone

    @cached_property
    def multipliers(self) -> list[Floats]:
        of_loss = self.base.gradient - self.objective.ridge * self.w
        return [block.multipliers(of_loss[block.weights]) for block in self.cone.blocks]

    @cached_property
    def gradient(self) -> Floats:
        """The vector ∇F(u) − Gᵀμ, which replaces the gradient under the constraints Gu ≥ 0.

        μ are Lagrange multipliers. The vector is zero only at the constrained minimum.
        """
        left: Floats = self.base.gradient.copy()
        for block, multipliers in zip(self.cone.blocks, self.multipliers, strict=True):
            left[block.weights] -= multipliers @ block.rows
        return left

    @cached_property
    def gradient_rounding(self) -> float:
        sizes = [
            len(mu) * np.linalg.norm(mu @ np.abs(block.rows))
            for block, mu in zip(self.cone.blocks, self.multipliers, strict=True)
        ]
        return self.base.gradient_rounding + PRECISION * float(np.linalg.norm(sizes))

    @cached_property
    def slack(self) -> float:
        """Upper bound on the sum μᵀGu of multipliers times constraints, rounding error included.

        It is the second term of the bound on F(u) − min F under the constraints Gu ≥ 0.
        """
        total = 0.0
        for block, mu in zip(self.cone.blocks, self.multipliers, strict=True):
            u = self.w[block.weights]
            rounding = PRECISION * u.size * (np.abs(block.rows) @ np.abs(u))
            total += float(mu @ (np.abs(block.rows @ u) + rounding))
        return total
