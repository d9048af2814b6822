"""Standard errors of weights next to a bootstrap over queries, on real data.

    MARGINRANK_DATA=... python benchmarks/standard_errors.py

Prints quantiles over the features of sandwich / bootstrap; 1 is agreement.
"""

import argparse
import os
import warnings
from copy import copy
from pathlib import Path

import numpy as np

from marginrank import RankingData, RankSVM, load_letor

FILES = ("MQ2008/S1.txt.gz", "OHSUMED/S1.txt.gz", "MSLR-sample/train.txt.gz")
QUANTILES = (0.1, 0.5, 0.9)
PARAMETERS = (
    {"C": 0.01},
    {"C": 1.0},
    {"C": 1.0, "normalization": "query", "scale": "query"},
    {"C": 1.0, "normalization": "query", "scale": "query", "loss": "huber"},
    {"C": 1.0, "normalization": "query", "scale": "query", "loss": "logistic"},
)


def bootstrap(data: RankingData, model: RankSVM, n_samples: int) -> np.ndarray:
    """Return the standard deviations of the weights over samples of the queries with pairs."""
    rng = np.random.default_rng(0)
    queries = np.flatnonzero(data.queries.n_pairs)
    fit = copy(model).set_params(scale=model.scale_, warm_start=True)
    weights = []
    for _ in range(n_samples):
        drawn = rng.choice(queries, queries.size)
        counts = np.bincount(drawn, minlength=data.n_queries).astype(float)
        weights.append(fit.fit(data.X, data.y, qid=data.qid, query_weight=counts).coef_)
    return np.std(weights, axis=0, ddof=1)


def main() -> None:
    """Print one line per data set and set of parameters."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=100, help="of the bootstrap")
    n_samples = parser.parse_args().samples
    warnings.filterwarnings("ignore", "Features without effect")
    folder = Path(os.environ["MARGINRANK_DATA"])
    print(f"{'sandwich / bootstrap':70}" + "".join(f"{q:>7.0%}" for q in QUANTILES))
    for file in FILES:
        data = load_letor(folder / file)
        for parameters in PARAMETERS:
            model = RankSVM(tol=1e-8, **parameters).fit(data)
            expected = bootstrap(data, model, n_samples)
            has_effect = expected > 0
            ratios = model.coef_stderr(data)[has_effect] / expected[has_effect]
            shown = "".join(f"{value:7.2f}" for value in np.quantile(ratios, QUANTILES))
            print(f"{file.split('/')[0]:12} {parameters!s:57}{shown}", flush=True)


if __name__ == "__main__":
    main()
