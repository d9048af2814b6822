"""Weights that go on learning."""

from collections.abc import Iterable

import numpy as np

from marginrank._utils.memory import require_vectors
from marginrank._utils.threads import effective_threads, serial_blas
from marginrank._utils.types import Floats
from marginrank.fit.online.parameters import OnlineParameters
from marginrank.solvers.stochastic.sgd import Schedule, Sgd, StepProblem


class Learner:
    """Weights that go on learning, chunk by chunk.

    Parameters
    ----------
    n_features : int
        Number of features.
    seed : int
        Seed of the order of the queries.
    coef : ndarray of shape (n_features,), optional
        Weights to start from.
    scale : ndarray of shape (n_features,), optional
        What features are divided by; the weights are those of the features as they are.
    """

    def __init__(
        self,
        n_features: int,
        seed: int,
        coef: Floats | None = None,
        scale: Floats | None = None,
    ) -> None:
        require_vectors(n_features)
        self.n_features = n_features
        self.scale = scale
        self.sgd = Sgd(n_features, coef, scale)
        self._seed = seed
        self._chunks = 0
        self._queries = 0

    def learn(
        self, problem: StepProblem, parameters: OnlineParameters, *, total: float = 0.0
    ) -> None:
        """Make one pass over the queries of a problem.

        `total` is the weight of all pairs that C refers to; 0 stands for those seen so far.
        """
        rng = np.random.default_rng([self._seed, self._chunks])
        first = self._queries
        self._chunks += 1
        self._queries += problem.sizes.size
        if not problem.active.size:
            return
        if parameters.method == "pair":
            parts: Iterable[StepProblem] = problem.draw(rng)
        else:
            parts = [problem.cut_long_queries(self._seed, first)]
        threads = effective_threads(parameters.n_jobs)
        with serial_blas():
            for part in parts:
                shuffled = parameters.shuffle and parameters.method == "query"
                order = rng.permutation(part.active) if shuffled else part.active
                self.sgd.run(part, order, self._schedule(parameters, total), threads)

    def coef(self, parameters: OnlineParameters, *, total: float = 0.0) -> Floats:
        """Return the weights learned so far, with a step over what waits for one."""
        with serial_blas():
            sgd = self.sgd.flushed(self._schedule(parameters, total))
        return sgd.average if parameters.average else sgd.w

    def _schedule(self, parameters: OnlineParameters, total: float) -> Schedule:
        mean = parameters.normalization != "none"
        rate = parameters.rate(self.n_features)
        return Schedule(1.0 / parameters.C, 1.0 if mean else total, rate)
