"""Search for the weights of a linear score that maximize a ranking metric.

The metric is a piecewise constant function of the weights. Searches start from the best weights of
a lattice (a regular grid of weights that sum to 1) and proceed by line searches, each of which
finds the exact maximum along its line. The best weights of few queries are mostly noise, so weights
are averaged over bootstrap samples of the queries.
"""

from math import comb

import numpy as np

from marginrank._utils.threads import cached_property
from marginrank._utils.types import Floats
from marginrank.fit.metric_segments import NARROWEST, ROUNDING, Crossings, LinearRankMetric

MOST_STEPS = 10  # lattice weights are multiples of 0.1 for up to 4 signals
MOST_POINTS = 300  # most lattice weights; the metric of every query is computed for each
N_STARTS = 4  # number of lattice weights that searches start from, because they find local maxima
N_RANDOM = 2  # random directions per pass: single weights alone can get stuck at a local maximum
MOST_PASSES = 20  # most passes of a search, which ends when a pass improves nothing
# With more training queries, weights are as good on them as the best lattice weights.
MANY_QUERIES = 100
# With fewer, averages are shrunk toward equal weights, as if this many queries preferred them.
PRIOR_QUERIES = 4
LEAST_GAIN = 1e-9  # smaller changes of the metric are rounding errors


def lattice(n: int) -> Floats:
    """Return a regular grid of vectors of n weights: all multiples of a step that sum to 1.

    There are 11 vectors for n = 2, 66 for n = 3 and 286 for n = 4; the step grows with n.
    """
    steps = MOST_STEPS
    while steps > 1 and comb(steps + n - 1, n - 1) > MOST_POINTS:
        steps -= 1
    rows: list[list[int]] = [[]]
    for _ in range(n - 1):
        rows = [[*row, k] for row in rows for k in range(steps + 1 - sum(row))]
    return np.array([[*row, steps - sum(row)] for row in rows], dtype=np.float64) / steps


class WeightSearch:
    """Finds the weights of a linear score with the best mean metric over queries.

    Queries may have weights in the mean, for bootstrap samples. With `positive`, the weights of the
    score are non-negative and sum to 1; otherwise they are between −1 and 1.
    """

    def __init__(
        self,
        metric: LinearRankMetric,
        starts: Floats,
        values: Floats,
        equal: Floats,
        *,
        positive: bool,
    ) -> None:
        self._metric = metric
        self._starts = starts
        self.values = values  # metric of each query for each start
        self._equal = equal  # the same weight for each signal
        self._positive = positive

    @property
    def has_one_line(self) -> bool:
        """Whether all weights are on one line, so that its search needs no further starts."""
        return self._positive and self._starts.shape[1] <= 2

    def with_starts(self, starts: Floats) -> "WeightSearch":
        """Return this search with additional starting weights, one vector per row."""
        return WeightSearch(
            self._metric,
            np.vstack([self._starts, starts]),
            np.hstack([self.values, self._metric.values(starts)]),
            self._equal,
            positive=self._positive,
        )

    def best(self, query_weight: Floats, rng: np.random.Generator) -> Floats:
        """Return the best weights that searches from several starting points find."""
        totals = query_weight @ self.values
        found = [
            self._climb(self._starts[k], float(totals[k]), query_weight, rng)
            for k in np.argsort(-totals, kind="stable")[:N_STARTS]
        ]
        return max(found, key=lambda one: one[1])[0]

    def averaged(self, query_weight: Floats, rng: np.random.Generator, n_bootstraps: int) -> Floats:
        """Return weights averaged over `n_bootstraps` Bayesian bootstrap samples of the queries.

        The start is the mean over samples of the best starting weights. Line searches then move it,
        each to the mean over samples of the best position on the line. The result is halfway
        between start and end, because line searches alone move too far toward weights of zero. Few
        queries say little about the weights, so their result is shrunk toward equal weights.
        """
        samples = rng.exponential(size=(n_bootstraps, query_weight.size)) * query_weight
        mean: Floats = self._starts[np.argmax(samples @ self.values, axis=1)].mean(axis=0)
        w = mean
        for target in self._targets(rng):
            u, v, crossings = self._line(w, target)
            t = float(np.mean(crossings.best(samples)[0]))
            w = _between(u, v, t, otherwise=w)
        w = _between(mean, w, 0.5, otherwise=w)
        n_queries = int(np.sum(query_weight > 0.0))
        if n_queries >= MANY_QUERIES:
            return self._raised(w, query_weight)
        return _between(w, self._equal, PRIOR_QUERIES / (PRIOR_QUERIES + n_queries), otherwise=w)

    def _raised(self, w: Floats, query_weight: Floats) -> Floats:
        """Return w, moved toward the best start until its metric is at least as high.

        If all weights are on one line, w moves at least halfway: the lattice is dense there, and
        for many queries, the mean of both is better on other queries than either.
        """
        totals = query_weight @ self.values
        best: Floats = self._starts[int(np.argmax(totals))]
        if self.has_one_line:
            w = _between(w, best, 0.5, otherwise=best)
        target = float(totals.max()) - ROUNDING
        if float(query_weight @ self._metric.values(w[None])[:, 0]) >= target:
            return w
        steps = self._metric.along(w, best).steps(query_weight)
        edges = np.concatenate([[0.0], steps.breakpoints, [1.0]])
        good = np.flatnonzero((steps.values >= target) & (np.diff(edges) > NARROWEST))
        if not good.size:
            return best
        t = (edges[good[0]] + edges[good[0] + 1]) / 2.0
        return _between(w, best, t, otherwise=best)

    def _climb(
        self, w: Floats, value: float, query_weight: Floats, rng: np.random.Generator
    ) -> tuple[Floats, float]:
        """Improve weights by passes of exact line searches; return the weights and their metric."""
        for _ in range(MOST_PASSES):
            before = value
            for target in self._targets(rng):
                u, v, crossings = self._line(w, target)
                t, top = crossings.best(query_weight[None])
                moved = _between(u, v, float(t[0]), otherwise=w)
                if top[0] >= value - LEAST_GAIN and moved is not w:
                    w, value = moved, float(top[0])
            if value <= before + LEAST_GAIN:
                break
        return w, value

    def _targets(self, rng: np.random.Generator) -> Floats:
        """Return the points that a pass searches toward: each weight alone, then random weights."""
        n = self._starts.shape[1]
        if n == 1:
            return np.empty((0, 1))
        if self.has_one_line:
            return np.eye(2)[:1]
        return np.vstack([rng.permutation(np.eye(n)), rng.dirichlet(np.ones(n), N_RANDOM)])

    def _line(self, w: Floats, target: Floats) -> tuple[Floats, Floats, Crossings]:
        """Return both ends of the line from `w` through `target`, and the crossings between."""
        if self.has_one_line:
            return *np.eye(2), self._only_crossings
        u, v = self._ends(w, target)
        return u, v, self._metric.along(u, v)

    @cached_property
    def _only_crossings(self) -> Crossings:
        return self._metric.along(*np.eye(2))

    def _ends(self, w: Floats, target: Floats) -> tuple[Floats, Floats]:
        """Return both ends of the line from `w` through `target`, within the allowed weights."""
        if not self._positive:
            moving = target != 0.0
            ends = np.array([-1.0 - w, 1.0 - w])[:, moving] / target[moving]
            return w + ends.min(axis=0).max() * target, w + ends.max(axis=0).min() * target
        d = target - w
        if np.abs(d).max() < LEAST_GAIN:  # w equals the target
            d = 1.0 / w.size - w
        d[np.abs(d) < LEAST_GAIN] = 0.0
        low, high = (-w[d > 0.0] / d[d > 0.0]).max(), (-w[d < 0.0] / d[d < 0.0]).min()
        return np.maximum(w + low * d, 0.0), np.maximum(w + high * d, 0.0)


def _between(u: Floats, v: Floats, t: float, *, otherwise: Floats) -> Floats:
    """Return (1 − t) u + t v, rescaled by `unit`; `otherwise` if it is zero."""
    w = (1.0 - t) * u + t * v
    return unit(w) if np.abs(w).sum() > LEAST_GAIN else otherwise


def unit(w: Floats) -> Floats:
    """Return weights rescaled so that their absolute values sum to 1."""
    scaled: Floats = w / np.abs(w).sum()
    return scaled
