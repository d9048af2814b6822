"""NDCG@k as the goal: convex problems one after the other, each weighted by the rankings so far.

What a pair is worth to NDCG@k depends on where its documents are ranked. The first problem takes an
ideal ranking (``pair_cost="ndcg"``). Each further one takes the discounts that the documents had in
the rankings so far, on average, and starts from the last weights. So it is always a sum over pairs
that are never written down. The mean damps what would otherwise go back and forth between
rankings, and all problems have the weight of the first, so that C means the same in each.

Nothing here knows what the weights are weights of: whoever fits says how to choose pairs by their
weights, how to solve, and how to score.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from marginrank._utils.types import Floats
from marginrank.data.ranking_data import RankingData
from marginrank.fit.pairs import Preferences
from marginrank.metrics.cumulative_gain import discounts, ndcg
from marginrank.metrics.options import exceeds
from marginrank.metrics.ranking import Ranking
from marginrank.models.fit_report import FitReport, Iteration, StopReason
from marginrank.objective.pair_weights import PairFactors, top_difference
from marginrank.solvers.result import Callback

Solution = tuple[Floats, FitReport]  # weights of the unscaled features, and how they were found

MOST_ROUNDS = 10
PATIENCE = 3  # problems in a row that rank no better, after which there is no other
CUT_SHORT = (StopReason.INTERRUPTED, StopReason.FAILED)


class Choose(Protocol):
    """Returns the pairs with weights of their own, or those of the first problem."""

    def __call__(self, factors: PairFactors | None = None) -> Preferences:
        """Choose the pairs."""


class Solve(Protocol):
    """Minimises the loss on some pairs."""

    def __call__(self, chosen: Preferences, w0: Floats | None, callback: Callback) -> Solution:
        """Start from `w0`."""


class Problems(NamedTuple):
    """What rounds need to know of a learner.

    Attributes
    ----------
    choose : Choose
        Chooses pairs by their weights.
    solve : Solve
        Minimises the loss on them.
    score : callable
        Returns the scores of the rows of the data, given weights.
    """

    choose: Choose
    solve: Solve
    score: Callable[[Floats], Floats]


class Top:
    """The first k documents of each query, in the rankings so far.

    Documents of equal scores share the mean discount of their ranks, so that nothing depends on the
    order of the rows.

    Attributes
    ----------
    data : RankingData
        The documents.
    mean : ndarray of shape (n_documents,)
        The discount of each row, on average over the rankings.
    """

    def __init__(self, data: RankingData, k: int, threads: int) -> None:
        self.data = data
        self._k = k
        self._threads = threads
        self.mean = np.zeros(data.n_documents)
        self._n_rankings = 0

    def ndcg(self, scores: Floats) -> float:
        """Return NDCG@k, weighted by query."""
        data = self.data
        values = ndcg(
            data.y,
            scores,
            qid=data.qid,
            k=self._k,
            ties="average",
            per_query=True,
            n_jobs=self._threads,
        )
        return float(np.average(values, weights=data.query_weight))

    def discounts(self, scores: Floats) -> Floats:
        """Return the discount of each row's rank."""
        data = self.data
        ranking = Ranking.of(data.y, scores, data.qid, None, self._threads)
        by_document = np.empty(scores.size)
        by_document[ranking.order] = ranking.ties.mean(discounts(ranking, "standard", self._k))
        return ranking.documents.by_row(by_document)

    def weigh(self, scores: Floats) -> PairFactors:
        """Return the weights of pairs with one more ranking in the mean."""
        self._n_rankings += 1
        self.mean += (self.discounts(scores) - self.mean) / self._n_rankings
        return top_difference(self.data.y, self.data.qid, self.mean, self._k)


class Log:
    """The histories of all problems as that of one fit."""

    def __init__(self, callback: Callback | None) -> None:
        self.lines: list[Iteration] = []
        self._callback = callback

    def report(self, line: Iteration) -> None:
        """Tell of a line of the problem at hand; a callback."""
        if self._callback is not None:
            self._callback(self._counted_on(line))

    def add(self, history: Any) -> None:
        """Take the lines of a problem that has come to its end."""
        self.lines = self.lines + [self._counted_on(line) for line in history]

    def _counted_on(self, line: Iteration) -> Iteration:
        if not self.lines:
            return line
        before = self.lines[-1]
        return line._replace(
            iteration=before.iteration + line.iteration,
            seconds=before.seconds + line.seconds,
            sweeps=before.sweeps + line.sweeps,
        )


def fit_in_rounds(
    problems: Problems, top: Top, *, w0: Floats | None, callback: Callback | None
) -> Solution:
    """Solve problems until the ranking of the training queries gets no better; keep the best.

    Objective, gap and reason to stop are those of the problem whose weights are kept; iterations
    and history are those of all.
    """
    rounds = _Rounds(problems, top, callback)
    try:
        while rounds.go_on:
            w0 = rounds.solve(w0)
    except KeyboardInterrupt:  # while documents are ranked
        return rounds.together(StopReason.INTERRUPTED)
    return rounds.together()


class _Rounds:
    """The problems that were solved, how good their rankings are, and the one to solve next."""

    def __init__(self, problems: Problems, top: Top, callback: Callback | None) -> None:
        self.solutions: list[Solution] = []
        self.values: list[float] = []
        self._problems = problems
        self._top = top
        self._log = Log(callback)
        self._next = problems.choose()
        self._weight = float(np.sum(self._next.pairs.weights))

    @property
    def go_on(self) -> bool:
        """Whether another problem may rank better."""
        if self.solutions and self.solutions[-1][1].stop_reason in CUT_SHORT:
            return False
        settled = len(self.values) - 1 - _best(self.values) >= PATIENCE
        return len(self.solutions) < MOST_ROUNDS and not settled

    def solve(self, w0: Floats | None) -> Floats:
        """Solve the next problem; return its weights."""
        w, report = self._problems.solve(self._next, w0, self._log.report)
        self.solutions.append((w, report))
        self._log.add(report.history)
        if report.stop_reason not in CUT_SHORT:
            scores = self._problems.score(w)
            self.values.append(self._top.ndcg(scores))
            chosen = self._problems.choose(self._top.weigh(scores))
            self._next = chosen._replace(pairs=chosen.pairs.weighing(self._weight))
        return w

    def together(self, stop: StopReason | None = None) -> Solution:
        """Return the best solution, with the iterations of all, and why the last was cut short."""
        w, best = self.solutions[_best(self.values)]
        last = self.solutions[-1][1]
        if last.stop_reason in CUT_SHORT:
            stop = last.stop_reason
        return w, replace(
            best,
            n_iter=sum(report.n_iter for _, report in self.solutions),
            stop_reason=best.stop_reason if stop is None else stop,
            history=self._log.lines,
            error=last.error,
            n_rounds=len(self.solutions),
        )


def _best(values: list[float]) -> int:
    """Return the first of the highest values, up to rounding."""
    best = 0
    for k, value in enumerate(values):
        if exceeds(value, values[best]):
            best = k
    return best
