"""Preconditioners for conjugate gradients on the Hessian, and the rule that chooses one."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, lu_solve, solve_triangular
from scipy.linalg.lapack import dgetrf, dpotrs

from marginrank._utils.types import Floats
from marginrank.objective.objective import Objective, Point
from marginrank.objective.protocols import Scores
from marginrank.solvers.progress import overflow_error
from marginrank.solvers.result import Curvature
from marginrank.solvers.smooth.rough import rough_cost, rough_hessian

# A problem is hard if conjugate gradients take more steps than a factorization in document space
# costs, in products, within these limits.
HARD_STEPS = (100.0, 1500.0)
FACTOR_COST = 0.02  # time of factorizing an m × m system / (m³ · time per entry of a product)
PAIRS_COST = 20.0  # time of a product for the pairs of one document, in the same unit
FEW_FEATURES = 256  # with more, something cheaper is tried before a Hessian
ROUGH_FEATURES = 8192  # with more, a rough Hessian takes too much memory
ROUGH_DOCUMENTS = 6  # with fewer documents per feature, a rough Hessian is not small beside X
ROUGH_STEPS = 5.0  # with fewer conjugate gradient steps, no preconditioner pays off
HESSIAN_FEATURES = 1024  # with more, forming a Hessian usually costs more than it saves
MOST_DOCUMENTS = 2048  # with more, a system in document space usually costs more than it saves
MOST_DOCUMENTS_IF_HARD = 4096  # MOST_DOCUMENTS if conjugate gradients are slow
FEW_DOCUMENTS = 1024  # MOST_DOCUMENTS if a few leading features vary most
SMALL_SAMPLE = 4096  # least number of documents in a sample
SAMPLE_PER_FEATURE = 48  # sampled documents per feature that make a good preconditioner
CURVED_PER_FEATURE = 12  # how many of them must be in pairs with a positive loss
N_PARTS = 2  # number of parts of a sample
JITTERS = (1e-14, 1e-11, 1e-8)  # ridges to try if the factorization of a unit diagonal fails
ROUGH_JITTERS = (1e-8, 1e-7, 1e-6, 1e-5)  # JITTERS in single precision
MOST_LEADING = 512  # features whose Hessian is formed if they vary far more than the others
LEADING_COST = 150.0  # limit on entries of that Hessian / entries of a row of X: about 5 sweeps
SAMPLE_PER_LEADING = 16  # sampled documents per leading feature


class Preconditioner(ABC):
    """A preconditioner: a matrix P close to the Hessian for which P⁻¹v is fast to compute."""

    exact = False  # P is the Hessian
    faithful = False  # P is close to the Hessian, so conjugate gradients take a few steps
    lowest = 0.0  # lower bound on the eigenvalues of P⁻¹∇²F, if P is not faithful
    inexact = False  # Newton steps that gain more than tol may be less accurate than with others
    cost = 0.0  # sweeps spent on building it
    curvature: Curvature | None = None  # the Hessian, for similar problems

    @abstractmethod
    def solve(self, v: Floats) -> Floats:
        """Return P⁻¹v for a vector v with one entry per feature, with P the preconditioner."""

    def direction(self, point: Point) -> Floats:
        """Return the approximate Newton direction −P⁻¹∇F(w), with P the preconditioner."""
        return -self.solve(point.gradient)

    def hidden_by(self, errors: Floats) -> float:
        """Return the decrease of F that gradient errors of given sizes may hide; 0 if unknown."""
        # The mean of ½ eᵀP⁻¹e for independent errors e_j of sizes errors[j].
        return 0.0


class Factorized(Preconditioner):
    """Preconditioner that is the Hessian, of all data or of a sample, as a Cholesky factor."""

    faithful = True

    def __init__(self, factor: tuple[Floats, bool], scale: Floats, *, exact: bool) -> None:
        self._factor = factor
        self._scale = scale
        self.exact = exact

    def solve(self, v: Floats) -> Floats:
        # cho_solve makes the same LAPACK call with an overhead larger than a small system costs.
        solution: Floats = self._scale * dpotrs(self._factor[0], self._scale * v, lower=True)[0]
        return solution

    def hidden_by(self, errors: Floats) -> float:
        # ½ Σ_j e_j² (P⁻¹)_jj, as Σ_j ‖L⁻¹ column j‖² is the trace.
        lower = self._factor[0]
        roots = solve_triangular(lower, np.diag(self._scale * errors), lower=True)
        return 0.5 * float(np.sum(roots * roots))


class Rough(Preconditioner):
    """Preconditioner that is the Hessian of a sample, computed in single precision."""

    inexact = True

    def __init__(self, factor: Factorized, norm: float, ridge: float, cost: float) -> None:
        self._factor = factor
        # P may be far from the Hessian: only ∇²F ≥ ρI and ‖P‖ bound the eigenvalues of P⁻¹∇²F.
        self.lowest = ridge / norm
        self.cost = cost

    def solve(self, v: Floats) -> Floats:
        return self._factor.solve(v)


class PartsOfSample(Preconditioner):
    """Preconditioner that averages the inverse Hessians of disjoint parts of a sample.

    One document with huge values makes the Hessian of its part far too large in some direction: its
    weight is scaled up with the sample, and the loss of its pairs may become zero later. The other
    parts do not hold the document, and the mean of the inverses is at least 1 / n_parts of theirs.
    So if this preconditioner predicts a small decrease of F, it is small without the document, too.
    """

    faithful = True

    def __init__(self, parts: Sequence["Factorized"]) -> None:
        self._parts = parts

    def solve(self, v: Floats) -> Floats:
        return sum((part.solve(v) for part in self._parts), np.zeros_like(v)) / len(self._parts)

    def hidden_by(self, errors: Floats) -> float:
        return sum(part.hidden_by(errors) for part in self._parts) / len(self._parts)


class DocumentSpace(Preconditioner):
    """The Hessian as a preconditioner, inverted by a linear system with one unknown per document.

    With A the Hessian of the loss as a function of scores, ρ the weight of the ridge and K = XXᵀ,

        (ρI + XᵀAX) Xᵀc = Xᵀ(ρI + AK)c

    for every c. K is computed once and the scales of the features no longer matter. Rows of A are
    zero for documents in no pair with a curvature; their part of c is known at once, and the system
    holds the other documents only.
    """

    exact = True
    faithful = True

    def __init__(self, point: Point) -> None:
        self._point = point
        self._objective = point.objective
        system = point.curved_gram()
        self._curved = np.any(system != 0.0, axis=1)
        self._curved[0] = True  # the system needs at least one unknown
        self._of_others = system[np.ix_(self._curved, ~self._curved)]
        system = system[np.ix_(self._curved, self._curved)]
        system[np.diag_indices_from(system)] += self._objective.ridge
        # Not lu_factor, which warns of a zero pivot: the solution is checked instead. The transpose
        # is in LAPACK's order already.
        self._factor = dgetrf(system.T, overwrite_a=True)[:2]

    def direction(self, point: Point) -> Floats:
        """Return the Newton direction −(∇²F)⁻¹∇F(w); reads X once."""
        # With ∇F = ρw + Xᵀz it is −w − Xᵀ(ρI + AK)⁻¹(z − As), in which no large numbers cancel,
        # however much steeper than the ridge the loss is.
        curved = point.hess_vec_scores(point.scores)
        target = self._objective.space.add(point.score_gradient, -1.0, curved)
        return -(point.w + self._combine(target))

    def solve(self, v: Floats) -> Floats:
        """Return (∇²F)⁻¹v for a vector v with one entry per feature; reads X twice."""
        # It is (v − Xᵀ(ρI + AK)⁻¹AXv) / ρ.
        image = self._point.hess_vec_scores(self._objective.scores(v))
        return (v - self._combine(image)) / self._objective.ridge

    def _combine(self, target: Scores) -> Floats:
        # Xᵀ(ρI + AK)⁻¹ target.
        documents = self._objective.design.gram.documents
        selected = self._objective.space.entries(target, documents)
        solution = selected / self._objective.ridge
        known = selected[self._curved] - self._of_others @ solution[~self._curved]
        solution[self._curved] = lu_solve(self._factor, known, trans=1, check_finite=False)
        if not np.isfinite(solution).all():  # after a zero pivot: a zero direction is rejected
            solution = np.zeros_like(solution)
        return self._objective.combine_active(solution)


class Diagonal(Preconditioner):
    """Preconditioner that is the diagonal of the Hessian, or an approximation of this diagonal."""

    def __init__(self, diagonal: Floats, ridge: float, cost: float) -> None:
        self._inverse = 1.0 / diagonal
        self.lowest = ridge * float(np.min(self._inverse))  # as ∇²F ≥ ρI
        self.cost = cost

    def solve(self, v: Floats) -> Floats:
        return self._inverse * v


class Identity(Preconditioner):
    """The identity as preconditioner: plain conjugate gradients."""

    inexact = True

    def __init__(self, ridge: float) -> None:
        self.lowest = ridge

    def solve(self, v: Floats) -> Floats:
        return v


class Leading(Preconditioner):
    """Preconditioner: the Hessian for features of large variance, a diagonal for the others.

    P is close to the Hessian only if documents are many: with few, most curvatures of the other
    features are far below the diagonal. Then the eigenvalues of P⁻¹∇²F are bounded below. Let v =
    (a, b) for the features of large variance and the others, K = ZᵀZ the Hessian of the loss, and D
    its diagonal. Then

        aᵀKa ≤ 2 |Zv|² + 2 |Zb|²,   vᵀPv ≤ 2 vᵀ∇²Fv + (2 tr K_b + max D_b) |b|²

    and vᵀ∇²Fv ≥ ρ |b|², with ρ the weight of the ridge.
    """

    def __init__(
        self,
        curvature: Curvature,
        hessian: Preconditioner,
        diagonal: Floats,
        ridge: float,
        *,
        faithful: bool,
    ) -> None:
        self.curvature = curvature
        self._features = curvature.features
        self._hessian = hessian
        self._inverse = 1.0 / diagonal
        others = np.delete(diagonal, self._features) - ridge
        above = 2.0 * float(np.sum(others)) + float(np.max(others, initial=0.0))
        self.lowest = 1.0 / (2.0 + above / ridge)
        self.faithful = faithful
        self.cost = curvature.cost

    def solve(self, v: Floats) -> Floats:
        solution: Floats = self._inverse * v
        solution[self._features] = self._hessian.solve(v[self._features])
        return solution


def precondition(
    point: Point,
    seed: int,
    *,
    is_hard: bool = False,
    by_parts: bool = True,
    curvature: Curvature | None = None,
) -> Preconditioner:
    """Return a preconditioner for the Hessian at `point`, chosen by the size of the problem.

    With `is_hard`, it is a costlier one. With `by_parts`, no single document can spoil a sampled
    Hessian. `curvature` of a similar problem is reused.
    """
    objective = point.objective
    n, n_documents = objective.n_features, objective.n_active_documents
    variances = objective.feature_variances
    most_documents = MOST_DOCUMENTS_IF_HARD if is_hard else MOST_DOCUMENTS
    if variances is not None:
        most_documents = FEW_DOCUMENTS
    is_wide = n > max(FEW_FEATURES, min(n_documents, HESSIAN_FEATURES))
    if is_wide and n_documents <= most_documents:
        return DocumentSpace(point)
    if variances is not None and n > FEW_FEATURES:
        return leading_at(point, variances, curvature or leading_curvature(point, variances, seed))
    if allows_rough(objective):
        if not is_hard and objective.entries_per_document / 8 > 0.25 * rough_cost(objective):
            return Identity(objective.ridge)  # the diagonal costs too much beside a rough Hessian
        rough = rough_at(point, seed) if is_hard else None
        return rough or diagonal_at(point)
    if n > HESSIAN_FEATURES:
        return diagonal_at(point)
    parts = stand_ins(objective, seed, N_PARTS if by_parts else 1)
    hessians = sampled_hessians(parts, point.w)
    sampled = parts_of_sample(hessians, objective.ridge) if hessians else None
    if sampled is not None:
        return sampled
    if n > FEW_FEATURES and not is_hard:
        return diagonal_at(point)
    hessian = point.hessian()
    check_overflow(hessian, objective)
    factor = factorized(hessian, exact=True)
    return factor or Diagonal(np.diag(hessian).copy(), objective.ridge, 0.0)


def stand_ins(objective: Objective, seed: int, n_parts: int = N_PARTS) -> list[Objective]:
    """Return objectives on disjoint parts of a sample; [] if the sample would be most of X."""
    n = objective.n_features
    size = max(SMALL_SAMPLE, SAMPLE_PER_FEATURE * n)
    if n > HESSIAN_FEATURES or 3 * size >= objective.n_active_documents:
        return []
    return objective.sample_parts(size / objective.n_active_documents, seed, n_parts)


def points_on_parts(parts: Sequence[Objective], w: Floats) -> list[Point]:
    """Return each objective evaluated at w; [] if one is too small to estimate a Hessian from."""
    points = [part.at(w) for part in parts]
    is_enough = all(tells_shape(point, CURVED_PER_FEATURE / len(parts)) for point in points)
    return points if is_enough else []


def sampled_hessians(parts: Sequence[Objective], w: Floats) -> list[Floats]:
    """Return the Hessian of the loss for each part of a sample; [] if a part is too small."""
    points = points_on_parts([part.with_ridge(0.0) for part in parts], w)
    hessians = [point.hessian() for point in points]
    for hessian, point in zip(hessians, points, strict=True):
        check_overflow(hessian, point.objective)
    return hessians


def parts_of_sample(hessians: Sequence[Floats], ridge: float) -> PartsOfSample | None:
    """Return the preconditioner that averages the inverses of `hessians` plus a ridge, or None."""
    factors = []
    for hessian in hessians:
        with_ridge = hessian.copy()
        with_ridge[np.diag_indices_from(with_ridge)] += ridge
        factors.append(factorized(with_ridge))
    found = [factor for factor in factors if factor is not None]
    return PartsOfSample(found) if len(found) == len(factors) else None


def tells_shape(point: Point, per_feature: float = CURVED_PER_FEATURE) -> bool:
    """Return True if enough documents have pairs of positive loss to estimate the Hessian."""
    return _largest_rank(point) >= per_feature * point.objective.n_features


def is_mostly_curved(point: Point) -> bool:
    """Return True if the share of documents in pairs of positive loss is large enough to sample."""
    share = CURVED_PER_FEATURE / SAMPLE_PER_FEATURE
    return _largest_rank(point) >= share * point.objective.n_active_documents


def hard_steps(objective: Objective) -> float:
    """Return how many conjugate gradient steps cost as much as a better preconditioner."""
    if allows_rough(objective):
        cost = rough_cost(objective) + _factor_cost(objective, objective.n_features)
        return max(ROUGH_STEPS, 0.5 * cost)
    # For very sparse rows, a factorization in document space costs thousands of products.
    in_document_space = _factor_cost(objective, objective.n_active_documents)
    return float(np.clip(in_document_space, *HARD_STEPS))


def _factor_cost(objective: Objective, order: int) -> float:
    product = objective.n_active_documents * (objective.entries_per_document + PAIRS_COST)
    return FACTOR_COST * order**3 / product


def allows_rough(objective: Objective) -> bool:
    """Return True if a single-precision Hessian can be worth its cost for data of this size."""
    n = objective.n_features
    is_wide = FEW_FEATURES < n <= ROUGH_FEATURES and objective.feature_variances is None
    is_tall = objective.n_active_documents >= ROUGH_DOCUMENTS * n
    return is_wide and is_tall and objective.design.has_rough_hessian


def rough_at(point: Point, seed: int) -> Rough | None:
    """Return a single-precision Hessian as preconditioner; None if its precision is not enough."""
    before = point.objective.sweeps
    hessian = rough_hessian(point, seed)
    norm = (1.0 + 2.0 * ROUGH_JITTERS[-1]) * float(np.abs(hessian).sum(axis=0).max())
    factor = factorized(hessian, jitters=ROUGH_JITTERS) if np.isfinite(norm) else None
    cost = point.objective.sweeps - before
    return None if factor is None else Rough(factor, norm, point.objective.ridge, cost)


def diagonal_at(point: Point) -> Diagonal:
    """Return the diagonal of the Hessian as preconditioner, which suits problems of any size."""
    objective = point.objective
    before = objective.sweeps
    diagonal = _leveled(point.hess_diag(), _largest_rank(point))
    return Diagonal(diagonal, objective.ridge, objective.sweeps - before)


def leading_at(point: Point, variances: Floats, leading: Curvature) -> Preconditioner:
    """Return a preconditioner from `leading`, the Hessian for features of large variance."""
    objective = point.objective
    features, curved, _ = leading
    hessian = curved.copy()
    hessian[np.diag_indices_from(hessian)] += objective.ridge
    factor = factorized(hessian) or Diagonal(np.diag(hessian).copy(), objective.ridge, 0.0)
    curvature = float(np.trace(curved) / np.sum(variances[features]))
    # The diagonal of the other features is about proportional to their variances.
    diagonal = objective.ridge + curvature * variances
    return Leading(leading, factor, diagonal, objective.ridge, faithful=tells_shape(point))


def leading_curvature(point: Point, variances: Floats, seed: int) -> Curvature:
    """Return the Hessian of the loss for the features of the largest variance, from a sample."""
    objective = point.objective
    features = np.sort(np.argsort(-variances, kind="stable")[: _n_leading(objective)])
    before = objective.sweeps
    size = max(SMALL_SAMPLE, SAMPLE_PER_LEADING * features.size)
    here = point
    if 2 * size < objective.n_active_documents:
        here = objective.sample(size / objective.n_active_documents, seed).at(point.w)
    part = here.objective.restrict(features).at(point.w[features], here.scores)
    hessian = part.hessian()
    check_overflow(hessian, part.objective)
    hessian[np.diag_indices_from(hessian)] -= objective.ridge
    return Curvature(features, hessian, objective.sweeps - before)


def _n_leading(objective: Objective) -> int:
    sample = min(objective.n_active_documents, SAMPLE_PER_LEADING * MOST_LEADING)
    affordable = LEADING_COST * objective.entries_per_document * objective.n_active_documents
    return min(MOST_LEADING, int(np.sqrt(affordable / sample)))


def _leveled(diagonal: Floats, rank: int) -> Floats:
    # Raise all entries to at least the r-th largest, r = `rank`. If XᵀAX has rank r < n, the
    # Hessian is ρI in n − r dimensions, for which plain conjugate gradients take one step. Divided
    # by unequal numbers, this one eigenvalue becomes a band far below the others: many steps.
    n = diagonal.size
    if rank >= n:
        return diagonal
    least = n - max(rank, 1)
    raised: Floats = np.maximum(diagonal, np.partition(diagonal, least)[least])
    return raised


def _largest_rank(point: Point) -> int:
    # An upper bound on the rank of A, up to ties: the documents in pairs with a loss, minus one
    # per query, because pairs depend on differences only.
    return point.losses.n_documents - point.losses.n_queries


def factorized(
    hessian: Floats, *, exact: bool = False, jitters: Sequence[float] = JITTERS
) -> Factorized | None:
    """Return a Hessian as preconditioner by its Cholesky factor; None if not positive definite."""
    # Features may differ in scale by many orders of magnitude. A unit diagonal keeps the
    # factorization accurate, and a tiny ridge keeps it defined.
    scale = 1.0 / np.sqrt(np.diag(hessian))
    factor = _cholesky(hessian * scale[:, None] * scale, jitters)
    return None if factor is None else Factorized(factor, scale, exact=exact)


def check_overflow(hessian: Floats, objective: Objective) -> None:
    """Raise ValueError if a Hessian is not finite; the message names the feature that overflows."""
    overflow = np.flatnonzero(~np.isfinite(hessian).all(axis=0))
    if overflow.size:
        raise overflow_error(objective.feature(int(overflow[0])))


def _cholesky(matrix: Floats, jitters: Sequence[float]) -> tuple[Floats, bool] | None:
    for ridge in jitters:  # the smallest that works changes the Hessian least
        matrix[np.diag_indices_from(matrix)] += ridge
        try:
            factor: tuple[Floats, bool] = cho_factor(matrix, lower=True, check_finite=False)
            return factor
        except LinAlgError:
            continue
    return None
