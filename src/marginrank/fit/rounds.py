"""Fits with an NDCG@k objective: a sequence of convex problems with updated pair weights.

A *round* solves one problem and ranks the documents by its weights. The weight of a pair in NDCG@k
depends on the ranks of its documents. The first problem takes the ranks of an ideal ranking
(``pair_cost="ndcg"``). Each further problem weights pairs by the mean DCG discounts that its
documents had in the rankings of all earlier problems, and starts from the last weights. The mean
damps oscillation between rankings. All problems have the same total pair weight, so C means the
same in each.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from marginrank._utils.types import Floats
from marginrank.data.ranking_data import RankingData
from marginrank.fit.inputs import Preferences
from marginrank.metrics.cumulative_gain import discounts, ndcg
from marginrank.metrics.options import exceeds
from marginrank.metrics.ranking import Ranking
from marginrank.models.fit_report import FitReport, Iteration, StopReason
from marginrank.objective.pair_weights import PairFactors, top_difference
from marginrank.solvers.result import Callback

Solution = tuple[Floats, FitReport]  # (weights of the unscaled features, report)

MOST_ROUNDS = 10  # PATIENCE ends most fits earlier
PATIENCE = 3  # stop after this many problems in a row without a better ranking
CUT_SHORT = (StopReason.INTERRUPTED, StopReason.FAILED)


class Problems(NamedTuple):
    """The functions by which an NDCG fit makes and solves its sequence of problems.

    See :func:`fit_in_rounds`.
    """

    # Returns the pairs for given pair weights; without an argument for the first problem.
    choose: Callable[..., Preferences]
    # Solves a problem, given pairs, initial weights and a callback.
    solve: Callable[[Preferences, Floats | None, Callback], Solution]
    score: Callable[[Floats], Floats]  # returns one score per row for given weights


class Top:
    """NDCG@k of rankings, and the mean DCG discount of each document over the rankings so far.

    Documents with equal scores share the mean discount of their ranks, so results do not depend on
    the order of the rows.
    """

    def __init__(self, data: RankingData, k: int, threads: int) -> None:
        self.data = data
        self._k = k
        self._threads = threads
        self.mean = np.zeros(data.n_documents)
        self._n_rankings = 0

    def ndcg(self, scores: Floats) -> float:
        """Return the mean NDCG@k of the training queries (weighted) for given scores."""
        data = self.data
        options: Any = {"ties": "average", "per_query": True, "n_jobs": self._threads}
        values = ndcg(data.y, scores, qid=data.qid, k=self._k, **options)
        return float(np.average(values, weights=data.query_weight))

    def discounts(self, scores: Floats) -> Floats:
        data = self.data
        ranking = Ranking.of(data.y, scores, data.qid, None, self._threads)
        by_document = np.empty(scores.size)
        by_document[ranking.order] = ranking.ties.mean(discounts(ranking, "standard", self._k))
        return ranking.documents.by_row(by_document)

    def weigh(self, scores: Floats) -> PairFactors:
        """Add a ranking to the documents' mean DCG discounts; return the new pair weights."""
        self._n_rankings += 1
        self.mean += (self.discounts(scores) - self.mean) / self._n_rankings
        return top_difference(self.data.y, self.data.qid, self.mean, self._k)


class _Log:
    """The iterations of all problems, joined into one history."""

    def __init__(self, callback: Callback | None) -> None:
        self.lines: list[Iteration] = []
        self._callback = callback

    def report(self, line: Iteration) -> None:
        """Pass an iteration of the current problem to the callback of the fit, renumbered."""
        if self._callback is not None:
            self._callback(self._counted_on(line))

    def add(self, history: Any) -> None:
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
    """Solve a sequence of problems until NDCG on the training queries stops improving.

    Return the weights and report of the problem with the best NDCG. Objective, gap and stop reason
    are from that problem; iterations and history are from all problems.
    """
    rounds = _Rounds(problems, top, callback)
    try:
        while rounds.go_on:
            w0 = rounds.solve(w0)
    except KeyboardInterrupt:  # interrupted while documents were ranked
        return rounds.together(StopReason.INTERRUPTED)
    return rounds.together()


class _Rounds:
    """The solved problems with their NDCG, and the next problem."""

    def __init__(self, problems: Problems, top: Top, callback: Callback | None) -> None:
        self.solutions: list[Solution] = []
        self.values: list[float] = []
        self._problems = problems
        self._top = top
        self._log = _Log(callback)
        self._next = problems.choose()
        self._weight = float(np.sum(self._next.pairs.weights))

    @property
    def go_on(self) -> bool:
        if self.solutions and self.solutions[-1][1].stop_reason in CUT_SHORT:
            return False
        settled = len(self.values) - 1 - _best(self.values) >= PATIENCE
        return len(self.solutions) < MOST_ROUNDS and not settled

    def solve(self, w0: Floats | None) -> Floats:
        """Solve the next problem, starting from `w0`; return its weights."""
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
        """Return the weights and report of the problem with the best NDCG.

        The report has the history of all problems.
        """
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
    """Return the index of the highest value; the first index if several are equal."""
    best = 0
    for k, value in enumerate(values):
        if exceeds(value, values[best]):
            best = k
    return best
