"""Standard errors next to a bootstrap over queries, and leave-one-out next to refits.

    MARGINRANK_DATA=... python benchmarks/query_influence.py [--samples 100]

The first table has quantiles over the features of sandwich / bootstrap; 1 is agreement. The second
has loss and NDCG@10 on the training queries, as estimated without each query, and by fits without
each query. Ratios of times are of processor time of one thread.
"""

import argparse
import os
import time
import warnings
from copy import copy
from pathlib import Path

import numpy as np

from marginrank import RankingData, RankSVM, load_letor
from marginrank.fit.linear import Parameters, make_objective
from marginrank.metrics import ndcg

FILES = ("MQ2008/S1.txt.gz", "OHSUMED/S1.txt.gz", "MSLR-sample/train.txt.gz")
QUANTILES = (0.1, 0.5, 0.9)
BY_QUERY = {"normalization": "query", "scale": "query"}
ERRORS_OF = (
    {"C": 0.01},
    {"C": 1.0},
    {"C": 1.0, **BY_QUERY},
    {"C": 1.0, **BY_QUERY, "loss": "huber"},
    {"C": 1.0, **BY_QUERY, "loss": "logistic"},
)
LEFT_OUT_OF = ({"C": 0.001}, {"C": 0.1}, {"C": 1.0, **BY_QUERY}, {"C": 100.0, **BY_QUERY})


def refit(data: RankingData, model: RankSVM, query_weight: np.ndarray) -> RankSVM:
    """Return the model with other weights of the queries."""
    fit = copy(model).set_params(scale=model.scale_, warm_start=True)
    return fit.fit(data.X, data.y, qid=data.qid, query_weight=query_weight)


def bootstrap(data: RankingData, model: RankSVM, n_samples: int) -> np.ndarray:
    """Return the standard deviations of the weights over samples of the queries with pairs."""
    rng = np.random.default_rng(0)
    queries = np.flatnonzero(data.queries.n_pairs)
    draws = (rng.choice(queries, queries.size) for _ in range(n_samples))
    counts = (np.bincount(drawn, minlength=data.n_queries).astype(float) for drawn in draws)
    return np.std([refit(data, model, count).coef_ for count in counts], axis=0, ddof=1)


def scores_of_refits(data: RankingData, model: RankSVM) -> np.ndarray:
    """Return the scores of each query from a fit without it."""
    scores = np.empty(data.n_documents)
    for q in range(data.n_queries):
        rows, weight = data.qid == q, (np.arange(data.n_queries) != q).astype(float)
        scores[rows] = refit(data, model, weight).predict(data)[rows]
    return scores


def loss_of(data: RankingData, model: RankSVM, scores: np.ndarray) -> float:
    """Return the loss of some scores, in units of the objective."""
    objective = make_objective(data, Parameters(C=model.C, normalization=model.normalization))
    rows = objective.pairs.documents.rows
    vector = objective.space.vector(scores if rows is None else scores[rows])
    return objective.pair_loss.evaluate(vector, None).losses.value


def standard_errors(name: str, data: RankingData, n_samples: int) -> None:
    """Print quantiles of sandwich / bootstrap, one line per set of parameters."""
    for parameters in ERRORS_OF:
        model = RankSVM(tol=1e-8, n_jobs=1, **parameters).fit(data)
        expected = bootstrap(data, model, n_samples)
        has_effect = expected > 0
        ratios = model.coef_stderr(data)[has_effect] / expected[has_effect]
        shown = "".join(f"{value:7.2f}" for value in np.quantile(ratios, QUANTILES))
        print(f"{name:12}{shown}  {parameters}", flush=True)


def leave_one_out(name: str, data: RankingData) -> None:
    """Print loss and NDCG@10: training queries, estimates, refits."""
    for parameters in LEFT_OUT_OF:
        model = RankSVM(tol=1e-8, n_jobs=1, **parameters).fit(data)
        start = time.process_time()
        estimated = model.leave_one_out(data).scores
        middle = time.process_time()
        refitted = scores_of_refits(data, model)
        ratio = (time.process_time() - middle) / (middle - start)
        columns = (model.predict(data), estimated, refitted)
        losses = "".join(f"{loss_of(data, model, scores):10.4g}" for scores in columns)
        gains = "".join(f"{ndcg(data.y, s, qid=data.qid, k=10):8.4f}" for s in columns)
        print(f"{name:12}{losses} {gains}{ratio:6.0f} x  {parameters}", flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=100, help="of the bootstrap")
    n_samples = parser.parse_args().samples
    warnings.filterwarnings("ignore", "Features without effect")
    folder = Path(os.environ["MARGINRANK_DATA"])
    sets = {file.split("/")[0]: load_letor(folder / file) for file in FILES}
    print(f"{'':12}{'loss: train, left out, refits':>30} {'NDCG@10':>24}  faster")
    for name, data in sets.items():
        leave_one_out(name, data)
    print(f"\n{'':12}" + "".join(f"{q:>7.0%}" for q in QUANTILES) + "  sandwich / bootstrap")
    for name, data in sets.items():
        standard_errors(name, data, n_samples)


if __name__ == "__main__":
    main()
