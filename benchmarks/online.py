"""Online learning: passes to within 2 % of the optimum, and the time of a pass in sweeps.

    python benchmarks/online.py [--json results.json] [--quick]

A *sweep* is the time of one multi-threaded pass that sums X, measured in turns with passes of
SGDRankSVM. Passes to 2 % are counted without any tuning, for several C and kinds of features.
Then what is left after five passes is set beside algorithms 2 and 3 of paper 2 as printed, on
MQ2008 (fold 1, training part) if MARGINRANK_DATA names its folder, and on generated data otherwise.
--quick uses a tenth of the data, to see that the script works; its ratios mean little.
"""

import argparse
import json
import os
import time
import warnings

import numpy as np
from plain_sgd import ALGORITHMS
from sklearn.exceptions import ConvergenceWarning

from marginrank import RankingData, RankSVM, SGDRankSVM, load_letor, make_ranking
from marginrank._utils.threads import effective_threads
from marginrank.fit.linear import Parameters, make_objective
from marginrank.fit.online_learner import (
    Learner,
    OnlineParameters,
    contents,
    step_problem,
    value_and_gradient,
)

KINDS = {
    "scaled": {"correlation": 0.5},
    "raw, heavy tails": {"correlation": 0.6, "heavy_tail": 1.0},
    "raw, heavier tails": {"correlation": 0.5, "heavy_tail": 2.0},
}
LIMIT = 20  # passes
FEW = 5  # passes beside the algorithms of paper 2


def make(n_documents: int, **options) -> RankingData:
    """Return MSLR-like data: 136 float32 features, queries of 120 documents."""
    shape = (n_documents // 120, 120, 136)
    return RankingData(*make_ranking(*shape, dtype=np.float32, random_state=0, **options))


def passes(data: RankingData, parameters: OnlineParameters) -> dict[str, float]:
    """Return passes to 2 %, what is left after the last, and the time of a pass in sweeps."""
    batch = RankSVM(C=parameters.C).fit(data.X, data.y, qid=data.qid)
    found = contents(lambda: [data], parameters)
    problem = step_problem(data, parameters)
    learner = Learner(data.n_features, 0)
    threads = effective_threads(None)
    seconds, sweeps, excess = [], [], []
    for _ in range(LIMIT):
        start = time.perf_counter()
        learner.learn(problem, parameters, total=found.weight)
        w = learner.coef(parameters, total=found.weight)
        seconds.append(time.perf_counter() - start)
        start = time.perf_counter()
        data.matrix.sum(threads)
        sweeps.append(time.perf_counter() - start)
        value, _ = value_and_gradient([problem], parameters, found, w)
        excess.append(value / batch.objective_ - 1)
    close = [n for n, value in enumerate(excess, 1) if value <= 0.02]
    return {
        "passes to 2 %": close[0] if close else float("nan"),
        "excess after one pass": excess[0],
        "excess after 20 passes": excess[-1],
        "first pass [sweeps]": seconds[0] / float(np.median(sweeps)),
        "pass [sweeps]": float(np.median(seconds) / np.median(sweeps)),
    }


def paper_data() -> tuple[str, RankingData]:
    """Return the training part of MQ2008 fold 1, or generated data."""
    folder = os.environ.get("MARGINRANK_DATA")
    if folder is None:
        return "generated", make(6_000, **KINDS["scaled"])
    return "MQ2008", load_letor([f"{folder}/MQ2008/S{k}.txt.gz" for k in (1, 2, 3)])


def beside_paper(data: RankingData, method: str, C: float) -> dict[str, float]:
    """Return the relative distance to the optimum after five passes: as printed, and ours."""
    batch = RankSVM(C=C).fit(data)
    problem = make_objective(data, Parameters(C=C))
    ours = SGDRankSVM(C=C, method=method, max_iter=FEW, tol=0)
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is stopped early
        printed = ALGORITHMS[method](data, C, FEW)
        excess = [
            problem.at(w).value / batch.objective_ - 1 for w in (printed, ours.fit(data).coef_)
        ]
    return dict(zip(("as printed", "SGDRankSVM"), excess, strict=True))


def main() -> None:
    """Print a line for each kind of data, method and C."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    arguments = parser.parse_args()
    figures = {}
    for kind, options in KINDS.items():
        data = make(24_000 if arguments.quick else 240_000, **options)
        for method, C in (("query", 1e-4), ("query", 1e-2), ("query", 1.0), ("pair", 1.0)):
            name = f"{kind}, by {method}, C = {C:g}"
            figures[name] = passes(data, OnlineParameters(method=method, C=C))
            line = "  ".join(f"{key} {value:.3g}" for key, value in figures[name].items())
            print(f"{name:40s} {line}", flush=True)
    source, data = paper_data()
    for method in ALGORITHMS:
        for C in (1e-6, 1e-4, 1e-2, 1.0):
            name = f"{source}, five passes by {method}, C = {C:g}"
            figures[name] = beside_paper(data, method, C)
            line = "  ".join(f"{key} {value:.2g}" for key, value in figures[name].items())
            print(f"{name:40s} above the optimum: {line}", flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(figures, file, indent=2)


if __name__ == "__main__":
    main()
