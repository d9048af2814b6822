"""Additive models as plain data: one curve per feature, and functions of pairs of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from marginrank import _core
from marginrank._utils.feature_names import name_of
from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats
from marginrank.data.held_out import check_same_names
from marginrank.data.knots import Knots, check_no_infinity, dense_blocks, with_known_categories
from marginrank.data.queries import group_rows
from marginrank.data.ranking_data import RankingData, check_beside_data
from marginrank.data.validation import check_features, columns_of
from marginrank.models.features import Reason, check_rows, reasons_by_feature, require_features
from marginrank.models.fit_report import FitReport

DRAWS = 200  # number of bootstrap samples of queries for standard errors


class Curve(NamedTuple):
    """The curve of one feature in an additive model, given by its values at knots.

    Attributes
    ----------
    knots : ndarray of shape (n_knots,)
        Values of the feature, ascending; its categories, if it is `categorical`.
    values : ndarray of shape (n_knots,)
        Values of the curve at the knots. Between knots the curve is linear. Beyond the outer knots
        it continues with the slope of the last bin. A curve with one knot is constant.
    missing : float
        Value of the curve for NaN and for unknown categories.
    categorical : bool
        Whether the feature is categorical.
    categories : tuple of str, or None
        Texts of the categories 0, 1, …, if the model was fitted to text.
    """

    knots: Floats
    values: Floats
    missing: float
    categorical: bool
    categories: tuple[str, ...] | None = None

    @property
    def spread(self) -> float:
        """Largest minus smallest value of the curve at its knots."""
        return float(np.ptp(self.values))

    @property
    def texts(self) -> list[str]:
        """Labels of the knots for plots and tables: names of categories, or numbers as text."""
        if self.categories is None:
            return [f"{value:g}" for value in self.knots]
        return [self.categories[int(value)] for value in self.knots]


class Interaction(NamedTuple):
    """The joint function of two features in an additive model, given by its values on a grid.

    Attributes
    ----------
    features : tuple of int
        Columns of the two features.
    knots : tuple of ndarray
        Values of the first and of the second feature, ascending; the categories, if categorical.
    values : ndarray of shape (n_first + 1, n_second + 1)
        Values at the knots: rows for the first feature, columns for the second. The first row and
        the first column are for missing values. The function is bilinear between knots and
        constant beyond the outer ones.
    categorical : tuple of bool
        Whether each feature is categorical; unknown categories count as missing.
    """

    features: tuple[int, int]
    knots: tuple[Floats, Floats]
    values: Floats
    categorical: tuple[bool, bool]

    @property
    def spread(self) -> float:
        """Largest minus smallest value of the interaction at its knots."""
        return float(np.ptp(self.values[1:, 1:]))

    def name(self, names: Sequence[str] | None) -> str:
        """Return the names of the interaction's two features, joined by ×."""
        return " × ".join(name_of(k, names) for k in self.features)


@dataclass(frozen=True)
class AdditiveModel:
    """A fitted additive model as plain data: curves, parameters and fit report.

    Attributes
    ----------
    curves : list of Curve
        One per feature; the score of a document is the sum of their values.
    parameters : dict
        The parameters of the estimator.
    feature_names : list of str or None
        Names of the features.
    report : FitReport or None
        How the fit ended.
    interactions : sequence of Interaction
        Functions of pairs of features, added to the score.
    scale : ndarray of shape (n_features,), or None
        Divisors of the features during the fit; the knots are values before the division.
    """

    curves: list[Curve]
    parameters: dict[str, Any]
    feature_names: list[str] | None = None
    report: FitReport | None = None
    interactions: Sequence[Interaction] = ()
    scale: Floats | None = None
    kind: ClassVar[str] = "marginrank AdditiveRankSVM"  # library and estimator

    def __repr__(self) -> str:
        """Return the class name with the numbers of curves and interactions."""
        return f"AdditiveModel({len(self.curves)} curves, {len(self.interactions)} interactions)"

    @property
    def n_features(self) -> int:
        """Number of features of the model."""
        return len(self.curves)

    @property
    def is_zero(self) -> bool:
        """Whether all curves and interactions of the model are zero."""
        values = [part for one in self.curves for part in (one.values, one.missing)]
        return not any(np.any(part) for part in (*values, *(i.values for i in self.interactions)))

    def scores(self, X: Any) -> Floats:
        """Return the score of each document, bitwise equal to ``predict`` of the estimator."""
        X = check_features(X, missing=True)
        require_features(X, self.n_features)
        threads = effective_threads(self.parameters.get("n_jobs"))
        return scores(self.curves, X, threads, self.interactions)

    def explain(self, preferred: Any, other: Any) -> list[Reason]:
        """Return the contribution of each feature to the difference of two documents' scores.

        The largest contribution is first. Interactions are listed as pairs of features. The
        contributions sum to the difference.
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
    """Return one Curve per feature, given the values of all curves at all `knots`."""
    of_feature = [values[knots.columns(k)] for k in range(knots.n_features)]
    return [
        Curve(knots.of(k).copy(), at[1:].copy(), float(at[0]), bool(knots.categorical[k]))
        for k, at in enumerate(of_feature)
    ]


def scores(
    curves: list[Curve], X: Any, threads: int, interactions: Sequence[Interaction] = ()
) -> Floats:
    """Return the scores of documents by an additive model: sums of curves and interactions.

    X must be validated already.
    """
    categorical = [k for k, curve in enumerate(curves) if curve.categorical]
    knots = Knots.of_features([curve.knots for curve in curves], categorical)
    by_column = [part for curve in curves for part in ([curve.missing], curve.values)]
    of_curves = knots.scores(X, np.concatenate(by_column), threads)
    return of_curves + interaction_scores(interactions, X, threads) if interactions else of_curves


def interaction_scores(interactions: Sequence[Interaction], X: Any, threads: int) -> Floats:
    """Return the sum of all interactions of an additive model for each document.

    X must be validated already.
    """
    if not interactions:
        return np.zeros(X.shape[0])
    axes = Knots.of_features(
        [axis for one in interactions for axis in one.knots],
        np.flatnonzero([axis for one in interactions for axis in one.categorical]).tolist(),
    )
    features = np.array([one.features for one in interactions], dtype=np.int64).ravel()
    at_nodes = np.concatenate([np.ravel(one.values) for one in interactions])
    scores = np.empty(X.shape[0])
    categories = [(int(features[k]), known) for k, known in axes.categories()]
    for rows, block in dense_blocks(X):
        block = with_known_categories(block, categories)
        scores[rows] = _core.grid_scores(
            block, axes.at, axes.starts, axes.categorical, features, at_nodes, threads
        )
    return scores


def contributions(curves: list[Curve], X: Any, interactions: Sequence[Interaction] = ()) -> Floats:
    """Return the contributions of features to scores: one row per document, one column per feature.

    The columns of the interactions follow the columns of the features.
    """
    check_no_infinity(X)  # check here, because errors can name the column
    columns = [scores([curve], X[:, [k]], 1) for k, curve in enumerate(curves)]
    return np.stack([*columns, *(interaction_scores([one], X, 1) for one in interactions)], axis=1)


class Importance(NamedTuple):
    """Importances of the features, then of the interactions, of an additive model.

    An importance is the within-query standard deviation of a contribution to the score.
    """

    spread: Floats  # the importance of each feature, then of each interaction
    error: Floats  # standard error of the importance, from a bootstrap over queries


def documents_of(
    model: AdditiveModel, X: Any, qid: ArrayLike | None = None
) -> tuple[Any, ArrayLike | None]:
    """Return the documents X and their query ids, validated for an additive model.

    The query ids are `qid`, or are taken from X if it is a RankingData. Raise ValueError if the
    features of X are not the features of the model.
    """
    names, checked = columns_of(X), X
    if isinstance(X, RankingData):
        check_beside_data(qid=qid)
        names, checked, qid = X.feature_names, X.X, X.qid
    checked = check_features(checked, missing=True)
    require_features(checked, model.n_features)
    if names is not None and model.feature_names is not None:
        check_same_names(names, model.feature_names, "the data", "the model")
    return checked, qid


def importance(
    model: AdditiveModel, X: Any, qid: ArrayLike | None = None, *, seed: int = 0
) -> Importance:
    """Return the importance of each feature and interaction of an additive model on documents X.

    The importance is the within-query standard deviation of the contribution to the score. A
    feature that is constant within queries has importance 0, because no ranking depends on it.
    Without `qid`, all documents belong to one query. `seed` is for the bootstrap over queries that
    estimates standard errors.
    """
    X, qid = documents_of(model, X, qid)
    X = X.toarray() if sp.issparse(X) else X
    documents, _ = group_rows(X.shape[0], qid, None)
    rows = X if documents.rows is None else X[documents.rows]
    added = contributions(model.curves, rows, model.interactions)
    starts, sizes = documents.offsets[:-1], documents.sizes
    mean = np.add.reduceat(added, starts) / sizes[:, None]
    squares = np.add.reduceat((added - np.repeat(mean, sizes, axis=0)) ** 2, starts)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(sizes.size, np.full(sizes.size, 1.0 / sizes.size), size=DRAWS)
    draws = np.sqrt((drawn @ squares) / (drawn @ sizes)[:, None])
    return Importance(np.sqrt(squares.sum(axis=0) / sizes.sum()), draws.std(axis=0, ddof=1))
