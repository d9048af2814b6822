"""The passes of an online fit: which weights are the best, and when to stop."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats
from marginrank.fit.online.learner import Learner
from marginrank.fit.online.parameters import OnlineParameters
from marginrank.fit.online.problems import Contents
from marginrank.fit.online.validation import Validation
from marginrank.metrics.options import exceeds
from marginrank.models.fit_report import Pass, StopReason


class View(NamedTuple):
    """The objective at some weights; the certified and the estimated distance to the optimum."""

    objective: float
    gap: float
    estimate: float

    def within(self, tol: float) -> bool:
        """Tell whether the estimated distance is below a share of the objective."""
        return self.estimate <= tol * self.objective


class Passes:
    """Keeps the history of a fit, its best weights, and says when to stop."""

    def __init__(
        self,
        parameters: OnlineParameters,
        learner: Learner,
        found: Contents,
        judge: Validation | None,
        look: Callable[[Floats], View] | None,
    ) -> None:
        self.history: list[Pass] = []
        self.parameters = parameters
        self._learner = learner
        self.found = found
        self._judge = judge
        self._look = look
        self._start = time.perf_counter()
        self._before = (0.0, 0.0)
        self._best_score = -np.inf
        self._best: tuple[Floats, float] | None = None
        self._without_progress = 0
        self._lowest: list[float] = []

    @property
    def objective(self) -> float:
        """The objective of the best weights, if it is known."""
        return np.nan if self._best is None else self._best[1]

    def best(self) -> Floats:
        """Return the best weights that could be told apart, else the last ones."""
        return self._coef() if self._best is None else self._best[0]

    def _coef(self) -> Floats:
        return self._learner.coef(self.parameters, total=self.found.weight)

    def end_pass(self) -> tuple[Pass, StopReason | None]:
        """Record a pass; return its line and why to stop, if there is a reason."""
        parameters = self.parameters
        w = self._coef()
        threads = effective_threads(parameters.n_jobs)
        view = self._look(w) if self._look else View(self._estimate(), np.inf, np.inf)
        line = Pass(
            iteration=len(self.history) + 1,
            objective=view.objective,
            metric=self._judge.measure(w, threads) if self._judge else np.nan,
            steps=self._learner.sgd.steps,
            seconds=time.perf_counter() - self._start,
        )
        self.history.append(line)
        early = parameters.early_stopping
        score = line.metric if early else -line.objective
        reason = self._by_metric(score) if early else self._by_objective(view)
        # An estimate of the objective belongs to the weights of a pass, not to the last ones.
        if (not early and self._look is None) or exceeds(score, self._best_score):
            self._best = (w, line.objective)
        self._best_score = max(self._best_score, score)
        return line, reason

    def _by_metric(self, score: float) -> StopReason | None:
        """Stop if the metric has not risen by tol for some passes."""
        progress = score > self._best_score + self.parameters.tol
        self._without_progress = 0 if progress else self._without_progress + 1
        enough = self._without_progress >= self.parameters.n_iter_no_change
        return StopReason.VALIDATED if enough else None

    def _by_objective(self, view: View) -> StopReason | None:
        """Stop near the optimum, or if as many passes again would not gain tol at this pace.

        The distance to the optimum falls about as 1 / passes, so that it is what was gained lately
        by pass, times the passes. What a single pass gains is far less.
        """
        tol, window = self.parameters.tol, self.parameters.n_iter_no_change
        if view.within(tol):
            return StopReason.ESTIMATED
        if self._learner.sgd.steps == 0:  # all of the data waits for its first step
            return None
        self._lowest.append(min([view.objective, *self._lowest[-1:]]))
        passes = len(self._lowest)
        if passes <= window:
            return None
        gain = self._lowest[-1 - window] - self._lowest[-1]
        return StopReason.STALLED if gain * passes / window <= tol * self._lowest[-1] else None

    def _estimate(self) -> float:
        """Return C u times the mean value of the batches of this pass."""
        sgd = self._learner.sgd
        value, weight = sgd.value - self._before[0], sgd.weight - self._before[1]
        self._before = sgd.value, sgd.weight
        if weight == 0:  # all of the data waits for its first step
            return np.inf
        return self.found.pair_scale(self.parameters) * value / weight
