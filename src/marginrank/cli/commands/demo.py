"""marginrank demo."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginrank._utils.parameters import check_integer
from marginrank.cli.support import models as _models
from marginrank.cli.support.checks import check_files
from marginrank.cli.support.curves import describe_curves
from marginrank.cli.support.data import data_summary
from marginrank.cli.support.options import Json
from marginrank.cli.support.output import print_json, print_line, print_table
from marginrank.cli.support.plots import check_plot, save_plot
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.streams import check_stdout
from marginrank.cli.support.training import fit, fit_summary, print_fit
from marginrank.models.parameters import RANDOM_STATE

if TYPE_CHECKING:
    from marginrank import RankingData
    from marginrank.models import AdditiveModel

EXAMPLE = "demo --plot curves.png"

METRICS = ("ndcg@10", "average_precision", "pairwise_accuracy")
WIDTH = 2 + max(map(len, METRICS))
N_BOOTSTRAP = 2000
CONFIDENCE = 0.95
RIDGE = 1.0
POPULARITY = 2.0  # of a query, against the differences inside of it
CURVED = ("bm25", "length", "price")  # features whose effect is not linear
N_FEATURES = 12
QUANTILES = (0.5, 0.75, 0.9, 0.97)  # where labels 1 to 4 begin
MOST_QUERIES = 100_000
BOOSTERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("LightGBM", "LGBMRanker", {"verbose": -1}),
    ("XGBoost", "XGBRanker", {}),
)

NEXT = """\
The next command to type, with data of your own (LETOR text, .csv, .parquet):

  marginrank tune train.txt --additive --model curves.json

and then

  marginrank inspect curves.json                                  the curves
  marginrank evaluate curves.json test.txt                        how good it is
  marginrank train train.txt --model model.json                   a linear model
  marginrank compare test.txt --model-a curves.json --model-b model.json
  marginrank predict curves.json test.txt --out scores.txt

or in Python: RankSVM(C=0.01).fit(X, y, qid=qid).predict(X); more in README.md."""


def demo(
    n_queries: Annotated[int, typer.Option(help="Number of queries to train on.")] = 400,
    random_state: Annotated[int, typer.Option(help="Seed of the data.")] = 0,
    plot: Annotated[
        str | None, typer.Option(help="File to draw the curves to, such as curves.png.")
    ] = None,
    json: Json = False,
) -> None:
    """Train on made-up data, and compare the models with baselines on queries they have not seen.

    Boosted trees are among the baselines if LightGBM or XGBoost is installed.
    """
    check_stdout()
    RANDOM_STATE.constraint.check("random_state", random_state)
    check_integer("n_queries", n_queries, at_least=2, at_most=MOST_QUERIES)
    check_plot(plot)
    check_files([], [plot])
    from marginrank.fit.linear import Parameters
    from marginrank.models.fit_report import report_of

    phases = Phases()
    with phases.phase("make data"):
        train, test = _make(n_queries, random_state)
    fitted = fit(train, Parameters(C=0.01), phases)
    with phases.phase("curves"):
        curves = _fit_curves(train)
    with phases.phase("baselines"):
        baselines = {
            **_boosted_scores(train, test),
            "ridge regression": _ridge_scores(train, test),
            "best feature": _best_feature_scores(train, test),
        }
    with phases.phase("judge"):
        rankings = {
            "AdditiveRankSVM": _models.scores(curves, test),
            "RankSVM": _models.scores(fitted, test),
            **baselines,
        }
        judged = {name: _judge(test, scores) for name, scores in rankings.items()}
        contest = _contest(test, rankings, "AdditiveRankSVM", next(iter(baselines)))
    if plot is not None:
        with phases.phase("plot", plot):
            _plot(curves, test, plot)
    result = fit_summary(fitted, data_summary(train)) | {
        "fingerprint": _fingerprint(train),
        "metrics": judged,
        "comparison": contest,
        "curves": [
            one
            for one in describe_curves(curves, N_FEATURES)["top_curves"]
            if one["feature"] in CURVED
        ],
        "plot": plot,
        "seconds": phases.seconds,
    }
    reason = report_of(fitted).stop_reason.value
    print_json(result) if json else _print(result, reason)


def _make(n_queries: int, random_state: int) -> tuple["RankingData", "RankingData"]:
    """Return data for training, and as much for testing, with labels 0 to 4.

    Queries differ in popularity, which moves features and labels of all their documents, but says
    nothing of which document of a query is the better one. Three features have an effect that is
    not linear: one saturates, one is best in the middle and one is best where it is small.
    """
    import numpy as np

    from marginrank import RankingData, make_ranking

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


def _fit_curves(train: "RankingData") -> "AdditiveModel":
    from marginrank.additive.fit import AdditiveParameters, fit_additive
    from marginrank.fit.linear import seed_from

    parameters = AdditiveParameters(C=10.0, smoothness=0.03, normalization="pairs", tol=1e-4)
    return fit_additive(train, parameters, seed=seed_from(0))


def _boosted_scores(train: "RankingData", test: "RankingData") -> dict[str, Any]:
    """Return the scores of boosted trees with default settings, if a library is installed."""
    from importlib import import_module

    import numpy as np

    for library, ranker, options in BOOSTERS:
        try:
            module = import_module(library.lower())
        except (ImportError, OSError):  # OSError: a library of the system is missing
            continue
        # One thread: several would wait for each other on a busy machine.
        model = getattr(module, ranker)(n_jobs=1, random_state=0, **options)
        model.fit(train.X, train.y.astype(int), group=np.bincount(train.qid))
        return {library: model.predict(test.X)}
    return {}


def _ridge_scores(train: "RankingData", test: "RankingData") -> Any:
    """Return the scores of a ridge regression on the labels, which knows of no query."""
    import numpy as np

    mean, deviation = train.X.mean(axis=0), train.X.std(axis=0)
    X = (train.X - mean) / deviation
    normal = X.T @ X + RIDGE * np.eye(X.shape[1])
    weights = np.linalg.solve(normal, X.T @ (train.y - train.y.mean()))
    return (test.X - mean) / deviation @ weights


def _best_feature_scores(train: "RankingData", test: "RankingData") -> Any:
    from marginrank import rank_features

    ranking = rank_features(train, metric=METRICS[0])
    best = int(ranking.order[0])
    return ranking.direction[best] * test.X[:, best]


def _judge(data: "RankingData", scores: Any) -> dict[str, dict[str, float]]:
    """Return the mean of each metric over the queries, and its bootstrap interval."""
    import numpy as np

    from marginrank.metrics import get_metric

    judged = {}
    for name in METRICS:
        values = get_metric(name)(data.y, scores, qid=data.qid, per_query=True)
        values = values[~np.isnan(values)]
        low, high = _bootstrap(values)
        judged[name] = {"mean": float(values.mean()), "low": low, "high": high}
    return judged


def _bootstrap(values: Any) -> tuple[float, float]:
    """Return the interval of the mean over queries that are drawn again and again."""
    import numpy as np

    generator = np.random.default_rng(0)
    drawn = generator.multinomial(values.size, np.full(values.size, 1 / values.size), N_BOOTSTRAP)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(drawn @ values / values.size, [tail, 1 - tail])
    return float(low), float(high)


def _contest(
    data: "RankingData", rankings: dict[str, Any], name: str, other: str
) -> dict[str, Any]:
    """Return how many queries each of two rankings wins, and whether that could be chance."""
    import numpy as np

    from marginrank.metrics import compare, get_metric

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


def _plot(model: "AdditiveModel", data: "RankingData", path: str) -> None:
    from marginrank.plots import plot_additive

    save_plot(plot_additive(model, data)[0], path)


def _fingerprint(data: "RankingData") -> str:
    """Return a checksum by which two people see that they have the same data."""
    from hashlib import sha256

    digest = sha256()
    for array in (data.X, data.y, data.qid):
        digest.update(array.tobytes())
    return digest.hexdigest()[:16]


def _print(result: dict[str, Any], stop_reason: str) -> None:
    print_line(f"{result['data']['queries']} made-up queries to learn from, as many to judge on.")
    print_line("Popular queries have higher features and labels, whatever the order inside them.")
    print_line(f"The effects of {', '.join(CURVED)} are not linear; features do not interact.")
    print_line(f"Fingerprint of the data: {result['fingerprint']}")
    print_line("")
    print_fit(result, stop_reason)
    judged = result["metrics"]
    rows = [
        (f"{metric:{WIDTH}}{name}", *(f"{v:.4f}" for v in values[metric].values()))
        for metric in METRICS
        for name, values in judged.items()
    ]
    title = f"On other queries, with {CONFIDENCE:.0%} intervals (bootstrap)"
    print_table(title, rows, header=("", "mean", "low", "high"))
    _print_contest(result["comparison"])
    if not any(library in judged for library, *_ in BOOSTERS):
        print_line("To compare with boosted trees, too: pip install lightgbm")
        print_line("")
    shown = [(one["feature"], one["curve"]) for one in result["curves"]]
    print_table("Curves that AdditiveRankSVM has learned", shown)
    if result["plot"] is not None:
        print_line(f"The curves are drawn in {result['plot']}.")
        print_line("")
    for line in NEXT.splitlines():
        print_line(line)


def _print_contest(contest: dict[str, Any]) -> None:
    low, high = contest["interval"]
    rows = [
        ("wins, ties, losses", f"{contest['wins']}, {contest['ties']}, {contest['losses']}"),
        ("mean difference", f"{contest['difference']:+.4f}, from {low:+.4f} to {high:+.4f}"),
        ("p, randomisation test", f"{contest['randomization_p']:.2g}"),
    ]
    print_table(f"{contest['model']} against {contest['baseline']}, by {contest['metric']}", rows)
