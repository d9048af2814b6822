"""Hinge loss: the solvers against each other, as ratios of times measured in the same run.

The cost of an iteration against size, and the losses on OHSUMED, are sections `growth` and `losses`
of benchmarks/papers.
"""

import argparse
import time

import numpy as np

from marginrank import RankingData, make_ranking
from marginrank._utils.threads import serial_blas
from marginrank.fit.linear import Parameters, make_objective
from marginrank.objective.objective import Objective
from marginrank.solvers import SOLVERS


class OutOfTime(KeyboardInterrupt):
    """Ends a fit as Ctrl-C would."""


def timed(solver: str, objective: Objective, tol: float, limit: float) -> tuple[float, float]:
    """Return the seconds and the relative gap of a fit that may take `limit` seconds."""
    start = time.perf_counter()

    def check(line) -> None:
        if time.perf_counter() - start > limit:
            raise OutOfTime

    with serial_blas():  # as in a fit
        result = SOLVERS[solver].minimize(objective, tol=tol, max_iter=10**6, callback=check)
    return time.perf_counter() - start, result.gap / (result.objective - result.gap)


def solvers(scale: int, tol: float = 1e-4) -> None:
    """Print the time of each solver to a certified gap, relative to the default."""
    X, y, qid = make_ranking(scale // 120, 120, 136, random_state=0)
    data = RankingData(X.astype(np.float32), y, qid)
    sweep = min(_seconds(lambda: data.matrix.sum(2)) for _ in range(5))
    print(f"\n{scale:,} x 136, {data.n_pairs:,} pairs, to a relative gap of {tol:g}")
    print(f"{'C':>8s} {'smoothing':>22s} {'ocas':>26s} {'bmrm':>26s}")
    for C in (1e-4, 1e-2, 1.0, 1e2):
        objective = make_objective(data, Parameters(loss="hinge", C=C, n_jobs=2))
        ours = min(timed("smoothing", objective, tol, np.inf)[0] for _ in range(3))
        line = f"{C:8g} {ours / sweep:8.0f} sweeps' time"
        for name in ("ocas", "bmrm"):
            seconds, gap = timed(name, objective, tol, 12 * ours)
            reached = "" if gap <= tol else f" and then {gap:.0e}"
            line += f" {'>' if reached else ''}{seconds / ours:6.1f} x{reached:>18s}"
        print(line)


def _seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    arguments = parser.parse_args()
    solvers(24_000 if arguments.quick else 240_000)


if __name__ == "__main__":
    main()
