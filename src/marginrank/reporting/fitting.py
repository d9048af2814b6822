"""The fit in a report: stop reason, distance to the optimum and history, and a learning curve."""

from __future__ import annotations

import math
import warnings
from dataclasses import fields
from typing import Any

from marginrank.data.ranking_data import RankingData
from marginrank.fit.linear import Parameters
from marginrank.metrics.names import Metric
from marginrank.models import LinearModel
from marginrank.models.fit_report import FitReport, Iteration, relative_distance
from marginrank.selection.learning_curve import LearningCurve, learning_curve_ranking

ORDERS = 3  # random orders of the training queries, over which a learning curve is averaged
REPEATABLE = ("RankSVM", "SGDRankSVM")  # estimators whose objective learning_curve_ranking fits
MOST_ITERATIONS = 200  # most iterations of the history in a report


def fit_of(model: Any) -> dict[str, Any] | None:
    """Return facts about the fit of a model (stop reason, objective, gap, …) and its history.

    Return None if the model does not come from a fit, for example if it was imported.
    """
    report: FitReport | None = getattr(model, "report", None)
    if report is None:
        return None
    rows = {
        "Stopped because": str(report.stop_reason.value),
        "Iterations": report.n_iter,
        "Pairs": report.n_pairs,
        "Pairs inside their margin": report.support_pairs,
        "Objective": report.objective,
        "Certified relative gap": _relative(report.gap, report.objective),
        "Estimated relative distance to the optimum": _known(relative_distance(report)),
        "Consecutive fits": report.n_rounds,
        "C": report.C,
        "Smoothness": report.smoothness,
        "Approximation error of the loss of each pair": report.loss_error or None,
        "Features that are constant within every query": len(report.without_effect) or None,
        "Note": report.note,
    }
    history = [
        {"iteration": line.iteration, "objective": line.objective, "gap": _known(line.gap)}
        for line in (report.history or [])[-MOST_ITERATIONS:]
        if isinstance(line, Iteration)
    ]
    return {
        "converged": report.stop_reason.converged,
        "rows": [[name, value] for name, value in rows.items() if value is not None],
        "history": history,
    }


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _relative(gap: float, objective: float) -> float | None:
    return _known(gap / objective) if objective > 0 else None


def learning_curve_of(
    model: Any, train: RankingData | None, test: RankingData, metric: Metric, seed: int
) -> dict[str, Any] | None:
    """Return the learning curve of a linear model with the parameters of its fit, or None.

    There is no curve without training data, nor for sparse and imported models, because their fits
    cannot be repeated on a part of the data.
    """
    is_repeatable = isinstance(model, LinearModel) and bool(model.parameters)
    if train is None or not is_repeatable or model.estimator not in REPEATABLE:
        return None
    names = {field.name for field in fields(Parameters)} - {"n_jobs", "random_state"}
    own = {name: value for name, value in model.parameters.items() if name in names}
    with warnings.catch_warnings():
        # Warnings about the fits of the learning curve would seem to be about the model's own fit.
        warnings.simplefilter("ignore")
        curve = learning_curve_ranking(
            train, validation=test, cv=ORDERS, metric=metric, random_state=seed, **own
        )
    return _described(curve)


def _described(curve: LearningCurve) -> dict[str, Any]:
    columns = zip(
        curve.sizes.tolist(),
        curve.train_mean.tolist(),
        curve.train_error.tolist(),
        curve.valid_mean.tolist(),
        curve.valid_error.tolist(),
        strict=True,
    )
    names = ("queries", "train", "train_error", "valid", "valid_error")
    return {
        "metric": curve.metric,
        "verdict": curve.verdict,
        "points": [dict(zip(names, row, strict=True)) for row in columns],
    }
