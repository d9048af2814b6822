"""The parameters of online learning; see :mod:`marginrank.models.parameters`."""

from dataclasses import dataclass
from typing import Any

from marginrank._utils.parameters import FLAG, TEXT, Parameter, choice, integer, number, share
from marginrank.models.parameters import (
    LOSS,
    LOSS_WEIGHT,
    MARGIN,
    N_JOBS,
    NORMALIZATION,
    OPTIMIZATION,
    PAIR_COST,
    PAIR_SELECTION,
    SCALE,
)

LEARNING_RATES = ("auto", "inverse", "constant")
METHODS = ("query", "pair")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OnlineDeclaration:
    """Declared parameters of online learning, described in :class:`~marginrank.SGDRankSVM`."""

    C: float = LOSS_WEIGHT.field(1.0)
    loss: str = LOSS.field("squared_hinge")
    pair_selection: str = PAIR_SELECTION.field("all")
    pair_cost: Any = PAIR_COST.field(None)  # noqa: RUF009 (a field)
    margin: Any = MARGIN.field("unit")  # noqa: RUF009 (a field)
    normalization: str = NORMALIZATION.field("none")
    scale: Any = SCALE.field(None)  # noqa: RUF009 (a field)
    method: str = Parameter(
        choice(METHODS),
        "Pairs that a gradient step uses: query (all pairs of one query) or pair (random pairs).",
        OPTIMIZATION,
    ).field("query")
    learning_rate: str = Parameter(
        choice(LEARNING_RATES),
        "Size of step t: auto (chosen from the data), constant (--eta0) or inverse (--eta0 / t).",
        OPTIMIZATION,
    ).field("auto")
    eta0: float = Parameter(
        number(), "Step size for --learning-rate constant or inverse.", OPTIMIZATION
    ).field(1.0)
    average: bool = Parameter(FLAG, "Average the weights over all steps.", OPTIMIZATION).field(True)
    max_iter: int = Parameter(
        integer(at_least=1), "Maximum number of passes over the data (epochs).", OPTIMIZATION
    ).field(100)
    tol: float = Parameter(
        number(allow_equal=True),
        "Stop when the objective is, by estimate, within this relative distance of its minimum "
        "(1e-3: a thousandth).",
        OPTIMIZATION,
    ).field(1e-3)
    shuffle: bool = Parameter(FLAG, "Shuffle the queries in each pass.", OPTIMIZATION).field(True)
    early_stopping: bool = Parameter(
        FLAG,
        "Stop when the first of --metrics no longer improves on --valid, and keep the best "
        "weights.",
        OPTIMIZATION,
    ).field(False)
    # No flags: the command takes validation data as --valid, and the metric as --metrics.
    validation_fraction: float = Parameter(
        share(allow_ends=False),
        "Share of the training queries to hold out as validation data.",
        OPTIMIZATION,
        has_flag=False,
    ).field(0.1)
    n_iter_no_change: int = Parameter(
        integer(at_least=1),
        "Stop after this number of passes without improvement.",
        OPTIMIZATION,
    ).field(5)
    scoring: str = Parameter(
        TEXT, "Metric to evaluate on the validation data.", OPTIMIZATION, has_flag=False
    ).field("ndcg@10")
    n_jobs: int | None = N_JOBS.field(None)
