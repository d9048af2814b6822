"""Effects of positions in a fit to clicks: part of the objective, not of the model.

A click depends on the document and on the position at which it was shown. With b_p for the effect
of position p, the score of a click is wᵀx + b_p, and w and b minimize one convex objective:

    ½‖w‖² + ½ τ ‖b‖² + C Σ ℓ((wᵀx_i + b_i) − (wᵀx_j + b_j))

The positions are one more block of the design, with one column per position, so the certificate
covers them. A constant added to all effects changes no pair; the ridge τ makes the effects unique.
It is small, because effects that are held back leave the bias to the features: with τ = 1, models
in benchmarks/clicks.py are hardly better than models that ignore positions.
"""

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from marginrank._utils.types import Floats, Integers
from marginrank.data.positions import POOLED, PositionCodes, position_codes
from marginrank.data.ranking_data import RankingData
from marginrank.fit.scaling import Scale
from marginrank.models.fit_report import FitReport
from marginrank.objective.protocols import Matrix
from marginrank.operators.native import NativeMatrix, native_matrix

POSITION_RIDGE = 1e-3  # τ


@dataclass(frozen=True)
class PositionTerm:
    """The positions of the data, if any, as columns after the features."""

    codes: PositionCodes | None
    n_features: int

    @classmethod
    def of(cls, data: RankingData) -> "PositionTerm":
        return cls(data.position_codes, data.n_features)

    @classmethod
    def of_part(cls, data: RankingData) -> "PositionTerm":
        """Return the term of a chunk of a stream: always one column per position up to the 20th."""
        if data.position is None:
            return cls(None, data.n_features)
        if data.context is not None:
            raise ValueError("SGDRankSVM does not support context; drop it.")
        return cls(position_codes(data.position, None, POOLED), data.n_features)

    def beside(self, matrix: Matrix) -> Matrix:
        """Append one column per position to X, without a copy of X."""
        if self.codes is None:
            return matrix
        if not isinstance(matrix, NativeMatrix):
            raise ValueError(
                "position requires X in memory and the native kernels; drop memory_limit and "
                "device, or position."
            )
        return matrix.with_categories(self.codes.codes, self.codes.width)

    def scaled(self, scale: Scale | None) -> Scale | None:
        """Return the divisors of all columns; the divisor √τ gives positions the ridge ½ τ b²."""
        if self.codes is None:
            return scale
        none = Scale(np.ones(self.n_features), np.empty(0, dtype=np.int64))
        own, features = np.full(self.codes.width, POSITION_RIDGE**0.5), scale or none
        return Scale(np.concatenate([features.values, own]), features.without_effect)

    def scaled_features(self, scale: Scale | None) -> Scale | None:
        """Return the divisors of features, with positions as one more feature."""
        if self.codes is None or scale is None:
            return scale
        return Scale(np.append(scale.values, 1.0), scale.without_effect)

    def at_cells(self, cells: Floats, values: Floats) -> dict[str, Any]:
        """Return report fields about positions, given the effects of some cells."""
        assert self.codes is not None
        effects = np.zeros(self.codes.width)
        effects[cells.astype(np.int64)] = values
        return self.effects(np.concatenate([np.zeros(self.n_features), effects]))

    def start(self, w0: Floats | None) -> Floats | None:
        """Return the initial weights, with effects of zero."""
        if w0 is None or self.codes is None:
            return w0
        return np.concatenate([w0, np.zeros(self.codes.width)])

    def separate(self, w: Floats, report: FitReport) -> tuple[Floats, FitReport]:
        """Split a result into weights of the features, and a report with the position effects."""
        if self.codes is None:
            return w, report
        return w[: self.n_features], replace(report, **self.effects(w))

    def effects(self, w: Floats) -> dict[str, Any]:
        """Return report fields about positions, given the effects of all cells."""
        if self.codes is None:
            return {}
        effect = self.codes.effects(w[self.n_features :])
        return {"position_effect": effect, "contexts": self.codes.contexts}


def click_scores(data: RankingData, w: Floats, rows: Integers | None, threads: int) -> Floats:
    """Return Xw of some rows, plus the effects of their positions, if any."""
    view = cast(NativeMatrix, PositionTerm.of(data).beside(native_matrix(data))).view
    return view.dot(w[: view.n_columns], rows, threads)


def effects_on_clicks(data: RankingData, report: FitReport | None, rows: Integers | None) -> Floats:
    """Look up the fitted effect of each document's position.

    It is 0 for positions that the fit has not seen, and for data without positions.
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
    """Raise ValueError if the data have positions, which a fit does not support."""
    if data.position is not None:
        raise ValueError(f"{fit} does not support position; drop it.")
