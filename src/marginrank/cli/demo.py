"""marginrank demo."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginrank._base.parameters import check_integer
from marginrank.cli import _models
from marginrank.cli._data import data_summary
from marginrank.cli._options import Json
from marginrank.cli._output import print_json, print_line, print_table
from marginrank.cli._progress import Phases
from marginrank.cli._streams import check_stdout
from marginrank.cli._training import fit, fit_summary, print_fit
from marginrank.training.declarations import RANDOM_STATE

if TYPE_CHECKING:
    from marginrank import RankingData

EXAMPLE = "demo --n-queries 1000"

METRICS = ("ndcg@10", "average_precision", "pairwise_accuracy")
WIDTH = 2 + max(map(len, METRICS))
N_BOOTSTRAP = 2000
CONFIDENCE = 0.95
RIDGE = 1.0
POPULARITY = 2.0  # of a query, against the differences inside of it
QUANTILES = (0.5, 0.75, 0.9, 0.97)  # where labels 1 to 4 begin
MOST_QUERIES = 100_000

NEXT = """\
What to do next, with data of your own (LETOR text, .csv, .parquet):

  marginrank inspect train.txt                                    what is in it
  marginrank train train.txt --model model.json --valid valid.txt
  marginrank tune train.txt --model tuned.json                    the right C
  marginrank evaluate model.json test.txt                         how good it is
  marginrank compare test.txt --model-a model.json --model-b tuned.json
  marginrank predict model.json test.txt --out scores.txt

or in Python: RankSVM(C=0.01).fit(X, y, qid=qid).predict(X); more in README.md."""


def demo(
    n_queries: Annotated[int, typer.Option(help="Number of queries to train on.")] = 400,
    random_state: Annotated[int, typer.Option(help="Seed of the data.")] = 0,
    json: Json = False,
) -> None:
    """Train on made-up data, and judge the model on queries it has not seen."""
    check_stdout()
    RANDOM_STATE.constraint.check("random_state", random_state)
    check_integer("n_queries", n_queries, at_least=2, at_most=MOST_QUERIES)
    from marginrank.training.linear import Parameters

    phases = Phases()
    with phases.phase("make data"):
        train, test = _make(n_queries, random_state)
    fitted = fit(train, Parameters(C=0.01), phases)
    with phases.phase("judge"):
        rankings = {
            "RankSVM": _models.scores(fitted, test),
            "ridge regression": _ridge_scores(train, test),
            "best feature": _best_feature_scores(train, test),
        }
        judged = {name: _judge(test, scores) for name, scores in rankings.items()}
        contest = _contest(test, rankings["RankSVM"], rankings["ridge regression"])
    result = fit_summary(fitted, data_summary(train)) | {
        "fingerprint": _fingerprint(train),
        "metrics": judged,
        "comparison": contest,
        "seconds": phases.seconds,
    }
    reason = fitted.training.stop_reason.value if fitted.training else ""
    print_json(result) if json else _print(result, reason)


def _make(n_queries: int, random_state: int) -> tuple["RankingData", "RankingData"]:
    """Return data for training, and as much for testing, with labels 0 to 4.

    Queries differ in popularity, which moves features and labels of all their documents, but says
    nothing of which document of a query is the better one.
    """
    import numpy as np

    from marginrank import RankingData, make_ranking

    X, utility, qid = make_ranking(
        2 * n_queries, (10, 50), 30, n_levels=None, correlation=0.5, random_state=random_state
    )
    generator = np.random.default_rng(random_state)
    popularity = generator.standard_normal(2 * n_queries)[qid]
    X += np.outer(popularity, generator.standard_normal(X.shape[1]))
    utility += POPULARITY * popularity
    y = np.searchsorted(np.quantile(utility, QUANTILES), utility).astype(np.float64)
    seen = qid < n_queries
    train, test = (RankingData(X[rows], y[rows], qid[rows]) for rows in (seen, ~seen))
    return train, test


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

    ranking = rank_features(*train, metric=METRICS[0])
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


def _contest(data: "RankingData", scores: Any, others: Any) -> dict[str, Any]:
    """Return who wins how many queries, and whether that could be chance."""
    import numpy as np

    from marginrank.metrics import compare, get_metric

    metric = get_metric(METRICS[0])
    a, b = (metric(data.y, s, qid=data.qid, per_query=True) for s in (scores, others))
    outcome = compare(data.y, scores, others, qid=data.qid, metric=metric)
    return {
        "metric": METRICS[0],
        "wins": int(np.sum(a > b)),
        "ties": int(np.sum(a == b)),
        "losses": int(np.sum(a < b)),
        "difference": outcome.difference,
        "interval": outcome.interval,
        "randomization_p": outcome.randomization_p,
    }


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
    print_line(f"Fingerprint of the data: {result['fingerprint']}")
    print_line("")
    print_fit(result, stop_reason)
    judged = result["metrics"]
    rows = [
        (f"{metric:{WIDTH}}{name}", *(f"{v:.4f}" for v in values[metric].values()))
        for metric in METRICS
        for name, values in judged.items()
    ]
    title = f"On queries it has not seen, with {CONFIDENCE:.0%} intervals (bootstrap)"
    print_table(title, rows, header=("", "mean", "low", "high"))
    _print_contest(result["comparison"])
    for line in NEXT.splitlines():
        print_line(line)


def _print_contest(contest: dict[str, Any]) -> None:
    low, high = contest["interval"]
    rows = [
        ("wins, ties, losses", f"{contest['wins']}, {contest['ties']}, {contest['losses']}"),
        ("mean difference", f"{contest['difference']:+.4f}, from {low:+.4f} to {high:+.4f}"),
        ("p, randomisation test", f"{contest['randomization_p']:.2g}"),
    ]
    print_table(f"Against ridge regression, by {contest['metric']}", rows)
