"""Embeddings: our solvers and scikit-learn on pair differences, to the same objective in one run.

Rows are vectors with a decaying spectrum plus noise, as encoders of text return them. Preferences
are graded labels in queries of 50 documents, or a list of pairs: one chosen and one rejected
document each. The time of scikit-learn includes forming the differences. Each program is evaluated
by its own loss, because the logistic loss of labels is a sum of hinge terms here.

Every fit runs in a child process, which is ended as soon as its ratio is decided: scikit-learn
after 5 times our time (printed as "> 5 x"), our other solvers after our time / 1.2. Select cells by
--documents, --features, --rows, --kinds, --losses and --C.
"""

import argparse
import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from marginrank import RankSVM

DOCUMENTS = (20_000, 100_000)
FEATURES = (384, 768, 2048)
STRENGTHS = (0.01, 1.0, 100.0)
OTHER_SOLVERS = ("tron",)
LOSSES = ("squared_hinge", "logistic")
TARGETS = (1e-4, 1e-6)  # relative distance to the optimal objective
PEER_TOLS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
DOCS_PER_QUERY = 50
DECAY = 0.5  # of the standard deviations j ** -DECAY along the principal axes
NOISE = 0.1  # standard deviation of the noise, relative to the mean of these
LEAST_SPEEDUP = 5.0  # over scikit-learn
MOST_SLOWDOWN = 1.2  # against our fastest solver
MARGIN = 1.05  # a fit is ended only if it is certain to exceed a limit


class Problem(NamedTuple):
    """Documents with labels in queries, or with a list of pairs."""

    X: np.ndarray
    y: np.ndarray | None = None
    qid: np.ndarray | None = None
    pairs: np.ndarray | None = None

    def all_pairs(self) -> np.ndarray:
        """Return the pairs, the preferred document first."""
        if self.pairs is not None:
            return self.pairs
        found = []
        for first in range(0, len(self.y), DOCS_PER_QUERY):
            y = self.y[first : first + DOCS_PER_QUERY]
            found.append(first + np.argwhere(y[:, None] > y[None, :]))
        return np.concatenate(found)


class Run(NamedTuple):
    """One fit: its time, and how far its objective is above the optimum, relative."""

    seconds: float
    excess: float
    passes: float = 0.0


def embeddings(n_documents: int, n_features: int, normalized: bool, rng: Any) -> np.ndarray:
    """Return float32 vectors with a decaying spectrum plus noise."""
    sizes = np.arange(1, n_features + 1) ** -DECAY
    axes = np.linalg.qr(rng.standard_normal((n_features, n_features)))[0]
    X = rng.standard_normal((n_documents, n_features), dtype=np.float32)
    X = X @ (sizes[:, None] * axes).astype(np.float32)
    noise = rng.standard_normal((n_documents, n_features), dtype=np.float32)
    X += np.float32(NOISE * sizes.mean()) * noise
    if normalized:
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    else:
        X *= np.exp(0.5 * rng.standard_normal((n_documents, 1))).astype(np.float32)
    return X


def make_problem(n_documents: int, n_features: int, normalized: bool, kind: str) -> Problem:
    """Return documents whose preferences follow a linear utility with noise."""
    rng = np.random.default_rng(0)
    X = embeddings(n_documents, n_features, normalized, rng)
    utility = X @ rng.standard_normal(n_features)
    utility = utility / utility.std() + 0.5 * rng.standard_normal(n_documents)
    if kind == "labels":
        y = np.digitize(utility, [-1.0, 0.0, 1.0, 1.8])
        return Problem(X, y=y, qid=np.arange(n_documents) // DOCS_PER_QUERY)
    half = n_documents // 2
    pairs = np.column_stack([np.arange(half), half + np.arange(half)])
    better = utility[pairs[:, 0]] >= utility[pairs[:, 1]]
    return Problem(X, pairs=np.where(better[:, None], pairs, pairs[:, ::-1]))


def timed(call: Callable[[], Any], clock: Callable[[], float]) -> tuple[float, Any]:
    """Return the time that a call takes, and its result."""
    start = clock()
    result = call()
    return clock() - start, result


def within(seconds: float, call: Callable[[], Any], options: Any) -> Any:
    """Return the result of a call in a child process, or None if it takes longer."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(sender, seconds, call, options.processor))
    child.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        return None
    finally:
        child.join()


def _send(sender: Any, seconds: float, call: Callable[[], Any], processor: bool) -> None:
    # The timer ends the process, whatever library it is in.
    timer, alarm = signal.ITIMER_REAL, signal.SIGALRM
    if processor:
        timer, alarm = signal.ITIMER_PROF, signal.SIGPROF
    signal.signal(alarm, signal.SIG_DFL)
    signal.setitimer(timer, seconds if np.isfinite(seconds) else 0.0)
    result = call()
    signal.setitimer(timer, 0.0)
    sender.send(result)


def fitted(problem: Problem, jobs: int, **parameters: Any) -> RankSVM:
    """Return our model of a problem."""
    model = RankSVM(n_jobs=jobs, **parameters)
    if problem.pairs is not None:
        return model.fit(problem.X, pairs=problem.pairs)
    return model.fit(problem.X, problem.y, qid=problem.qid)


def best_objective(problem: Problem, loss: str, C: float, options: Any) -> float:
    """Return the optimal objective."""
    return fitted(problem, options.jobs, C=C, loss=loss, tol=1e-9).objective_


def our_runs(
    problem: Problem, loss: str, C: float, optimum: float, options: Any
) -> dict[str, list[Run | None]]:
    """Return one run per target for each of our solvers; None for a run that was ended."""

    def run(solver: str, tol: float) -> Run:
        fit = partial(fitted, problem, options.jobs, C=C, loss=loss, solver=solver, tol=tol)
        seconds, model = timed(fit, options.clock)
        passes = model.history_[-1].sweeps if model.history_ else 0.0
        return Run(seconds, model.objective_ / optimum - 1.0, passes)

    auto = [within(np.inf, partial(run, "auto", target), options) for target in TARGETS]
    runs: dict[str, list[Run | None]] = {"auto": auto}
    for solver in OTHER_SOLVERS:
        longest = [MARGIN * one.seconds / MOST_SLOWDOWN for one in auto]
        runs[solver] = [
            within(seconds, partial(run, solver, target), options)
            for seconds, target in zip(longest, TARGETS, strict=True)
        ]
    return runs


class Differences:
    """Pair differences as a problem of two classes, with signs that alternate."""

    def __init__(self, problem: Problem, clock: Callable[[], float]) -> None:
        self.seconds, (self.D, self.sign) = timed(lambda: self._make(problem), clock)

    @staticmethod
    def _make(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        pairs = problem.all_pairs()
        sign = np.where(np.arange(len(pairs)) % 2, 1.0, -1.0).astype(np.float32)
        D = problem.X[pairs[:, 0]] - problem.X[pairs[:, 1]]
        D *= sign[:, None]
        return D, sign

    def value(self, w: np.ndarray, loss: str, C: float) -> float:
        """Return the objective in float64."""
        margin = self.sign * (self.D @ w.astype(np.float32)).astype(np.float64)
        w = w.astype(np.float64)
        slack = np.maximum(0.0, 1.0 - margin)
        of_pairs = slack @ slack if loss == "squared_hinge" else np.logaddexp(0.0, -margin).sum()
        return 0.5 * float(w @ w) + C * float(of_pairs)


def peers(loss: str, C: float) -> dict[str, Callable[[float], Any]]:
    """Return scikit-learn's estimators as functions of tol."""
    common = {"C": C, "fit_intercept": False, "max_iter": 10_000}
    if loss == "squared_hinge":
        return {"LinearSVC": lambda tol: LinearSVC(dual=False, tol=tol, **common)}

    def logistic(solver: str) -> Callable[[float], Any]:
        return lambda tol: LogisticRegression(solver=solver, tol=tol, **common)

    return {solver: logistic(solver) for solver in ("lbfgs", "newton-cg", "newton-cholesky")}


def peer_runs(
    differences: Differences, loss: str, C: float, optimum: float, longest: float, options: Any
) -> dict[str, list[Run]]:
    """Return runs of falling tol, until the last target is met or a run takes too long."""

    def run(make: Callable[[float], Any], tol: float) -> Run:
        fit = make(tol).fit
        with threadpool_limits(options.jobs):
            seconds, model = timed(lambda: fit(differences.D, differences.sign), options.clock)
        excess = differences.value(model.coef_[0], loss, C) / optimum - 1.0
        return Run(seconds + differences.seconds, excess)

    runs: dict[str, list[Run]] = {}
    left = MARGIN * longest - differences.seconds
    for name, make in peers(loss, C).items():
        some = runs.setdefault(name, [])
        for tol in PEER_TOLS:
            found = within(left, partial(run, make, tol), options) if left > 0.0 else None
            if found is None:
                break
            some.append(found)
            if found.excess <= TARGETS[-1]:
                break
    return runs


def fastest(runs: dict[str, list[Run]], target: float) -> tuple[float, str]:
    """Return the shortest time to a target and its solver; infinity if none has reached it."""
    reached = [
        (run.seconds, name) for name, some in runs.items() for run in some if run.excess <= target
    ]
    return min(reached, default=(np.inf, "none"))


def own_text(auto: Run, others: dict[str, Run | None], target: float) -> tuple[str, bool]:
    """Return the times of our other solvers, and whether "auto" is fast enough beside them."""
    texts, slowdown = [], 1.0
    for solver, other in others.items():
        if other is None:
            texts.append(f"{solver} > {auto.seconds / MOST_SLOWDOWN:.2f} s")
            continue
        texts.append(f"{solver} {other.seconds:.2f} s")
        if other.excess <= target:
            slowdown = max(slowdown, auto.seconds / other.seconds)
    return f"{', '.join(texts)}, {slowdown:4.2f} of our fastest", slowdown <= MOST_SLOWDOWN


def peer_text(auto: Run, theirs: dict[str, list[Run]], target: float) -> tuple[str, bool]:
    """Return the time of scikit-learn's fastest solver, and whether ours is fast enough."""
    if not theirs:
        return "not run", True
    seconds, name = fastest(theirs, target)
    ratio = seconds / auto.seconds
    if ratio > LEAST_SPEEDUP:
        return f"> {LEAST_SPEEDUP:g} x", True
    return f"{seconds:.2f} s {name} {ratio:.1f} x", False


def print_cell(name: str, ours: dict[str, list[Run | None]], theirs: dict[str, list[Run]]) -> int:
    """Print one line per target; return the number of limits that were missed."""
    missed = 0
    for k, target in enumerate(TARGETS):
        auto = ours["auto"][k]
        assert auto is not None  # it has no limit
        others = {solver: runs[k] for solver, runs in ours.items() if solver != "auto"}
        own, is_fast_here = own_text(auto, others, target)
        beside, is_fast = peer_text(auto, theirs, target)
        met = {"OWN": is_fast_here, "PEER": is_fast, "TOL": auto.excess <= target}
        flags = [limit for limit, is_met in met.items() if not is_met]
        missed += len(flags)
        print(
            f"{name} to {target:g}: {auto.seconds:7.2f} s, {auto.passes:5.0f} passes; {own}; "
            f"scikit-learn {beside}  {' '.join(flags)}",
            flush=True,
        )
    return missed


def cells(options: Any) -> Iterator[tuple[str, Problem, Differences | None]]:
    """Yield the problems, with their pair differences if these fit in the memory for peers."""
    for n_documents, n_features, scale, kind in product(
        options.documents, options.features, options.rows, options.kinds
    ):
        problem = make_problem(n_documents, n_features, scale == "normalized", kind)
        # LinearSVC copies the differences to float64.
        size = len(problem.all_pairs()) * n_features * 12
        fits = not options.no_peers and size <= options.peer_memory * 2**30
        differences = Differences(problem, options.clock) if fits else None
        yield f"{n_documents:6d} x {n_features:4d} {scale:10s} {kind:6s}", problem, differences


def parse() -> Any:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--quick", action="store_true", help="20,000 x 384 normalized documents only")
    add("--documents", type=int, nargs="+", default=DOCUMENTS)
    add("--features", type=int, nargs="+", default=FEATURES)
    add("--C", type=float, nargs="+", default=STRENGTHS)
    add("--rows", nargs="+", default=("normalized", "raw"), choices=("normalized", "raw"))
    add("--kinds", nargs="+", default=("labels", "pairs"), choices=("labels", "pairs"))
    add("--losses", nargs="+", default=LOSSES, choices=LOSSES)
    add("--jobs", type=int, default=2, help="threads of every program")
    add("--processor", action="store_true", help="measure processor time, for busy machines")
    add("--no-peers", action="store_true", help="our solvers only")
    add("--peer-memory", type=float, default=6.0, help="GiB that pair differences may take")
    options = parser.parse_args()
    if options.quick:
        options.documents, options.features, options.rows = (
            DOCUMENTS[:1],
            FEATURES[:1],
            ["normalized"],
        )
    options.clock = time.process_time if options.processor else time.perf_counter
    return options


def main() -> None:
    """Print the table."""
    options = parse()
    missed = 0
    for name, problem, differences in cells(options):
        for loss, C in product(options.losses, options.C):
            optimum = best_objective(problem, loss, C, options)
            ours = our_runs(problem, loss, C, optimum, options)
            theirs = {}
            if differences is not None:
                longest = LEAST_SPEEDUP * max(run.seconds for run in ours["auto"])
                if problem.pairs is None and loss == "logistic":  # listed pairs have the exact loss
                    listed = Problem(problem.X, pairs=problem.all_pairs())
                    optimum = best_objective(listed, loss, C, options)
                theirs = peer_runs(differences, loss, C, optimum, longest, options)
            missed += print_cell(f"{name} {loss:13s} C {C:5g}", ours, theirs)
    print(f"{missed} limits missed")


if __name__ == "__main__":
    main()
