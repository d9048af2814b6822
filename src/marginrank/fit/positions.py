"""Effects of display positions in fits to clicks: part of the objective, not of the model.

Whether a document is clicked depends on the document and on the position at which it was shown
(position bias). With an effect b_p for position p, the score of a click is wᵀx + b_p. The weights w
and the effects b minimize one convex objective:

    ½‖w‖² + ½ τ ‖b‖² + C Σ ℓ((wᵀx_i + b_i) − (wᵀx_j + b_j))

The positions are indicator columns after the features, so the certificate of the optimum covers
them. Adding a constant to all effects changes no pair; the ridge τ makes the effects unique. τ is
small, because strongly regularized effects would leave position bias to the features: with τ = 1,
models in benchmarks/clicks.py are hardly better than models that ignore positions. A smaller τ lets
the effects explain relevance if relevant documents are at the top of lists: 0.001 and 0.01 are
worse in benchmarks/clicks.py, on some of its sets each.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from marginrank._utils.types import Floats, Integers
from marginrank.data.positions import POOLED, PositionCodes, position_codes
from marginrank.data.ranking_data import RankingData
from marginrank.fit.monotone_positions import exactly_decreasing, monotone_solver
from marginrank.fit.scaling import Scale
from marginrank.models.fit_report import FitReport
from marginrank.objective.losses import Loss
from marginrank.objective.protocols import Matrix
from marginrank.operators.native import NativeMatrix, native_matrix
from marginrank.solvers.result import SolverResult

POSITION_RIDGE = 3e-3  # τ


@dataclass(frozen=True)
class PositionTerm:
    """The display positions of clicked documents, as indicator columns after the features of X.

    There are no columns if the data have no positions.
    """

    codes: PositionCodes | None
    n_features: int
    is_monotone: bool = False  # effects never increase from a position to the next

    @classmethod
    def of(cls, data: RankingData, monotone: bool = False) -> "PositionTerm":
        """Return the position columns for some data; with `monotone`, effects never increase."""
        if monotone and data.position is None:
            raise ValueError("monotonic_position requires position; pass both or neither.")
        return cls(data.position_codes, data.n_features, monotone)

    @classmethod
    def of_part(cls, data: RankingData) -> "PositionTerm":
        """Return the position columns for a chunk of a stream, equal in number for all chunks.

        There is one column per position up to the 20th; later positions share the last column.
        """
        if data.position is None:
            return cls(None, data.n_features)
        if data.context is not None:
            raise ValueError("SGDRankSVM does not support context; drop context.")
        return cls(position_codes(data.position, None, POOLED), data.n_features)

    def beside(self, matrix: Matrix) -> Matrix:
        """Return X with one indicator column per display position appended, without a copy of X."""
        if self.codes is None:
            return matrix
        if not isinstance(matrix, NativeMatrix):
            raise ValueError(
                "position requires X in memory and the native kernels; drop memory_limit and "
                "device, or position."
            )
        return matrix.with_categories(self.codes.codes, self.codes.width)

    def scaled(self, scale: Scale | None) -> Scale | None:
        """Return the divisors of all columns: of the features, then of the position columns.

        The divisor √τ of a position column gives its weight b, the effect of the position, the
        penalty ½ τ b².
        """
        if self.codes is None:
            return scale
        none = Scale(np.ones(self.n_features), np.empty(0, dtype=np.int64))
        own, features = np.full(self.codes.width, POSITION_RIDGE**0.5), scale or none
        return Scale(np.concatenate([features.values, own]), features.without_effect)

    def scaled_features(self, scale: Scale | None) -> Scale | None:
        """Return the divisors of the features, and 1 for the position as one more feature."""
        if self.codes is None or scale is None:
            return scale
        return Scale(np.append(scale.values, 1.0), scale.without_effect)

    def solver(self, name: str, loss: Loss) -> Callable[..., SolverResult] | None:
        """Return the named solver for monotone effects; None if effects are unconstrained."""
        if self.codes is None or not self.is_monotone:
            return None
        return monotone_solver(name, loss, self.codes, self.n_features)

    def at_cells(self, cells: Floats, values: Floats) -> dict[str, Any]:
        """Return the fields of a FitReport about the effects of display positions on clicks.

        The effect in position column cells[i] is values[i]; columns not in `cells` have effect 0.
        """
        assert self.codes is not None
        effects = np.zeros(self.codes.width)
        effects[cells.astype(np.int64)] = values
        return self.effects(np.concatenate([np.zeros(self.n_features), effects]))

    def start(self, w0: Floats | None) -> Floats | None:
        """Return initial weights of the features, followed by zeros for the position columns."""
        if w0 is None or self.codes is None:
            return w0
        return np.concatenate([w0, np.zeros(self.codes.width)])

    def separate(self, w: Floats, report: FitReport) -> tuple[Floats, FitReport]:
        """Return the weights of the features, and the report with the position effects added."""
        if self.codes is None:
            return w, report
        return w[: self.n_features], replace(report, **self.effects(w))

    def effects(self, w: Floats) -> dict[str, Any]:
        """Return the FitReport fields about effects of positions, given weights of all columns."""
        if self.codes is None:
            return {}
        effect = self.codes.effects(w[self.n_features :])
        if self.is_monotone:
            effect = exactly_decreasing(effect)
        return {"position_effect": effect, "contexts": self.codes.contexts}


def click_scores(data: RankingData, w: Floats, rows: Integers | None, threads: int) -> Floats:
    """Return the scores Xw of some rows, plus the fitted effects of their display positions."""
    view = cast(NativeMatrix, PositionTerm.of(data).beside(native_matrix(data))).view
    return view.dot(w[: view.n_columns], rows, threads)


def effects_on_clicks(data: RankingData, report: FitReport | None, rows: Integers | None) -> Floats:
    """Return the fitted effect of the position at which each document was shown.

    It is 0 for positions that the training data lacked, and for data without positions.
    """
    some = slice(None) if rows is None else rows
    n = data.n_documents if rows is None else rows.size
    if data.position is None or report is None or report.position_effect is None:
        return np.zeros(n)
    table = np.atleast_2d(np.nan_to_num(report.position_effect))
    place, context = np.minimum(data.position[some], POOLED) - 1, np.zeros(n, dtype=np.int64)
    known = place < table.shape[1]
    if report.contexts is not None and data.context is not None:
        own = data.context[some]
        context = np.minimum(np.searchsorted(report.contexts, own), report.contexts.size - 1)
        known &= report.contexts[context] == own
    return np.where(known, table[context, np.minimum(place, table.shape[1] - 1)], 0.0)


def check_no_positions(data: RankingData, fit: str) -> None:
    """Raise ValueError if the data have display positions, which the named fit does not support."""
    if data.position is not None:
        raise ValueError(f"{fit} does not support position; drop position.")
