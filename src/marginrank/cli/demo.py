"""marginrank demo."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginrank.cli import _models
from marginrank.cli._data import data_summary
from marginrank.cli._metrics import find_metrics, measure
from marginrank.cli._options import Json
from marginrank.cli._output import print_json, print_table
from marginrank.cli._progress import Phases
from marginrank.cli._training import fit, fit_summary, print_fit

if TYPE_CHECKING:
    from marginrank import RankingData

EXAMPLE = "demo --n-queries 1000"


def demo(
    n_queries: Annotated[int, typer.Option(help="Number of queries to train on.")] = 400,
    random_state: Annotated[int, typer.Option(help="Seed of the data.")] = 0,
    json: Json = False,
) -> None:
    """Train on made-up data, and judge the model on queries it has not seen."""
    if n_queries < 1:
        raise ValueError(f"--n-queries {n_queries} must be at least 1.")
    from marginrank.fitting import Parameters

    phases = Phases()
    chosen = find_metrics(None)
    with phases.phase("make data"):
        train, test, coef = _make(n_queries, random_state)
    fitted = fit(train, Parameters(C=0.01), phases)
    with phases.phase("evaluate"):
        rankings = {
            "trained model": _models.scores(fitted, test),
            "true model": test.X @ coef,
            "random order": _random_scores(test.n_documents, random_state),
        }
        judged = {name: measure(chosen, test, s, skip=True) for name, s in rankings.items()}
    result = fit_summary(fitted, data_summary(train)) | {
        "metrics": judged,
        "seconds": phases.seconds,
    }
    reason = fitted.training.stop_reason.value if fitted.training else ""
    print_json(result) if json else _print(result, reason)


def _make(n_queries: int, random_state: int) -> tuple["RankingData", "RankingData", Any]:
    """Return data for training, as much for testing, and the true weights."""
    from marginrank import RankingData, make_ranking

    X, y, qid, coef = make_ranking(
        2 * n_queries, (10, 50), 30, noise=0.5, return_coef=True, random_state=random_state
    )
    seen = qid < n_queries
    parts = (RankingData(X[rows], y[rows], qid[rows]) for rows in (seen, ~seen))
    return *parts, coef


def _random_scores(n: int, random_state: int) -> Any:
    import numpy as np

    return np.random.default_rng(random_state).random(n)


def _print(result: dict[str, Any], stop_reason: str) -> None:
    print_fit(result, stop_reason)
    judged = result["metrics"]
    names = list(next(iter(judged.values())))
    rows = [(name, *(f"{values[name]:.4f}" for values in judged.values())) for name in names]
    print_table("On queries it has not seen", rows, header=("", *judged))
    print("Now with data of your own: marginrank train train.txt --model model.json")
