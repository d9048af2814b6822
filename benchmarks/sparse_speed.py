"""Sparse solvers: proximal Newton against FenchelRank, and the cost of a path."""

import argparse
import time

import numpy as np

from marginrank import RankingData, SparseRankSVM, make_ranking, sparse_path
from marginrank.fit.sparse import SparseParameters, fit_sparse
from marginrank.models.fit_report import StopReason


class OutOfTime(KeyboardInterrupt):
    """Ends a fit as Ctrl-C would."""


def data_set(scale: int) -> RankingData:
    """MSLR-like data with features in [0, 1], as paper 3 scales them."""
    X, y, qid = make_ranking(scale // 120, 120, 136, random_state=0)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    return RankingData(X.astype(np.float32), y, qid)


def timed(data: RankingData, limit: float = np.inf, **parameters) -> tuple[float, float, float]:
    """Return seconds, relative gap and absolute gap of a fit."""
    start = time.perf_counter()

    def check(line) -> None:
        if time.perf_counter() - start > limit:
            raise OutOfTime

    model = fit_sparse(data, SparseParameters(scale=None, **parameters), callback=check)
    seconds = time.perf_counter() - start
    report = model.report
    stopped = report.stop_reason is StopReason.INTERRUPTED
    assert stopped or report.stop_reason.converged, report.stop_reason
    return seconds, report.gap / (report.objective - report.gap), report.gap


def against_fenchel(data: RankingData) -> None:
    """Print how long each takes: proximal Newton to a gap of 1e-6, FenchelRank to one of 1e-3."""
    print("radius   proximal_newton to 1e-6   fenchel to 1e-3, relative to it")
    for radius in (2.0, 10.0, 50.0):
        ours = min(timed(data, radius=radius, tol=1e-6)[0] for _ in range(2))
        theirs, gap, _ = timed(
            data, 12 * ours, radius=radius, tol=1e-3, solver="fenchel", max_iter=10**6
        )
        reached = "" if gap <= 1e-3 else f", and then {gap:.0e}"
        print(
            f"{radius:6g} {ours:18.2f} s {'>' if reached else ''}{theirs / ours:18.1f} x{reached}"
        )


def path_cost(data: RankingData) -> None:
    """Print the cost of a path of 50 points, relative to its most expensive point fitted cold.

    Both start from arrays, as users do. The best of three runs counts, in turns, so that a busy
    moment of the machine spoils neither.
    """
    print("path of 50 points, relative to its most expensive point fitted cold")
    X, y, qid = data.X, data.y, data.qid
    for parameter in ("C", "radius"):
        for tol in (1e-4, 1e-6):
            paths, colds = [], []
            for _ in range(3):
                start = time.perf_counter()
                path = sparse_path(X, y, qid=qid, parameter=parameter, tol=tol, scale=None)
                paths.append(time.perf_counter() - start)
                assert all(stop.converged for stop in path.stop_reasons)
                models = [
                    SparseRankSVM(tol=tol, scale=None, **{parameter: value})
                    for value in path.values[1::4]
                ]
                colds.append([seconds_of(lambda m=m: m.fit(X, y, qid=qid)) for m in models])
            whole, cold = min(paths), np.min(colds, axis=0)
            print(
                f"  {parameter:6s} tol {tol:g}: {whole:5.2f} s, {whole / cold.max():5.1f} x "
                f"(at most 12); points alone take {cold.min():.3f} to {cold.max():.3f} s"
            )


def seconds_of(action) -> float:
    """Return how long something takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main() -> None:
    """Run both parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    data = data_set(24_000 if parser.parse_args().quick else 240_000)
    against_fenchel(data)
    path_cost(data)


if __name__ == "__main__":
    main()
