"""Model selection as a task: what to try, for how long, and what came of it.

Every combination of parameters is tried on a grid of C. If there is a budget of time, and no C are
given, the grids are coarse at first, and those after them are finer, around the best C so far.
Whatever ends the search, the best candidate that was judged on all folds is there to be fitted.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from marginrank._utils.parameters import (
    Mention,
    Message,
    ParameterError,
    check_choice,
    check_number,
    given,
)
from marginrank._utils.types import Floats, Integers
from marginrank.data.held_out import check_same_features
from marginrank.data.ranking_data import RankingData
from marginrank.fit.linear import RidgeParameters, seed_from
from marginrank.fit.scaling import blaming_features
from marginrank.metrics.comparison import Comparison
from marginrank.metrics.names import Metric
from marginrank.metrics.options import exceeds
from marginrank.models.fit_report import unfinished_message
from marginrank.selection.exploration import Count, Exploration, Space
from marginrank.selection.folds import Fold, check_folds, over_folds, query_folds
from marginrank.selection.judges import FoldJudge, HeldOutJudge, Judge
from marginrank.selection.selection import RULES, Candidate, Search, Selection

Clock = Callable[[], float]


class Progress(NamedTuple):
    """How far a search has come.

    Attributes
    ----------
    done : int
        Models of candidates that are fitted.
    planned : int or None
        How many there will be; None with a budget, as time decides.
    candidate : Candidate
        What was fitted last.
    best : Candidate or None
        The complete candidate with the highest mean so far, of the choice itself.
    mean : float
        That mean.
    outer_fold : int or None
        The fold that the choice is repeated without, if it is.
    """

    done: int
    planned: int | None
    candidate: Candidate
    best: Candidate | None
    mean: float
    outer_fold: int | None


@dataclass(frozen=True)
class Nested:
    """How good the choice is on queries that had no part in it.

    Attributes
    ----------
    parameters : list of RidgeParameters
        What was chosen without the queries of each fold.
    scores : ndarray of shape (n_folds,)
        The metric of its model on these queries; nan where it has no value.
    mean, error : float
        Mean over the folds, and its standard error.
    """

    parameters: list[RidgeParameters]
    scores: Floats
    mean: float
    error: float


@dataclass(frozen=True)
class Tuning:
    """What was chosen, and how sure that is.

    Attributes
    ----------
    selection : Selection
        The candidates, and the choice.
    rule : str
        What it was made by.
    parameters : RidgeParameters
        What to fit all data with.
    comparison : Comparison or None
        The chosen candidate against the runner-up, query by query.
    nested : Nested or None
        An estimate that is not too good to be true, if it was asked for and not interrupted.
    n_combinations, n_candidates : int
        How many there are to try, without finer grids.
    incomplete : list of Candidate
        Those that were begun, but not judged on all folds.
    is_out_of_time : bool
        Whether the budget ended the search.
    is_interrupted : bool
        Whether Ctrl-C did.
    n_fits, n_unfinished : int
        Fits, and those that did not come as close to the optimum as was asked for.
    """

    selection: Selection
    rule: str
    parameters: RidgeParameters
    comparison: Comparison | None
    nested: Nested | None
    n_combinations: int
    n_candidates: int
    incomplete: list[Candidate]
    is_out_of_time: bool
    is_interrupted: bool
    n_fits: int
    n_unfinished: int

    @property
    def n_tried(self) -> int:
        """Number of combinations with a complete candidate."""
        return len({candidate.combination for candidate in self.selection.candidates})

    @property
    def n_untried(self) -> int:
        """Number of candidates of the first grids that are not complete."""
        return max(self.n_candidates - len(self.selection.candidates), 0)

    def convergence_message(self) -> Message | None:
        """Return what to warn of, if some fits stopped early."""
        return unfinished_message(self.n_unfinished, self.n_fits, "fits of the search")

    def edge_message(self) -> Message | None:
        """Return what to warn of, if values of C beyond those of its grid may be better."""
        selection = self.selection
        best = int(np.nanargmax(selection.mean))
        combination, C = selection.candidates[best].place
        members = [
            k for k, one in enumerate(selection.candidates) if one.combination == combination
        ]
        members.sort(key=lambda k: selection.candidates[k].parameters.C)
        not_reached = [
            one.parameters.C for one in self.incomplete if one.combination == combination
        ]
        for name, ends, is_end in (
            ("smallest", members[:2], min(not_reached, default=np.inf) > C),
            ("largest", members[:-3:-1], max(not_reached, default=0.0) < C),
        ):
            is_best = is_end and len(ends) == 2 and ends[0] == best
            if is_best and _is_better(*selection.scores[ends]):
                told = f"the best C, {C:.4g}, is the {name} that was tried; try "
                return Message(told, f"{name[:-2]}r ones with ", Mention("C"), ".")
        return None


def tune(
    data: RankingData,
    space: Space,
    *,
    validation: RankingData | None = None,
    n_folds: int = 5,
    metric: str | Metric = "ndcg@10",
    rule: str = "best",
    nested: bool = False,
    budget: float | None = None,
    random_state: int = 0,
    clock: Clock = time.monotonic,
    on_trial: Callable[[Progress], None] | None = None,
) -> Tuning:
    """Choose parameters by how models rank queries that they have not seen.

    Ctrl-C ends the search, and the choice is among what was complete by then; if nothing was,
    KeyboardInterrupt is raised.

    Parameters
    ----------
    data : RankingData
        The documents to learn from.
    space : Space
        What to choose from.
    validation : RankingData, optional
        Documents to judge by, instead of folds.
    n_folds : int
        Number of folds of whole queries.
    metric : str or callable
        As :func:`~marginrank.metrics.get_metric` takes it.
    rule : {"best", "one_se"}
        See :meth:`~marginrank.selection.selection.Search.selection`.
    nested : bool
        Repeat the choice without the queries of each fold, and judge what is chosen on them.
    budget : float, optional
        Seconds for the search, `nested` included: it begins with coarse grids, and goes on with
        finer ones around the best C, unless the values of C are given. It ends with the fit that is
        under way when time is up, and not before one candidate is complete.
    random_state : int
        Seed of the folds, and of the samples that speed up the fits.
    clock : callable
        Returns seconds.
    on_trial : callable, optional
        Called after each fit.
    """
    _check(validation, rule, nested=nested, budget=budget)
    check_same_features(validation, data.n_features, data.feature_names)
    tuner = Tuner(data, space, metric, rule, seed_from(random_state), clock, on_trial)
    judge: Judge
    outer: list[OuterFold] = []
    if validation is not None:
        judge = HeldOutJudge(validation, metric, space.base.n_jobs, space.learner)
    else:
        folds = tuner.folds(n_folds)
        judge = tuner.judge(folds)
        if nested:
            outer = [OuterFold(fold, tuner.inner_folds(fold, n_folds)) for fold in folds]
    with blaming_features(C=space.Cs):
        return tuner.tune(judge, outer, budget)


def _is_better(scores: Floats, others: Floats) -> bool:
    """Tell whether scores on the same parts are higher, on average by more than an error."""
    gains = (scores - others)[~np.isnan(scores - others)]
    if not gains.size:
        return False
    error = gains.std(ddof=1) / np.sqrt(gains.size) if gains.size > 1 else 0.0
    return bool(exceeds(scores, others).any() and gains.mean() > error)


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


class OuterFold(NamedTuple):
    """A fold, and the folds of its training rows."""

    fold: Fold
    inner: list[Fold]


@dataclass
class Tuner:
    """Chooses parameters, once from all folds, and again without each."""

    data: RankingData
    space: Space
    metric: str | Metric
    rule: str
    seed: int
    clock: Clock
    on_trial: Callable[[Progress], None] | None

    def folds(self, n_folds: int, rows: Integers | None = None) -> list[Fold]:
        """Divide all documents, or some."""
        folds = query_folds(self.data, n_folds, seed=self.seed, rows=rows)
        check_folds(self.data, folds)
        return folds

    def inner_folds(self, fold: Fold, n_folds: int) -> list[Fold]:
        """Divide the training rows of a fold."""
        try:
            return self.folds(n_folds, fold.train)
        except ValueError as error:
            raise ParameterError(
                Mention("nested"), f" divides what fold {fold.number} leaves once more: {error}"
            ) from None

    def judge(self, folds: Sequence[Fold]) -> FoldJudge:
        """Judge by folds."""
        space = self.space
        return FoldJudge(self.data, folds, self.metric, space.base.n_jobs, space.learner)

    def tune(self, judge: Judge, outer: Sequence[OuterFold], budget: float | None) -> Tuning:
        """Choose, and if there are outer folds, estimate how good the choice is."""
        share = None if budget is None else budget / (1 + len(outer))
        n_points = self.space.points(coarse=budget is not None)
        n_candidates = self.space.n_candidates(n_points)
        n_parts = len(judge.parts) + sum(len(one.inner) for one in outer)
        count = Count(n_candidates * n_parts if budget is None else None)
        run = self._exploration(judge, share)
        nested, is_interrupted = None, False
        try:
            for candidate in run.explore(self.space.grids(self.data, n_points, None), count):
                self._report(run, count, candidate)
            if outer:
                nested = self._estimate(outer, share, run, count)
        except KeyboardInterrupt:
            if not run.has_complete:
                raise
            is_interrupted = True
        selection = run.search.selection(self.rule)
        return Tuning(
            selection,
            self.rule,
            replace(selection.parameters, tol=self.space.base.tol),
            run.search.compare(selection),
            nested,
            len(self.space.combinations),
            n_candidates,
            [candidate for candidate in run.search.candidates if not candidate.is_complete],
            run.is_out_of_time,
            is_interrupted,
            count.done,
            count.unfinished,
        )

    def _exploration(self, judge: Judge, seconds: float | None) -> Exploration:
        """Return a search that begins now."""
        space = self.space
        search = Search(
            self.data, judge, varied=space.varied, seed=self.seed, learner=space.learner
        )
        if seconds is None:
            return Exploration(search, None, refines=False, room=space.room)
        end, refines = self.clock() + seconds, space.Cs is None
        return Exploration(search, lambda: self.clock() >= end, refines=refines, room=space.room)

    def _report(
        self,
        run: Exploration,
        count: Count,
        candidate: Candidate,
        outer_fold: int | None = None,
    ) -> None:
        if self.on_trial is not None:
            self.on_trial(
                Progress(count.done, count.planned, candidate, run.best, run.mean, outer_fold)
            )

    def _estimate(
        self, outer: Sequence[OuterFold], seconds: float | None, main: Exploration, count: Count
    ) -> Nested:
        """Choose without the queries of each fold, and judge what is chosen on them."""
        judge = self.judge([one.fold for one in outer])
        n_points = self.space.points(coarse=seconds is not None)
        chosen, scores = [], np.full(len(outer), np.nan)
        for k, (fold, inner) in enumerate(outer):
            run = self._exploration(self.judge(inner), seconds)
            grids = self.space.grids(self.data, n_points, fold.train)
            for candidate in run.explore(grids, count):
                self._report(main, count, candidate, fold.number)
            best = run.search.selection(self.rule).parameters
            grid = np.array([best.C])
            (learned,) = self.space.learner.solve(
                self.data, best, grid, [fold.train], seed=self.seed
            )
            scores[k] = judge.score(k, learned.model)
            chosen.append(best)
        mean, error = over_folds(scores, judge.metric)
        return Nested(chosen, scores, float(mean), float(error))
