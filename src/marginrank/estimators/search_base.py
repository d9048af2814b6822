"""What estimators that choose their own parameters tell of the choice."""

from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from marginrank._utils.types import Floats
from marginrank.selection.selection import Candidate, Selection, named

NO_MODEL = (
    "refit=False leaves no model, only the choice of its parameters; set refit=True, or fit {} "
    "with best_params_."
)


class SearchLog:
    """Prints one line per fit of a search.

    Parameters
    ----------
    verbose : int
        Nothing is printed if it is zero.
    metric : str
        Name of the metric.
    varied : sequence of str
        Names of the parameters beside C that candidates differ in.
    """

    def __init__(self, verbose: int, metric: str, varied: Sequence[str]) -> None:
        self._is_silent = not verbose
        self._metric = metric
        self._names = ("C", *varied)
        self._n_fits = 0
        self._start = perf_counter()

    def add(self, candidate: Candidate) -> None:
        """Print the candidate of the fit that has just ended, with its mean score so far."""
        if self._is_silent:
            return
        self._n_fits += 1
        scores = candidate.scores[~np.isnan(candidate.scores)]
        mean = f"{scores.mean():.4f}" if scores.size else "undefined"
        print(
            f"fit {self._n_fits:4d}  {perf_counter() - self._start:8.3f} s  "
            f"{self._metric} {mean} on {candidate.tried.sum()} of {candidate.tried.size} folds  "
            f"{named(candidate.parameters, self._names)}",
            flush=True,
        )


def forget_model(estimator: Any, names: Iterable[str]) -> None:
    """Drop the model of an earlier fit, which this one may not replace."""
    for name in ("best_estimator_", *names):
        if hasattr(estimator, name):
            delattr(estimator, name)


def keep_selection(estimator: Any, selection: Selection) -> None:
    """Store what was tried, and what was chosen.

    Sets: ``selection_``, ``n_splits_``, ``cv_results_``, ``best_index_``, ``best_score_`` and
    ``best_params_``.
    """
    names = ("C", *selection.varied)
    params = [
        {name: getattr(candidate.parameters, name) for name in names}
        for candidate in selection.candidates
    ]
    estimator.selection_ = selection
    estimator.n_splits_ = selection.scores.shape[1]
    estimator.cv_results_ = _results(params, selection)
    estimator.best_index_ = selection.best
    estimator.best_score_ = float(selection.mean[selection.best])
    estimator.best_params_ = params[selection.best]


def _results(params: list[dict[str, Any]], selection: Selection) -> dict[str, Any]:
    """Return the scores as scikit-learn's GridSearchCV names them."""
    splits = {f"split{k}_test_score": scores for k, scores in enumerate(selection.scores.T)}
    has_score = ~np.isnan(selection.scores).all(axis=0)  # as the mean is over these folds
    return {
        **{f"param_{name}": _values(name, params) for name in params[0]},
        "params": params,
        **splits,
        "mean_test_score": selection.mean,
        "std_test_score": np.std(selection.scores[:, has_score], axis=1),
        "rank_test_score": _ranks(selection.mean),
    }


def _values(name: str, params: list[dict[str, Any]]) -> Any:
    """Return the values of a parameter, as GridSearchCV has them: none is masked."""
    listed = [one[name] for one in params]
    kind = float if all(isinstance(value, float) for value in listed) else object
    values = np.array(listed, dtype=kind)
    return np.ma.MaskedArray(values, mask=np.zeros(len(params), dtype=bool))


def _ranks(mean: Floats) -> Any:
    """Return 1 for the highest mean, the same rank for equals, and the last one for nan."""
    known = np.where(np.isnan(mean), -np.inf, mean)
    return 1 + np.sum(known[None, :] > known[:, None], axis=1)
