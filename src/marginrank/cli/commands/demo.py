"""The command ``marginrank demo``: train models on synthetic data."""

from hashlib import sha256
from importlib import import_module
from typing import Any

import numpy as np

from marginrank.additive.fit import AdditiveParameters, fit_additive
from marginrank.cli.flags.commands import DemoFlags
from marginrank.cli.support import models as _models
from marginrank.cli.support.checks import check_files, check_plot
from marginrank.cli.support.curves import describe_curves
from marginrank.cli.support.data import data_summary
from marginrank.cli.support.files import save_plot
from marginrank.cli.support.output import print_json, print_line, print_table
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.training import fit_summary, print_fit, warn_of_model, with_seed
from marginrank.data import RankingData, make_ranking
from marginrank.fit.linear import Parameters, fit_linear, seed_from
from marginrank.metrics import compare, get_metric
from marginrank.metrics.feature_ranking import rank_features
from marginrank.models.fit_report import report_of
from marginrank.plots import plot_additive

METRICS = ("ndcg@10", "average_precision", "pairwise_accuracy")
WIDTH = 2 + max(map(len, METRICS))
N_BOOTSTRAP = 2000
CONFIDENCE = 0.95
LINEAR = Parameters(C=0.01)
ADDITIVE = AdditiveParameters(C=10.0, smoothness=0.03, normalization="pairs", tol=1e-4)
RIDGE = 1.0
POPULARITY = 2.0  # effect of the query on utility, relative to effects within queries
CURVED = ("bm25", "length", "price")  # features whose effect is not linear
N_FEATURES = 12
QUANTILES = (0.5, 0.75, 0.9, 0.97)  # quantiles of the utility at which labels 1 to 4 begin
BOOSTERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("LightGBM", "LGBMRanker", {"verbose": -1}),
    ("XGBoost", "XGBRanker", {}),
)

NEXT = """\
Next, with your own data (LETOR text, .csv, .parquet):

  marginrank tune train.txt --additive --model curves.json

and then

  marginrank inspect curves.json                                  the curves
  marginrank evaluate curves.json test.txt                        its NDCG
  marginrank train train.txt --model model.json                   a linear model
  marginrank compare test.txt --model-a curves.json --model-b model.json
  marginrank predict curves.json test.txt --out scores.txt

or in Python: RankSVM(C=0.01).fit(X, y, qid=qid).predict(X); more in README.md."""


def run(flags: DemoFlags, phases: Phases) -> None:
    """Train models on synthetic data, and compare them with baselines."""
    check_plot(flags.plot)
    check_files([], [flags.plot])
    with phases.phase("make data"):
        train, test = _make(flags.n_queries, flags.random_state)
    with phases.phase("solve"):
        linear = with_seed(fit_linear(train, LINEAR, seed=seed_from(0)), 0)
    warn_of_model(linear, LINEAR)  # raises KeyboardInterrupt if interrupted
    with phases.phase("solve additive"):
        additive = fit_additive(train, ADDITIVE, seed=seed_from(0))
    with phases.phase("baselines"):
        features = rank_features(train, metric=METRICS[0])
        best = int(features.order[0])
        baselines = {
            **_boosted_scores(train, test),
            "ridge regression": _ridge_scores(train, test),
            "best feature": features.direction[best] * test.X[:, best],
        }
    with phases.phase("evaluate"):
        rankings = {
            "AdditiveRankSVM": _models.scores(additive, test),
            "RankSVM": _models.scores(linear, test),
            **baselines,
        }
        metrics = {name: _evaluate(test, scores) for name, scores in rankings.items()}
        contest = _contest(test, rankings, "AdditiveRankSVM", next(iter(baselines)))
    save_plot(flags.plot, phases, lambda: plot_additive(additive, test)[0])
    curves = describe_curves(additive, N_FEATURES)["top_curves"]
    result = fit_summary(linear, data_summary(train)) | {
        "fingerprint": _fingerprint(train),
        "metrics": metrics,
        "comparison": contest,
        "curves": [one for one in curves if one["feature"] in CURVED],
        "plot": flags.plot,
        "seconds": phases.seconds,
    }
    reason = report_of(linear).stop_reason.value
    print_json(result) if flags.json else _print(result, reason)


def _make(n_queries: int, random_state: int) -> tuple[RankingData, RankingData]:
    """Return synthetic training and test data of the same size, with labels 0 to 4.

    The popularity of a query shifts the features and labels of all its documents, so comparing
    documents of different queries is misleading. Three features have a nonlinear effect on labels:
    one saturates, one is best at medium values and one is best at small values.
    """
    X, utility, qid = make_ranking(
        2 * n_queries,
        (10, 50),
        N_FEATURES,
        n_levels=None,
        correlation=0.5,
        random_state=random_state,
    )
    generator = np.random.default_rng(random_state)
    popularity = generator.standard_normal(2 * n_queries)[qid]
    bm25, length, price = X[:, : len(CURVED)].T
    utility = utility / utility.std()
    utility += 1.5 * np.tanh(2 * bm25) + 2 * np.exp(-(length**2)) - np.exp(price) / 2
    shifts = generator.standard_normal(N_FEATURES)
    shifts[: len(CURVED)] = 0.0
    X += np.outer(popularity, shifts)
    utility += POPULARITY * popularity
    y = np.searchsorted(np.quantile(utility, QUANTILES), utility).astype(np.float64)
    seen = qid < n_queries
    names = [*CURVED, *(f"signal_{k}" for k in range(1, N_FEATURES - len(CURVED) + 1))]
    train, test = (
        RankingData(X[rows], y[rows], qid[rows], feature_names=names) for rows in (seen, ~seen)
    )
    return train, test


def _boosted_scores(train: RankingData, test: RankingData) -> dict[str, Any]:
    """Return {library: test scores} of boosted trees, if LightGBM or XGBoost is installed."""
    for library, ranker, options in BOOSTERS:
        try:
            module = import_module(library.lower())
        except (ImportError, OSError):  # OSError means that a system library is missing
            continue
        # Use one thread: several threads would wait for each other on a busy machine.
        model = getattr(module, ranker)(n_jobs=1, random_state=0, **options)
        model.fit(train.X, train.y.astype(int), group=np.bincount(train.qid))
        return {library: model.predict(test.X)}
    return {}


def _ridge_scores(train: RankingData, test: RankingData) -> Any:
    """Return the test scores of a ridge regression of the labels, which ignores queries."""
    mean, deviation = train.X.mean(axis=0), train.X.std(axis=0)
    X = (train.X - mean) / deviation
    normal = X.T @ X + RIDGE * np.eye(X.shape[1])
    weights = np.linalg.solve(normal, X.T @ (train.y - train.y.mean()))
    return (test.X - mean) / deviation @ weights


def _evaluate(data: RankingData, scores: Any) -> dict[str, dict[str, float]]:
    found = {}
    for name in METRICS:
        values = get_metric(name)(data.y, scores, qid=data.qid, per_query=True)
        values = values[~np.isnan(values)]
        n, tail = values.size, (1 - CONFIDENCE) / 2
        drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), N_BOOTSTRAP)
        low, high = np.quantile(drawn @ values / n, [tail, 1 - tail])
        found[name] = {"mean": float(values.mean()), "low": float(low), "high": float(high)}
    return found


def _contest(data: RankingData, rankings: dict[str, Any], name: str, other: str) -> dict[str, Any]:
    """Return a comparison of two rankings: counts of queries won, tied and lost, and a test."""
    metric = get_metric(METRICS[0])
    both = rankings[name], rankings[other]
    a, b = (metric(data.y, scores, qid=data.qid, per_query=True) for scores in both)
    outcome = compare(data.y, *both, qid=data.qid, metric=metric)
    return {
        "metric": METRICS[0],
        "model": name,
        "baseline": other,
        "wins": int(np.sum(a > b)),
        "ties": int(np.sum(a == b)),
        "losses": int(np.sum(a < b)),
        "difference": outcome.difference,
        "interval": outcome.interval,
        "randomization_p": outcome.randomization_p,
    }


def _fingerprint(data: RankingData) -> str:
    """Return a checksum of the data, to see whether two machines generated the same."""
    digest = sha256()
    for array in (data.X, data.y, data.qid):
        digest.update(array.tobytes())
    return digest.hexdigest()[:16]


def _print(result: dict[str, Any], stop_reason: str) -> None:
    metrics, contest = result["metrics"], result["comparison"]
    low, high = contest["interval"]
    sides = f"{contest['model']} against {contest['baseline']}"
    print_line(f"{sides} on new queries: {contest['metric']} {contest['difference']:+.4f}")
    print_line(
        f"({low:+.4f} to {high:+.4f}, p = {contest['randomization_p']:.2g}): wins "
        f"{contest['wins']}, ties {contest['ties']}, losses {contest['losses']}"
    )
    print_line("")
    rows = [
        (f"{metric:{WIDTH}}{name}", *(f"{v:.4f}" for v in values[metric].values()))
        for metric in METRICS
        for name, values in metrics.items()
    ]
    title = f"On new queries, with {CONFIDENCE:.0%} bootstrap intervals"
    print_table(title, rows, header=("", "mean", "low", "high"))
    if not any(library in metrics for library, *_ in BOOSTERS):
        print_line("To compare with boosted trees as well: pip install lightgbm")
        print_line("")
    print_line(f"The data are synthetic: {result['data']['queries']} training queries and as many")
    print_line("test queries. Popular queries have higher feature values and labels. The")
    print_line(f"effects of {', '.join(CURVED)} are not linear; features do not interact.")
    print_line(f"Fingerprint of the data: {result['fingerprint']}")
    print_line("")
    shown = [(one["feature"], one["curve"]) for one in result["curves"]]
    print_table("Curves of AdditiveRankSVM, from low to high values of the feature", shown)
    if result["plot"] is not None:
        print_line(f"The curves are plotted in {result['plot']}.")
        print_line("")
    print_line("Details of the linear fit (RankSVM):")
    print_fit(result, stop_reason)
    for line in NEXT.splitlines():
        print_line(line)
