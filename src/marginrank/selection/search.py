"""The search driver: fits candidates, scores them on splits, and selects one.

Every combination of parameters is tried on a grid of one more parameter, such as C. With a time
limit and default grids, these are coarse at first, and finer ones follow around the best value so
far. Whatever ends the search, the best candidate that was scored on all splits is selected.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from marginrank._utils.parameters import (
    Mention,
    ParameterError,
    check_choice,
    check_number,
    given,
)
from marginrank._utils.types import Floats, Integers
from marginrank.data.held_out import check_same_features
from marginrank.data.ranking_data import RankingData
from marginrank.fit.scaling import blaming_features
from marginrank.metrics.names import Metric
from marginrank.metrics.options import exceeds
from marginrank.models.fit_report import is_close
from marginrank.selection.folds import Fold, check_folds, folds_of, over_folds, query_folds
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


class FitCount:
    """Number of fits, of those that did not reach tol, and of planned ones (None if unknown)."""

    def __init__(self, planned: int | None = None) -> None:
        self.done = 0
        self.unfinished = 0
        self.planned = planned

    def plan(self, n_fits: int) -> None:
        """Expect more fits."""
        if self.planned is not None:
            self.planned += n_fits


class Search:
    """Fits and scores the candidates of a space, grid after grid.

    It can be left at any time: the candidates that are complete by then can be selected.

    Parameters
    ----------
    data : RankingData
        The documents.
    space : SearchSpace
        The candidates.
    scorer : SplitScorer
        Splits and metric.
    seed : int
        Seed of the samples that speed up the fits.
    rows : ndarray, optional
        The documents that default grids depend on; all by default.
    is_time_up : callable, optional
        Returns whether to stop. With it, default grids are coarse, and finer ones follow.
    count : FitCount, optional
        Counts the fits.

    Attributes
    ----------
    candidates : list of Candidate
        Those of all grids so far.
    best : Candidate or None
        The complete candidate that would be selected by now.
    mean : float
        Its mean over the splits that have a value.
    has_complete : bool
        Whether there is a complete candidate.
    is_out_of_time : bool
        Whether the time limit ended the search.
    metric : str
        Name of the metric.
    """

    def __init__(
        self,
        data: RankingData,
        space: SearchSpace,
        scorer: SplitScorer,
        *,
        seed: int = 0,
        rows: Integers | None = None,
        is_time_up: Callable[[], bool] | None = None,
        count: FitCount | None = None,
    ) -> None:
        self.candidates: list[Candidate] = []
        self.best: Candidate | None = None
        self.mean = -np.inf
        self.has_complete = False
        self.is_out_of_time = False
        self.count = FitCount() if count is None else count
        self.metric = scorer.metric
        self._models: dict[Candidate, dict[int, Any]] = {}
        self._data = data
        self._space = space
        self._scorer = scorer
        self._seed = seed
        self._rows = rows
        self._is_time_up = is_time_up

    def run(self) -> Iterator[Candidate]:
        """Fit and score the candidates; yield the candidate after each fit."""
        for grid in self._grids():
            for candidate in self.try_grid(grid):
                if candidate.is_complete:
                    self._update_best(candidate)
                yield candidate
                if self.has_complete and self._is_time_up is not None and self._is_time_up():
                    self.is_out_of_time = True
                    return

    def try_grid(self, grid: PathGrid) -> Iterator[Candidate]:
        """Fit and score the candidates of one grid; yield the candidate after each fit."""
        learner, parts = self._space.learner, self._scorer.parts
        first = len(self.candidates)
        for value in map(float, grid.values):
            parameters = learner.with_value(grid.parameters, value)
            scores, tried = np.full(len(parts), np.nan), np.zeros(len(parts), dtype=bool)
            self.candidates.append(Candidate(grid.combination, parameters, value, scores, tried))
        fitted = learner.fit_paths(self._data, grid.parameters, grid.values, parts, seed=self._seed)
        for found in fitted:
            candidate = self.candidates[first + found.step]
            candidate.scores[found.part] = self._scorer.score(found.part, found.model)
            candidate.tried[found.part] = True
            self._models.setdefault(candidate, {})[found.part] = found.model
            self.count.done += 1
            self.count.unfinished += not is_close(found.result, grid.parameters.tol)
            yield candidate

    def models(self, candidate: Candidate) -> list[Any]:
        """Return the model of each split of a complete candidate."""
        by_part = self._models[candidate]
        return [by_part[part] for part in range(len(by_part))]

    def result(self, rule: str = "best", *, compare: bool = True) -> SearchResult:
        """Select one of the complete candidates; see :func:`find_best` for the rules.

        With `compare` it is compared with the runner-up.
        """
        complete = [candidate for candidate in self.candidates if candidate.is_complete]
        if not complete:
            raise ValueError("no candidate was scored on all folds; give the search more time.")
        scores = np.array([candidate.scores for candidate in complete])
        mean, error = over_folds(scores, self.metric)
        best = find_best(complete, mean, error, rule)
        other = find_runner_up(mean, best) if compare else None
        comparison = None
        if other is not None:
            pair = (self.models(complete[k]) for k in (best, other))
            comparison = self._scorer.compare(*pair)
        space = self._space
        return SearchResult(
            metric=self.metric,
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
            n_candidates=space.n_candidates(coarse=self._is_time_up is not None),
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
        """Yield the grids of the space, then finer ones if there is a time limit."""
        is_limited = self._is_time_up is not None
        grids = self._space.grids(self._data, self._rows, coarse=is_limited)
        room = self._space.room
        first = grids if room is None else self._one_at_a_time(grids, room)
        return chain(first, self._finer() if is_limited and self._space.values is None else ())

    def _one_at_a_time(
        self, grids: Iterator[PathGrid], room: tuple[float, float]
    ) -> Iterator[PathGrid]:
        """Yield the first grid, and one value of each other; extend while an end is the best."""
        ends: dict[int, tuple[float, float]] = {}
        for grid in grids:
            ends[grid.combination] = float(grid.values[0]), float(grid.values[-1])
            if self.best is not None:
                # A value may mean something else here: what counts is its position on the grid.
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
                self.count.plan(best.tried.size)
                yield PathGrid(best.combination, best.parameters, np.array([value_beyond]))

    def _finer(self) -> Iterator[PathGrid]:
        """Yield grids around the best value, each twice as fine, until that has no effect."""
        while self.best is not None:
            best = self.best
            between = midpoints(self._tried(best), best.value)
            if not between.size:
                return
            yield PathGrid(best.combination, best.parameters, between)

    def _tried(self, candidate: Candidate) -> Floats:
        """Return the values of all candidates of the same combination, ascending."""
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
    """Select parameters by the scores of models on queries that they were not trained on.

    Parameters
    ----------
    data : RankingData
        The documents to train on.
    space : SearchSpace
        The candidates.
    cv : int, splitter or iterable of (train, test)
        See :func:`~marginrank.selection.folds.folds_of`.
    validation : RankingData, optional
        Documents to score models of all data on, instead of folds.
    metric : str or callable
        As :func:`~marginrank.metrics.get_metric` takes it.
    rule : {"best", "one_se"}
        See :func:`~marginrank.selection.results.find_best`.
    nested : bool
        Repeat the search without the queries of each fold, and score its result on them.
    budget : float, optional
        Seconds for the search, `nested` included. It ends with the fit that is under way when time
        is up, and not before one candidate is complete.
    seed : int
        Seed of the folds, and of the samples that speed up the fits.
    clock : callable
        Returns seconds.
    on_fit : callable, optional
        Called after each fit.
    keep_interrupted : bool
        Whether Ctrl-C selects among the candidates that are complete by then. If there is none, and
        by default, KeyboardInterrupt is raised.
    """
    _check(validation, rule, nested=nested, budget=budget)
    check_same_features(validation, data.n_features, data.feature_names)
    driver = _Driver(data, space, metric, rule, seed, clock, on_fit)
    folds = [] if validation is not None else folds_of(data, cv, seed)
    splits = fold_splits(data, folds) if validation is None else [Split(None, validation)]
    outer = [(fold, _inner_folds(data, fold, len(folds), seed)) for fold in folds if nested]
    with blaming_features(C=space.values):
        return driver.run(splits, outer, budget, keep_interrupted=keep_interrupted)


def _check(
    validation: RankingData | None, rule: str, *, nested: bool, budget: float | None
) -> None:
    check_choice("rule", rule, RULES)
    if budget is not None:
        check_number("budget", budget)
    if validation is None:
        return
    if rule == "one_se":
        raise ParameterError(given("rule", rule), " needs folds, and there is validation data.")
    if nested:
        raise ParameterError(Mention("nested"), " needs folds, and there is validation data.")


def _inner_folds(data: RankingData, fold: Fold, n_folds: int, seed: int) -> list[Fold]:
    """Divide the training rows of a fold."""
    try:
        folds = query_folds(data, n_folds, seed=seed, rows=fold.train)
        check_folds(data, folds)
    except ValueError as error:
        raise ParameterError(
            Mention("nested"), f" divides the training rows of fold {fold.number} again: {error}"
        ) from None
    return folds


class _Driver(NamedTuple):
    """Runs a search on all data, and again without each fold."""

    data: RankingData
    space: SearchSpace
    metric: str | Metric
    rule: str
    seed: int
    clock: Callable[[], float]
    on_fit: Callable[[SearchProgress], None] | None

    def run(
        self,
        splits: Sequence[Split],
        outer: Sequence[tuple[Fold, list[Fold]]],
        budget: float | None,
        *,
        keep_interrupted: bool,
    ) -> SearchResult:
        """Search, and if there are outer folds, estimate how good the result is."""
        seconds = None if budget is None else budget / (1 + len(outer))
        count = FitCount()
        if budget is None:
            n_splits = len(splits) + sum(len(inner) for _, inner in outer)
            count.planned = self.space.n_candidates(coarse=False) * n_splits
        main = self._search(splits, seconds, count)
        nested, is_interrupted = None, False
        try:
            for candidate in main.run():
                self._report(main, candidate)
            if outer:
                nested = self._estimate(outer, seconds, main)
        except KeyboardInterrupt:
            if not (keep_interrupted and main.has_complete):
                raise
            is_interrupted = True
        return replace(main.result(self.rule), nested=nested, is_interrupted=is_interrupted)

    def _scorer(self, splits: Sequence[Split]) -> SplitScorer:
        return SplitScorer(splits, self.metric, self.space.base.n_jobs, self.space.learner)

    def _search(
        self,
        splits: Sequence[Split],
        seconds: float | None,
        count: FitCount,
        rows: Integers | None = None,
    ) -> Search:
        """Return a search that begins now."""
        is_time_up = None
        if seconds is not None:
            end = self.clock() + seconds
            is_time_up = lambda: self.clock() >= end  # noqa: E731
        return Search(
            self.data,
            self.space,
            self._scorer(splits),
            seed=self.seed,
            rows=rows,
            is_time_up=is_time_up,
            count=count,
        )

    def _report(self, main: Search, candidate: Candidate, outer_fold: int | None = None) -> None:
        if self.on_fit is not None:
            self.on_fit(
                SearchProgress(
                    main.count.done,
                    main.count.planned,
                    candidate,
                    main.best,
                    main.mean,
                    main.metric,
                    outer_fold,
                )
            )

    def _estimate(
        self, outer: Sequence[tuple[Fold, list[Fold]]], seconds: float | None, main: Search
    ) -> NestedEstimate:
        """Search without the queries of each fold, and score the result on them."""
        scorer = self._scorer(fold_splits(self.data, [fold for fold, _ in outer]))
        selected, scores = [], np.full(len(outer), np.nan)
        for k, (fold, inner) in enumerate(outer):
            splits = fold_splits(self.data, inner)
            search = self._search(splits, seconds, main.count, fold.train)
            for candidate in search.run():
                self._report(main, candidate, fold.number)
            result = search.result(self.rule, compare=False)
            best = result.candidates[result.best_index]
            (fitted,) = self.space.learner.fit_paths(
                self.data, best.parameters, np.array([best.value]), [fold.train], seed=self.seed
            )
            scores[k] = scorer.score(k, fitted.model)
            selected.append(best.parameters)
        mean, error = over_folds(scores, scorer.metric)
        return NestedEstimate(selected, scores, float(mean), float(error))
