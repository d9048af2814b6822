"""Cross-validation of fusion weights, compared with fusion methods that are not trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from marginrank._utils.tables import ResultTable
from marginrank._utils.types import Booleans, Floats, Integers
from marginrank.fit.fusion import FusionParameters, FusionProblem, JudgedSignals
from marginrank.metrics.comparison import half_interval
from marginrank.models.fusion_model import FusionModel, QueryFeatures, signal_scores
from marginrank.models.fusion_parameters import check_normalizers

LEARNED, RRF, GRID, EQUAL = "learned", "RRF", "grid", "equal weights"
BASE = "learned, without query features"


@dataclass(frozen=True, repr=False)
class FusionEvaluation(ResultTable):
    """Cross-validated metric of learned fusion weights and of other fusion methods.

    Attributes
    ----------
    metric : str
        Name of the metric.
    per_query : dict
        One value per query for each method: "learned", "RRF" (reciprocal rank fusion), "equal
        weights", "grid" (the best weights of a regular grid), and each signal alone. All but "RRF"
        use the selected normalizer. The weights of "learned" and "grid" are fitted to the queries
        of the other folds.
    normalizers : dict
        Cross-validated mean of the metric with learned weights, for each normalizer.
    """

    metric: str
    per_query: dict[str, Floats]
    normalizers: dict[str, float]

    @property
    def n_queries(self) -> int:
        """Number of queries on which the fusion methods are evaluated."""
        return int(self.per_query[LEARNED].size)

    @property
    def means(self) -> dict[str, float]:
        """Mean of the metric over the queries for each fusion method."""
        return {name: float(np.mean(values)) for name, values in self.per_query.items()}

    @property
    def half_intervals(self) -> dict[str, float]:
        """Half the width of the 95% confidence interval of each fusion method's mean."""
        return {name: half_interval(values) for name, values in self.per_query.items()}

    @property
    def gains(self) -> dict[str, tuple[float, float]]:
        """Mean advantage of learned fusion over each other method, and half its 95% interval."""
        learned = self.per_query[LEARNED]
        return {
            name: (float(np.mean(learned - values)), half_interval(learned - values))
            for name, values in self.per_query.items()
            if name != LEARNED
        }

    @property
    def verdict(self) -> str:
        """Whether learned fusion is better than RRF (reciprocal rank fusion), in one sentence."""
        gain, half = self.gains[RRF]
        if abs(gain) <= half:
            return (
                f"No evidence in {self.n_queries} queries that learned weights beat RRF; keep RRF."
            )
        word = "better" if gain > 0 else "worse"
        end = "" if gain > 0 else "; keep RRF"
        return (
            f"Learned weights are {word} than RRF by {abs(gain):.3f} ± {half:.3f} {self.metric} "
            f"(95% interval, {self.n_queries} queries){end}."
        )

    def _columns(self) -> dict[str, Sequence[Any]]:
        values = self.per_query
        gains = {LEARNED: (0.0, 0.0)} | self.gains
        return {
            "method": list(values),
            self.metric: list(self.means.values()),
            "interval": list(self.half_intervals.values()),
            "learned_minus": [gains[name][0] for name in values],
            "learned_minus_interval": [gains[name][1] for name in values],
        }

    def _summary(self) -> str:
        return f"{self.metric} {self.means[LEARNED]:.4f}; {self.verdict}"


class FusionSelection(NamedTuple):
    """A fitted fusion model, and its cross-validated evaluation (None without cross-validation)."""

    model: FusionModel
    evaluation: FusionEvaluation | None


def select_fusion(
    judged: JudgedSignals,
    parameters: FusionParameters,
    *,
    query_features: QueryFeatures | None = None,
    seed: int = 0,
) -> FusionSelection:
    """Return fitted fusion weights; of several normalizers, one is selected by cross-validation."""
    names = check_normalizers(parameters.normalizer)
    problems = {name: FusionProblem(judged, parameters, name, query_features) for name in names}
    folds = _folds(len(judged.labels), parameters.cv, seed)
    if folds is None and len(names) > 1:
        raise ValueError(
            f"normalizer={names!r} has several names, of which cross-validation must select one; "
            "pass one name, or cv of at least 2 and at least 2 queries."
        )
    chosen, evaluation = names[0], None
    if folds is not None:
        held_out = {name: _held_out(one, one.fit, folds, seed) for name, one in problems.items()}
        chosen = max(names, key=lambda name: float(np.mean(held_out[name])))
        others = _alternatives(judged, parameters, problems[chosen], folds)
        if query_features:
            base = FusionProblem(judged, parameters, chosen)
            others[BASE] = _held_out(base, base.fit, folds, seed)
        evaluation = _evaluation(judged, parameters.metric, held_out, others, folds)
    weights = problems[chosen].fit(np.ones(len(judged.labels), dtype=bool), seed)
    return FusionSelection(problems[chosen].model(weights), evaluation)


def _folds(n_queries: int, cv: int, seed: int) -> Integers | None:
    """Return the fold of each query, or None without cross-validation."""
    n_folds = min(cv, n_queries)
    if n_folds < 2:
        return None
    return np.random.default_rng(seed).permutation(np.arange(n_queries) % n_folds)


def _held_out(
    problem: FusionProblem, fit: Callable[[Booleans, int], Floats], folds: Integers, seed: int
) -> Floats:
    """Return the metric of each query with weights that were fitted to the other folds."""
    values = np.empty(folds.size)
    for fold in range(folds.max() + 1):
        inside = folds == fold
        values[inside] = problem.values(fit(~inside, seed))[inside]
    return values


def _alternatives(
    judged: JudgedSignals, parameters: FusionParameters, problem: FusionProblem, folds: Integers
) -> dict[str, Floats]:
    """Return the metric of each query by baseline: RRF, equal weights, grid, single signals."""
    constant, depth = parameters.rrf_constant, parameters.depth
    by_rank = signal_scores(judged.data, judged.signals, "rrf", constant, depth)
    values = {
        RRF: judged.values(by_rank.sum(axis=1), parameters.metric),
        EQUAL: problem.values(problem.equal()),
        GRID: _held_out(problem, lambda used, _: problem.grid(used), folds, 0),
    }
    for k, signal in enumerate(judged.signals):
        values[f"{signal} alone"] = problem.values(problem.alone(k))
    return values


def _evaluation(
    judged: JudgedSignals,
    metric: str,
    held_out: dict[str, Floats],
    others: dict[str, Floats],
    folds: Integers,
) -> FusionEvaluation:
    """Return the evaluation; the normalizer of each fold is chosen on the other folds."""
    learned = np.empty(folds.size)
    for fold in range(folds.max() + 1):
        inside = folds == fold
        best = max(held_out, key=lambda name: float(np.mean(held_out[name][~inside])))
        learned[inside] = held_out[best][inside]
    nothing = np.zeros(judged.n_empty)  # without retrieved documents, every method has the value 0
    values = {LEARNED: learned} | others
    return FusionEvaluation(
        metric=metric,
        per_query={name: np.concatenate([one, nothing]) for name, one in values.items()},
        normalizers={name: float(np.mean([*one, *nothing])) for name, one in held_out.items()},
    )
