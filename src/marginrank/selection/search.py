"""Search over parameters: fits candidates, scores them on folds, and selects one.

Every combination of parameters is tried on a grid of one more parameter, such as C. With a time
limit, default grids are coarse at first, and finer grids around the best value follow. However the
search ends, it selects the best candidate that was scored on all folds.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from marginrank._utils.parameters import Mention, ParameterError, check_choice, check_number, given
from marginrank._utils.types import Floats, Integers
from marginrank.data.held_out import check_same_features
from marginrank.data.ranking_data import RankingData
from marginrank.fit.positions import check_no_positions
from marginrank.fit.scaling import Scale, blaming_features
from marginrank.metrics.names import Metric
from marginrank.metrics.options import exceeds
from marginrank.models.fit_report import StopReason, is_close
from marginrank.selection.folds import Fold, check_folds, folds_of, over_folds, query_folds
from marginrank.selection.leave_one_out import LOO, leave_one_out_learner
from marginrank.selection.results import (
    RULES,
    Candidate,
    NestedEstimate,
    SearchProgress,
    SearchResult,
    find_best,
    find_runner_up,
)
from marginrank.selection.scoring import Split, SplitScorer, fold_splits
from marginrank.selection.space import PathGrid, SearchSpace, beyond, midpoints, without_noise


@dataclass
class FitCount:
    """Number of finished and planned fits of models, over one or several searches."""

    planned: int | None = None  # number of planned fits; None if unknown
    done: int = 0
    unfinished: int = 0  # number of fits that did not reach tol


class SplitFit(NamedTuple):
    """Result of one fit of a search: the model, and how close it is to the optimum."""

    model: Any
    scale: Scale | None
    objective: float
    gap: float
    stop_reason: StopReason
    seconds: float


@dataclass(eq=False)
class Search:
    """Fits and scores all parameter settings of a search space on folds or validation data.

    It can be stopped at any time: a setting is then selected from all that were scored on every
    fold.
    """

    data: RankingData
    space: SearchSpace
    scorer: SplitScorer
    seed: int = 0  # seed of the samples that speed up the fits
    rows: Integers | None = None  # rows from which default grids are derived; None for all
    is_time_up: Callable[[], bool] | None = None  # time limit; if given, grids are coarse at first
    count: FitCount = field(default_factory=FitCount)
    # Candidates of all grids so far.
    candidates: list[Candidate] = field(default_factory=list, init=False)
    best: Candidate | None = field(default=None, init=False)  # best complete candidate so far
    mean: float = field(default=-np.inf, init=False)  # mean score of the best candidate
    has_complete: bool = field(default=False, init=False)
    is_out_of_time: bool = field(default=False, init=False)
    _fits: dict[Candidate, dict[int, SplitFit]] = field(default_factory=dict, init=False)

    def run(self) -> Iterator[Candidate]:
        """Fit and score all parameter settings; after each fit, yield its setting (Candidate)."""
        for grid in self._grids():
            for candidate in self.try_grid(grid):
                if candidate.is_complete:
                    self._update_best(candidate)
                yield candidate
                if self.has_complete and self.is_time_up is not None and self.is_time_up():
                    self.is_out_of_time = True
                    return

    def try_grid(self, grid: PathGrid) -> Iterator[Candidate]:
        """Fit and score the parameter settings of one grid; after each fit, yield a Candidate."""
        learner, parts = self.space.learner, self.scorer.parts
        first = len(self.candidates)
        for value in map(float, grid.values):
            parameters = learner.with_value(grid.parameters, value)
            scores, tried = np.full(len(parts), np.nan), np.zeros(len(parts), dtype=bool)
            self.candidates.append(Candidate(grid.combination, parameters, value, scores, tried))
        begin = time.perf_counter()
        fitted = learner.fit_paths(self.data, grid.parameters, grid.values, parts, seed=self.seed)
        for part, step, result, model, scale in fitted:
            seconds = time.perf_counter() - begin
            reached = (result.objective, result.gap, result.stop_reason)
            candidate = self.candidates[first + step]
            self._fits.setdefault(candidate, {})[part] = SplitFit(model, scale, *reached, seconds)
            candidate.scores[part] = self.scorer.score(part, model)
            candidate.tried[part] = True
            self.count.done += 1
            self.count.unfinished += not is_close(result, grid.parameters.tol)
            yield candidate
            begin = time.perf_counter()

    def fits(self, candidate: Candidate) -> list[SplitFit]:
        """Return the fits of one parameter setting, one per fold; all folds must be scored."""
        by_part = self._fits[candidate]
        return [by_part[part] for part in range(len(by_part))]

    def models(self, candidate: Candidate) -> list[Any]:
        """Return the models of one parameter setting, one per fold; all folds must be scored."""
        return [fit.model for fit in self.fits(candidate)]

    def result(self, rule: str = "best", *, compare: bool = True) -> SearchResult:
        """Return the result of the search so far, with one selected candidate.

        It is selected among the candidates that were scored on all folds, by :func:`find_best`.
        With `compare`, the result compares it with the second best.
        """
        complete = [candidate for candidate in self.candidates if candidate.is_complete]
        if not complete:
            raise ValueError("no candidate was scored on all folds; give the search more time.")
        metric, space = self.scorer.metric, self.space
        scores = np.array([candidate.scores for candidate in complete])
        mean, error = over_folds(scores, metric)
        best = find_best(complete, mean, error, rule)
        other = find_runner_up(mean, best) if compare else None
        comparison = None
        if other is not None:
            comparison = self.scorer.compare(*(self.models(complete[k]) for k in (best, other)))
        return SearchResult(
            metric=metric,
            rule=rule,
            parameter=space.learner.parameter,
            varied=tuple(space.varied),
            candidates=complete,
            incomplete=[candidate for candidate in self.candidates if not candidate.is_complete],
            scores=scores,
            mean=mean,
            error=error,
            best_index=best,
            parameters=replace(complete[best].parameters, tol=space.base.tol),
            n_combinations=len(space.combinations),
            n_candidates=space.n_candidates(coarse=self.is_time_up is not None),
            n_fits=self.count.done,
            n_unfinished=self.count.unfinished,
            comparison=comparison,
            is_out_of_time=self.is_out_of_time,
        )

    def _update_best(self, candidate: Candidate) -> None:
        self.has_complete = True
        mean = candidate.mean
        if np.isnan(mean):
            return
        is_equal = not exceeds(self.mean, mean)
        if (
            self.best is None
            or exceeds(mean, self.mean)
            or (is_equal and candidate.position < self.best.position)
        ):
            self.best, self.mean = candidate, max(mean, self.mean)

    def _grids(self) -> Iterator[PathGrid]:
        """Yield the grids of the space, then finer grids if there is a time limit."""
        is_limited = self.is_time_up is not None
        grids = self.space.grids(self.data, self.rows, coarse=is_limited)
        room = self.space.room
        first = grids if room is None else self._one_at_a_time(grids, room)
        return chain(first, self._finer() if is_limited and self.space.values is None else ())

    def _one_at_a_time(
        self, grids: Iterator[PathGrid], room: tuple[float, float]
    ) -> Iterator[PathGrid]:
        """Yield the first grid, then one value of each other grid.

        After each of them, the grid of the best value is extended while this value is at its end.
        """
        ends: dict[int, tuple[float, float]] = {}
        for grid in grids:
            ends[grid.combination] = float(grid.values[0]), float(grid.values[-1])
            if self.best is not None:
                # A value of C has different effects in different combinations, so compare
                # positions on the grids.
                factor = self.best.value / ends[self.best.combination][0]
                value = without_noise(ends[grid.combination][0] * factor)
                grid = grid._replace(values=np.array([value]))
            yield grid
            while self.best is not None:
                best = self.best
                tried = self._tried(best)
                value_beyond = beyond(tried, best.value, ends[best.combination], room)
                if value_beyond is None:
                    break
                if self.count.planned is not None:
                    self.count.planned += best.tried.size
                yield PathGrid(best.combination, best.parameters, np.array([value_beyond]))

    def _finer(self) -> Iterator[PathGrid]:
        """Yield grids that halve the steps around the best value, until values are too close."""
        while self.best is not None:
            best = self.best
            between = midpoints(self._tried(best), best.value)
            if not between.size:
                return
            yield PathGrid(best.combination, best.parameters, between)

    def _tried(self, candidate: Candidate) -> Floats:
        """Return all values tried with the candidate's combination, ascending."""
        own = candidate.combination
        return np.sort([one.value for one in self.candidates if one.combination == own])


def run_search(
    data: RankingData,
    space: SearchSpace,
    *,
    cv: Any = 5,
    validation: RankingData | None = None,
    metric: str | Metric = "ndcg@10",
    rule: str = "best",
    nested: bool = False,
    budget: float | None = None,
    seed: int = 0,
    clock: Callable[[], float] = time.monotonic,
    on_fit: Callable[[SearchProgress], None] | None = None,
    keep_interrupted: bool = False,
) -> SearchResult:
    """Search for the parameters whose models have the best scores on queries not trained on.

    Models are trained without each fold of `cv` and scored on it (see
    :func:`~marginrank.selection.folds.folds_of`). With `validation`, models are trained on all data
    and scored on the validation data. With ``cv="loo"``, scores are leave-one-query-out estimates,
    see :func:`~marginrank.fit.query_influence.leave_one_out`. `rule` selects a candidate by its
    scores, see :func:`~marginrank.selection.results.find_best`.

    Parameters
    ----------
    nested : bool
        Also repeat the search without the queries of each fold, and score the selected model on
        this fold: the mean is an unbiased estimate, unlike the score of the best candidate.
    budget : float, optional
        Seconds for the search, `nested` included. When they are over, the search stops after the
        current fit, or as soon as one candidate has been scored on all folds.
    seed : int
        Seed of the folds, and of the samples that speed up the fits.
    on_fit : callable, optional
        Called after each fit.
    keep_interrupted : bool
        If True, Ctrl-C ends the search, and a candidate is selected that was scored on all folds.
        By default, and if there is no such candidate, KeyboardInterrupt is raised.
    """
    check_choice("rule", rule, RULES)
    if budget is not None:
        check_number("budget", budget)
    is_loo = validation is None and isinstance(cv, str) and cv == LOO
    if (validation is not None or is_loo) and (rule == "one_se" or nested):
        needs = given("rule", rule) if rule == "one_se" else Mention("nested")
        other = given("cv", cv) if is_loo else "validation data"
        raise ParameterError(needs, " requires folds and cannot be combined with ", other, ".")
    if is_loo:  # this learner's scores need no folds
        space, validation = replace(space, learner=leave_one_out_learner(space.learner)), data
    elif validation is not None:
        check_no_positions(validation, "Validation data")
    check_same_features(validation, data.n_features, data.feature_names)
    folds = [] if validation is not None else folds_of(data, cv, seed)
    splits = fold_splits(data, folds) if validation is None else [Split(None, validation)]
    outer = [(fold, _inner_folds(data, fold, len(folds), seed)) for fold in folds if nested]
    n_splits = len(splits) + sum(len(inner) for _, inner in outer)
    n_fits = None if budget is not None else space.n_candidates(coarse=False) * n_splits
    seconds = None if budget is None else budget / (1 + len(outer))
    driver = _Driver(data, space, metric, rule, seed, seconds, clock, FitCount(n_fits), on_fit)
    with blaming_features(C=space.values):
        return driver.run(splits, outer, keep_interrupted=keep_interrupted)


def _inner_folds(data: RankingData, fold: Fold, n_folds: int, seed: int) -> list[Fold]:
    try:
        folds = query_folds(data, n_folds, seed=seed, rows=fold.train)
        check_folds(data, folds)
    except ValueError as error:
        raise ParameterError(
            Mention("nested"),
            f" cross-validation cannot split the training rows of fold {fold.number}: {error}",
        ) from None
    return folds


@dataclass(frozen=True)
class _Driver:
    """Runs the main search and, for nested cross-validation, one search without each fold."""

    data: RankingData
    space: SearchSpace
    metric: str | Metric
    rule: str
    seed: int
    seconds: float | None  # time limit of each search
    clock: Callable[[], float]
    count: FitCount
    on_fit: Callable[[SearchProgress], None] | None

    def run(
        self,
        splits: Sequence[Split],
        outer: Sequence[tuple[Fold, list[Fold]]],
        *,
        keep_interrupted: bool,
    ) -> SearchResult:
        main = self._start(splits)
        nested, is_interrupted = None, False
        try:
            self._finish(main, main)
            if outer:
                nested = self._estimate(outer, main)
        except KeyboardInterrupt:
            if not (keep_interrupted and main.has_complete):
                raise
            is_interrupted = True
        return replace(main.result(self.rule), nested=nested, is_interrupted=is_interrupted)

    def _scorer(self, splits: Sequence[Split]) -> SplitScorer:
        return SplitScorer(splits, self.metric, self.space.base.n_jobs, self.space.learner)

    def _start(self, splits: Sequence[Split], rows: Integers | None = None) -> Search:
        is_time_up = None
        if self.seconds is not None:
            end = self.clock() + self.seconds
            is_time_up = lambda: self.clock() >= end  # noqa: E731
        return Search(
            self.data,
            self.space,
            self._scorer(splits),
            seed=self.seed,
            rows=rows,
            is_time_up=is_time_up,
            count=self.count,
        )

    def _finish(self, search: Search, main: Search, outer_fold: int | None = None) -> None:
        for candidate in search.run():
            if self.on_fit is not None:
                done, planned, metric = self.count.done, self.count.planned, search.scorer.metric
                best, mean = main.best, main.mean
                self.on_fit(
                    SearchProgress(done, planned, candidate, best, mean, metric, outer_fold)
                )

    def _estimate(self, outer: Sequence[tuple[Fold, list[Fold]]], main: Search) -> NestedEstimate:
        """Return scores of nested searches: each leaves out one fold and is scored on that fold."""
        scorer = self._scorer(fold_splits(self.data, [fold for fold, _ in outer]))
        selected, scores = [], np.full(len(outer), np.nan)
        for k, (fold, inner) in enumerate(outer):
            search = self._start(fold_splits(self.data, inner), fold.train)
            self._finish(search, main, fold.number)
            result = search.result(self.rule, compare=False)
            best = result.candidates[result.best_index]
            (fitted,) = self.space.learner.fit_paths(
                self.data, best.parameters, np.array([best.value]), [fold.train], seed=self.seed
            )
            scores[k] = scorer.score(k, fitted.model)
            selected.append(best.parameters)
        mean, error = over_folds(scores, scorer.metric)
        return NestedEstimate(selected, scores, float(mean), float(error))
