"""Hinge loss: the solvers against each other, cost an iteration against size, losses on OHSUMED.

Speed is a ratio to something measured in the same run. The last two parts need real data, in the
folder that MARGINRANK_DATA names.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np

from marginrank import RankingData, RankSVM, load_letor, make_ranking, metrics
from marginrank._base.threads import serial_blas
from marginrank.objective.losses import LOSSES
from marginrank.objective.objective import Objective
from marginrank.solvers import SOLVERS
from marginrank.training.linear import Parameters, make_objective


class OutOfTime(KeyboardInterrupt):
    """Ends a fit as Ctrl-C would."""


def timed(solver: str, objective: Objective, tol: float, limit: float) -> tuple[float, float]:
    """Return the seconds and the relative gap of a fit that may take `limit` seconds."""
    start = time.perf_counter()

    def check(line) -> None:
        if time.perf_counter() - start > limit:
            raise OutOfTime

    with serial_blas():  # as in a fit
        result = SOLVERS[solver].minimise(objective, tol=tol, max_iter=10**6, callback=check)
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


def growth(folder: Path) -> None:
    """Print the cost of a BMRM iteration on growing parts of cadata, and of 500,000 documents."""
    data = load_letor(folder / "cadata" / "cadata.txt.gz")
    order = np.random.default_rng(0).permutation(data.n_documents)
    sizes = [1000, 2000, 5000, 10_000, data.n_documents]
    print("\ncadata, real-valued labels: BMRM iterations")
    seconds = []
    for size in sizes:
        rows = order[:size]
        part = RankingData(data.X[rows], data.y[rows])
        seconds.append(_iteration(part))
        print(f"{size:9,} documents {1e3 * seconds[-1]:8.2f} ms")
    exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    print(f"  exponent {exponent:.2f} (at most 1.15)")
    X, y, _ = make_ranking(1, 500_000, 54, n_levels=None, random_state=0)
    print(f"  500,000 documents: {_iteration(RankingData(X, y)):.3f} s (aim: 0.2)")


def _iteration(data: RankingData, iterations: int = 20) -> float:
    """Return the smallest time of an iteration."""
    objective = make_objective(data, Parameters(loss="hinge", normalization="pairs", n_jobs=2))
    times = [0.0]
    with serial_blas():
        SOLVERS["bmrm"].minimise(
            objective,
            tol=1e-14,
            max_iter=iterations,
            callback=lambda line: times.append(line.seconds),
        )
    return float(np.min(np.diff(times)))


def losses(folder: Path) -> None:
    """Print the mean test NDCG@10 of each loss over the five folds of OHSUMED."""
    print("\nOHSUMED, C = 1e-4: mean test NDCG@10 (LETOR discount) over five folds")
    parts = [folder / "OHSUMED" / f"S{k}.txt.gz" for k in range(1, 6)]
    for loss in LOSSES:
        values = []
        for fold in range(5):
            train = load_letor([parts[(fold + k) % 5] for k in range(3)])
            test = load_letor(parts[(fold + 4) % 5])
            model = RankSVM(C=1e-4, loss=loss).fit(train.X, train.y, qid=train.qid)
            scores = model.predict(test.X)
            values.append(metrics.ndcg(test.y, scores, qid=test.qid, k=10, discount="letor"))
        print(f"  {loss:14s} {np.mean(values):.4f}")


def main() -> None:
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    arguments = parser.parse_args()
    solvers(24_000 if arguments.quick else 240_000)
    if folder := os.environ.get("MARGINRANK_DATA"):
        growth(Path(folder))
        losses(Path(folder))


if __name__ == "__main__":
    main()
