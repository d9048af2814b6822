"""Additive models as plain data: one curve per feature, and functions of pairs of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats
from marginrank.data.knots import Knots, check_no_infinity
from marginrank.data.validation import check_features
from marginrank.models._features import Reason, check_rows, reasons_by_feature, require_features
from marginrank.models.fit_report import FitReport
from marginrank.models.interactions import Interaction, scores_of


class Curve(NamedTuple):
    """What one feature adds to a score.

    Attributes
    ----------
    knots : ndarray of shape (n_knots,)
        Values of the feature, ascending; categories, if it is `categorical`.
    values : ndarray of shape (n_knots,)
        What is added there. Between knots the curve is straight, and beyond the outer ones it goes
        on as between the last two; a feature with one knot adds the same for every value.
    missing : float
        What is added where the value is NaN, or a category that is none of the knots.
    categorical : bool
        Whether the feature has categories.
    categories : tuple of str, or None
        Text that the numbers 0, 1, … of a categorical feature stand for, if the fit had text.
    """

    knots: Floats
    values: Floats
    missing: float
    categorical: bool
    categories: tuple[str, ...] | None = None

    @property
    def spread(self) -> float:
        """The largest difference that the feature makes between two values at knots."""
        return float(np.ptp(self.values))


@dataclass(frozen=True)
class AdditiveModel:
    """The curves of an additive ranker and where they come from.

    Attributes
    ----------
    curves : list of Curve
        One for each feature; a score is the sum of what they add.
    parameters : dict
        The parameters of the estimator.
    feature_names : list of str or None
        Names of the features.
    report : FitReport or None
        How the fit ended.
    interactions : sequence of Interaction
        What pairs of features add beside.
    scale : ndarray of shape (n_features,), or None
        What the fit divided features by; curves are those of features that are not divided.
    """

    curves: list[Curve]
    parameters: dict[str, Any]
    feature_names: list[str] | None = None
    report: FitReport | None = None
    interactions: Sequence[Interaction] = ()
    scale: Floats | None = None

    def __repr__(self) -> str:
        """Return the numbers of curves and interactions."""
        return f"AdditiveModel({len(self.curves)} curves, {len(self.interactions)} interactions)"

    @property
    def kind(self) -> str:
        """Name of the library and of the estimator's class, as those of other libraries have it."""
        return "marginrank AdditiveRankSVM"

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.curves)

    @property
    def is_zero(self) -> bool:
        """Whether all curves and interactions are zero."""
        values = [part for one in self.curves for part in (one.values, one.missing)]
        return not any(np.any(part) for part in (*values, *(i.values for i in self.interactions)))

    def scores(self, X: Any) -> Floats:
        """Return the score of each document, the one that the saved estimator gave it."""
        X = check_features(X, missing=True)
        require_features(X, self.n_features)
        threads = effective_threads(self.parameters.get("n_jobs"))
        return scores(self.curves, X, threads, self.interactions)

    def explain(self, preferred: Any, other: Any) -> list[Reason]:
        """Return what each feature adds to the difference of two scores, the strongest first.

        Pairs of features that act together are reasons of their own. The differences sum to that
        of the scores.
        """
        X = check_rows(preferred, other, self.n_features, self.feature_names)
        added = contributions(self.curves, X, self.interactions)
        differences = (added[0] - added[1]).tolist()
        reasons = reasons_by_feature(X, differences[: self.n_features], self.feature_names)
        for one, difference in zip(self.interactions, differences[self.n_features :], strict=True):
            first, second = X[:, one.features].astype(np.float64).tolist()
            values = (first[0], first[1]), (second[0], second[1])
            reasons.append(Reason(one.features, one.name(self.feature_names), *values, difference))
        return sorted(reasons, key=lambda reason: -abs(reason.difference))


def curves_of(knots: Knots, values: Floats) -> list[Curve]:
    """Return the curves that have these values, by column."""
    of_feature = [values[knots.columns(k)] for k in range(knots.n_features)]
    return [
        Curve(knots.of(k).copy(), at[1:].copy(), float(at[0]), bool(knots.categorical[k]))
        for k, at in enumerate(of_feature)
    ]


def scores(
    curves: list[Curve], X: Any, threads: int, interactions: Sequence[Interaction] = ()
) -> Floats:
    """Return the sum of the curves, and of what pairs of features add, at checked features."""
    categorical = [k for k, curve in enumerate(curves) if curve.categorical]
    knots = Knots.of_features([curve.knots for curve in curves], categorical)
    by_column = [part for curve in curves for part in ([curve.missing], curve.values)]
    of_curves = knots.scores(X, np.concatenate(by_column), threads)
    return of_curves + scores_of(interactions, X, threads) if interactions else of_curves


def contributions(curves: list[Curve], X: Any, interactions: Sequence[Interaction] = ()) -> Floats:
    """Return what each feature, then each pair, adds to the scores of checked dense documents."""
    check_no_infinity(X)  # by its own column: below, each is one by itself
    columns = [scores([curve], X[:, [k]], 1) for k, curve in enumerate(curves)]
    return np.stack([*columns, *(scores_of([one], X, 1) for one in interactions)], axis=1)
