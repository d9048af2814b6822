"""Losses of a pair, as functions of the score difference t = s_i − s_j: sums of hinge terms.

A loss is ℓ(t) = Σ_m a_m · max(0, θ_m − t)^{e_m} with e_m ∈ {1, 2}; a *piece* is one term of the
sum. The C++ kernels get only the list of (a, θ, e), so a new loss is one new entry of
:data:`LOSSES`. The exact logistic loss is one piece of another kind, which only the kernels for
listed pairs support, because they evaluate each pair; see :func:`exact`.
"""

from collections import UserDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from marginrank._utils.parameters import ParameterError, given
from marginrank._utils.types import Floats

SMALLEST_ERROR, LARGEST_ERROR = 1e-5, 0.1  # limits on the approximation error of logistic
GRID = 600  # values of t at which the approximation error is bounded
LOGISTIC = 0  # the power of the logistic term, see Piece


@dataclass(frozen=True)
class Piece:
    """One term of a loss of score differences t: a hinge a · max(0, θ − t)^e, or logistic.

    The logistic term a · log(1 + exp(θ − t)) has the power LOGISTIC and is the only term of its
    loss. It is called the smooth piece.
    """

    coefficient: float
    theta: float
    power: int

    def value(self, t: Floats) -> Floats:
        return self.coefficient * self._derivatives(t)[0]

    def derivative(self, t: Floats) -> Floats:
        return -self.coefficient * self._derivatives(t)[1]

    def curvature(self, t: Floats) -> Floats:
        return self.coefficient * self._derivatives(t)[2]

    def _derivatives(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        # Return value and derivatives with respect to x = θ − t for a = 1.
        x = self.theta - t
        if self.power == LOGISTIC:
            value: Floats = np.logaddexp(0.0, x)
            return value, np.exp(x - value), np.exp(x - 2.0 * value)
        slack = np.maximum(0.0, x)
        slope = self.power * slack ** (self.power - 1) * (slack > 0)
        curvature = np.where(slack > 0, 2.0 if self.power == 2 else 0.0, 0.0)
        return slack**self.power, slope, curvature


@dataclass(frozen=True)
class Loss:
    """A convex loss ℓ(t) of the score difference t of a pair, as a sum of hinge terms.

    `margin` is the smallest t with zero loss, or 0 if the loss is positive everywhere. With margin
    rescaling, each pair has its own margin instead. `error` is the largest difference from the
    function that the loss approximates.

    Examples
    --------
    >>> from marginrank.objective.losses import LOSSES
    >>> LOSSES["squared_hinge"].value([0.0, 0.5, 2.0])
    array([1.  , 0.25, 0.  ])
    """

    name: str
    pieces: tuple[Piece, ...]
    margin: float = 0.0
    error: float = 0.0

    @property
    def smooth(self) -> bool:
        """Whether the loss is differentiable, as Newton methods require."""
        return all(piece.power != 1 for piece in self.pieces)

    @property
    def reach(self) -> float:
        """The smallest score difference above which the loss is constant; may be infinite."""
        return max(piece.theta if piece.power > 0 else np.inf for piece in self.pieces)

    @property
    def piecewise_linear(self) -> bool:
        """Whether the loss is a sum of hinges with positive weights, as hinge solvers require."""
        return all(piece.power == 1 and piece.coefficient > 0 for piece in self.pieces)

    def as_array(self) -> Floats:
        """Return the loss as an array for C++ kernels, with one row (a, θ, e) per hinge term."""
        return np.array([(p.coefficient, p.theta, p.power) for p in self.pieces], dtype=np.float64)

    def shifted(self, offset: float) -> "Loss":
        pieces = tuple(Piece(p.coefficient, p.theta + offset, p.power) for p in self.pieces)
        return replace(self, pieces=pieces, margin=self.margin + offset)

    def smoothed(self, width: float) -> "Loss":
        """Return a smooth copy of a piecewise linear loss: kinks become parabolas of this width."""
        half = 0.5 * width
        pieces = []
        for piece in self.pieces:
            curvature = 0.5 * piece.coefficient / width
            pieces.append(Piece(curvature, piece.theta + half, 2))
            pieces.append(Piece(-curvature, piece.theta - half, 2))
        return Loss(self.name, tuple(pieces), self.margin)

    def value(self, t: ArrayLike) -> Floats:
        return self._sum(Piece.value, t)

    def derivative(self, t: ArrayLike) -> Floats:
        """Return the derivative of the loss at score differences t; at a kink, from the right."""
        return self._sum(Piece.derivative, t)

    def curvature(self, t: ArrayLike) -> Floats:
        """Return the second derivative of the loss at score differences t; from the right."""
        return self._sum(Piece.curvature, t)

    @property
    def largest_curvature(self) -> float:
        """The largest second derivative of the loss."""
        kinks = np.array([piece.theta for piece in self.pieces])
        below = np.nextafter(kinks, -np.inf)
        return float(np.max(self.curvature(below)))

    def squared_derivative(self) -> "Loss":
        """Return the square of the derivative of a differentiable loss, as another Loss."""
        # Left of a kink θ with coefficient a, ℓ'' is larger by 2a. So (ℓ'²)' = 2ℓ'ℓ'' jumps by
        # 4a ℓ'(θ), and (ℓ'²)'' = 2ℓ''² by the difference of its values on both sides.
        pieces = []
        curvature = 0.0
        for piece in sorted(self.pieces, key=lambda p: -p.theta):
            slope = float(self.derivative(piece.theta))
            left = curvature + 2.0 * piece.coefficient
            pieces.append(Piece(left**2 - curvature**2, piece.theta, 2))
            if slope != 0.0:
                pieces.append(Piece(-4.0 * piece.coefficient * slope, piece.theta, 1))
            curvature = left
        return Loss(f"{self.name}'²", tuple(pieces))

    def _sum(self, term: Callable[[Piece, Floats], Floats], t: ArrayLike) -> Floats:
        t = np.asarray(t, dtype=np.float64)
        total = np.zeros_like(t)
        for piece in self.pieces:
            total += term(piece, t)
        return total


def logistic(error: float = 0.01) -> Loss:
    """Return the logistic loss log(1 + exp(−t)) as squared hinge terms, exact to within `error`.

    Examples
    --------
    >>> import numpy as np
    >>> from marginrank.objective.losses import logistic
    >>> t = np.linspace(-20.0, 20.0, 999)
    >>> bool(np.max(np.abs(logistic(0.001).value(t) - np.logaddexp(0.0, -t))) <= 0.001)
    True
    """
    pieces = tuple(Piece(a, theta, 2) for a, theta in _logistic_pieces(error))
    return Loss("logistic", pieces, error=error)


def exact(loss: Loss) -> Loss:
    """Return the exact loss for an approximate logistic loss; return other losses unchanged.

    Only kernels for listed pairs can evaluate the exact logistic loss.

    Examples
    --------
    >>> from marginrank.objective.losses import exact, logistic
    >>> float(exact(logistic(0.01)).value(0.0))  # log 2
    0.6931471805599453
    """
    if loss.name != "logistic":
        return loss
    return Loss("logistic", (Piece(1.0, loss.margin, LOGISTIC),), loss.margin)


@lru_cache
def _logistic_pieces(error: float) -> tuple[tuple[float, float], ...]:
    # ℓ(t) = log(1 + exp(−t)) is approximated by q(t) = Σ a_m max(0, θ_m − t)² with symmetric knots
    # θ_1 > … > θ_M. For given knots, the a_m with the smallest max |q − ℓ| solve a linear program.
    # q is constrained to be convex (its curvature 2 Σ_{i ≤ m} a_i between two knots is not
    # negative), zero right of the knots and −t left of them, like ℓ up to a small error.
    if not SMALLEST_ERROR <= error <= LARGEST_ERROR:
        raise ValueError(
            f"error={error:g} must be between {SMALLEST_ERROR:g} and {LARGEST_ERROR:g}."
        )
    # ℓ is about exp(−t) where the approximation becomes zero; that may cost half of the error.
    reach = np.log(2.0 / error)
    n_knots = 3
    while True:
        knots = _knots(n_knots, reach)
        coefficients = _fit(knots, reach)
        if coefficients is not None and _largest_error(coefficients, knots) <= error:
            return tuple(zip(coefficients.tolist(), knots.tolist(), strict=True))
        n_knots += 1


def _knots(n_knots: int, reach: float) -> Floats:
    # Equal shares of ∫ |ℓ'''|^{1/3} between the knots make the error about the same everywhere.
    t = np.linspace(-reach, reach, 4001)
    sigmoid = 1.0 / (1.0 + np.exp(-t))
    third = np.abs(sigmoid * (1.0 - sigmoid) * (1.0 - 2.0 * sigmoid))
    density = np.cbrt(third + 1e-3 * third.max())
    share = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    knots = np.interp(np.linspace(share[-1], 0.0, n_knots), share, t)
    return 0.5 * (knots - knots[::-1])


def _fit(knots: Floats, reach: float) -> Floats | None:
    from scipy.optimize import linprog

    n = knots.size
    t = np.linspace(-reach - 1.0, reach + 1.0, GRID)
    basis = np.maximum(0.0, knots - t[:, None]) ** 2
    target = np.logaddexp(0.0, -t)
    curvature = np.tril(np.ones((n - 1, n)))
    bound = np.ones((t.size, 1))
    solution = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.block([[basis, -bound], [-basis, -bound], [-curvature, np.zeros((n - 1, 1))]]),
        b_ub=np.concatenate([target, -target, np.zeros(n - 1)]),
        A_eq=np.column_stack([[np.ones(n), 2.0 * knots, knots**2], np.zeros(3)]),
        b_eq=[0.0, 1.0, 0.0],
        bounds=[(None, None)] * n + [(0.0, None)],
    )
    return solution.x[:n] if solution.success else None


def _largest_error(coefficients: Floats, knots: Floats) -> float:
    t = np.linspace(-2.0 * knots[0], 2.0 * knots[0], 20 * GRID + 1)
    approximation = np.maximum(0.0, knots - t[:, None]) ** 2 @ coefficients
    return float(np.max(np.abs(approximation - np.logaddexp(0.0, -t))))


class _Losses(UserDict[str, Loss]):
    """A mapping from names to losses; losses that are slow to build are built on first use."""

    def __init__(self, losses: Iterable[Loss], late: Mapping[str, Callable[[], Loss]]) -> None:
        super().__init__({loss.name: loss for loss in losses})
        self.data.update(late)  # type: ignore[arg-type]

    def __getitem__(self, name: str) -> Loss:
        loss: Loss | Callable[[], Loss] = self.data[name]
        if not isinstance(loss, Loss):
            loss = self.data[name] = loss()
        return loss


LOSSES = _Losses(
    (
        Loss("squared_hinge", (Piece(1.0, 1.0, 2),), margin=1.0),
        Loss("hinge", (Piece(1.0, 1.0, 1),), margin=1.0),
        # Quadratic on [0, 1], linear below 0 (Chapelle and Keerthi, 2010, section 4.1).
        Loss("huber", (Piece(1.0, 1.0, 2), Piece(-1.0, 0.0, 2)), margin=1.0),
    ),
    {"logistic": logistic},
)


def get_loss(name: str) -> Loss:
    """Return the loss called `name`; ``"logistic@0.001"`` has an approximation error of 0.001.

    Examples
    --------
    >>> from marginrank.objective.losses import get_loss
    >>> len(get_loss("logistic").pieces) < len(get_loss("logistic@0.001").pieces)
    True
    """
    base, at, error = name.partition("@") if isinstance(name, str) else ("", "", "")
    if at and base == "logistic":
        try:
            return logistic(float(error))
        except ValueError as problem:
            raise ParameterError(
                given("loss", name), " must have an error from 1e-05 to 0.1 after the @."
            ) from problem
    if at or base not in LOSSES:
        raise ParameterError(
            given("loss", name), f" must be one of {', '.join(map(repr, LOSSES))}."
        )
    return LOSSES[base]
