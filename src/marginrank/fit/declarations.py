"""The parameters of the learners, each declared once.

Estimators, checks, flags of the command line and model files follow from the fields below: see
:mod:`marginrank._utils.parameters`. What is computed from their values is in the modules of the
learners. Help should be there at once: NumPy is not imported before a value is checked, and the
dataclasses here are made without the methods that nobody calls.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from marginrank._utils.parameters import (
    FLAG,
    Parameter,
    accepted_by,
    calling,
    choice,
    integer,
    number,
    or_none,
    share,
)

MODEL = "Model"
OPTIMISATION = "Optimisation"

PAIR_SELECTIONS = ("all", "adjacent")
NORMALIZATIONS = ("none", "pairs", "query")
LEARNING_RATES = ("auto", "inverse", "constant")
METHODS = ("query", "pair")
SMOOTHNESS_TRIED = (0.03, 3.0)  # by a search
BINS_TRIED = 32  # by a search
CURVES_TRIED = "pairs"  # the normalization of additive models in a search
LINES_TRIED = ("none", "query")  # normalizations and scales of linear models, by a search
LARGEST_SEED = 2**32 - 1  # that NumPy takes


def _check_loss(value: Any) -> None:
    from marginrank.objective.losses import get_loss

    get_loss(value)


def _check_objective(value: Any) -> None:
    from marginrank.fit.goals import cutoff_of

    cutoff_of(value)


def _check_cost(value: Any) -> None:
    from marginrank.objective.pair_weights import check_cost

    check_cost(value)


def _check_margin(value: Any) -> None:
    from marginrank.objective.margins import check_margin

    check_margin(value)


def _check_scale(value: Any) -> None:
    from marginrank.fit.scaling import check_scale

    check_scale(value)


def _check_device(value: Any) -> None:
    from marginrank.fit.devices import check_device

    check_device(value)


def _check_metric(value: Any) -> None:
    from marginrank.metrics import get_metric

    with calling("metric", "scoring"):
        get_metric(value)


def _check_threads(value: Any) -> None:
    from marginrank._utils.threads import effective_threads

    effective_threads(value)


def _check_categorical(value: Any) -> None:
    from marginrank.data.feature_choice import check_listed_features

    check_listed_features("categorical_features", value)


def _check_monotonic(value: Any) -> None:
    from marginrank.data.feature_choice import check_monotonic

    check_monotonic(value)


def _solvers() -> Iterable[str]:
    from marginrank.solvers import solver_names

    return ("auto", *solver_names(regularized=False))


def _sparse_solvers() -> Iterable[str]:
    from marginrank.solvers import solver_names

    return solver_names(regularized=True)


def _variants() -> Iterable[str]:
    from marginrank.solvers.sparse.frank_wolfe import VARIANTS

    return VARIANTS


# Shared by several learners, which may have defaults of their own.
LOSS_WEIGHT = Parameter(number(), "Weight of the loss.", MODEL, letter="-C")
LOSS = Parameter(
    accepted_by(_check_loss), "Loss of a pair: squared_hinge, hinge, huber or logistic.", MODEL
)
SMOOTH_LOSS = Parameter(
    accepted_by(_check_loss), "Loss of a pair: squared_hinge, huber or logistic.", MODEL
)
PAIR_SELECTION = Parameter(
    choice(PAIR_SELECTIONS), "Pairs of a query: all, or those of adjacent labels.", MODEL
)
PAIR_COST = Parameter(
    accepted_by(_check_cost), "What multiplies the loss of a pair: gain or ndcg.", MODEL
)
MARGIN = Parameter(
    accepted_by(_check_margin), "Margin of a pair: unit, or a difference of label or gain.", MODEL
)
OBJECTIVE = Parameter(
    accepted_by(_check_objective),
    "What to learn: all pairs alike (pairs), or the first documents of each query, as ndcg@10.",
    MODEL,
)
NORMALIZATION = Parameter(
    choice(NORMALIZATIONS),
    "Divide the loss by nothing (none), by the number of pairs, or by those of each query.",
    MODEL,
)
SCALE = Parameter(
    accepted_by(_check_scale),
    "Divide features by nothing (none), or as they vary: standard, range, or query for inside "
    "queries.",
    MODEL,
)
TOL = Parameter(number(), "Relative distance to the optimum.", OPTIMISATION)
MAX_ITER = Parameter(integer(at_least=1), "Limit on the iterations.", OPTIMISATION)
RANDOM_STATE = Parameter(
    integer(at_least=0, at_most=LARGEST_SEED), "Seed of samples and orders.", OPTIMISATION
)
# Not only learners have threads: on the command line, they come with the data.
N_JOBS = Parameter(
    accepted_by(_check_threads, int),
    "Number of threads; all by default.",
    OPTIMISATION,
    has_flag=False,
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DeviceDeclaration:
    """Where a fit computes; see :class:`~marginrank.RankSVM`."""

    device: str | None = Parameter(
        or_none(accepted_by(_check_device)),
        "Compute with PyTorch on a card (cuda, cuda:1), or as there on the processor (cpu).",
        OPTIMISATION,
    ).field(None)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LinearDeclaration:
    """What a linear RankSVM takes; see :class:`~marginrank.RankSVM`."""

    C: float = LOSS_WEIGHT.field(1.0)
    lam: float | None = Parameter(
        or_none(number()),
        "Weight of the squared norm of w, instead of C, which is 1 / (2 lam).",
        MODEL,
    ).field(None)
    objective: str = OBJECTIVE.field("pairs")
    loss: str = LOSS.field("squared_hinge")
    solver: str = Parameter(
        choice(_solvers),
        "newton or tron; for hinge smoothing, ocas or bmrm; auto is the fastest.",
        OPTIMISATION,
    ).field("auto")
    tol: float = TOL.field(1e-6)
    max_iter: int = MAX_ITER.field(1000)
    pair_selection: str = PAIR_SELECTION.field("all")
    pair_cost: Any = PAIR_COST.field(None)  # noqa: RUF009 (a field)
    margin: Any = MARGIN.field("unit")  # noqa: RUF009 (a field)
    normalization: str = NORMALIZATION.field("none")
    scale: Any = SCALE.field(None)  # noqa: RUF009 (a field)
    n_jobs: int | None = N_JOBS.field(None)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AdditiveDeclaration(LinearDeclaration):
    """What an additive RankSVM takes; see :class:`~marginrank.AdditiveRankSVM`."""

    C: float = LOSS_WEIGHT.field(10.0)
    normalization: str = NORMALIZATION.field("query")
    max_bins: int = Parameter(
        integer(at_least=1, at_most=254), "Largest number of bins of a feature.", MODEL
    ).field(16)
    smoothness: float | None = Parameter(
        or_none(number(above=1e-12)),
        "Weight of the roughness of curves; a straight line has none. By default the number of "
        "features / 200.",
        MODEL,
    ).field(None)
    categorical_features: Any = Parameter(  # noqa: RUF009 (a field)
        or_none(accepted_by(_check_categorical)),
        "Features whose values are numbers of categories: their names or numbers, with commas.",
        MODEL,
    ).field(None)
    interactions: int = Parameter(
        integer(at_least=0), "Number of pairs of features that may act together.", MODEL
    ).field(0)
    group_l1: float = Parameter(
        number(allow_equal=True), "Group-lasso penalty on curves; drops whole features.", MODEL
    ).field(0.0)
    monotonic_cst: Any = Parameter(  # noqa: RUF009 (a field)
        or_none(accepted_by(_check_monotonic)),
        "Features whose curves only rise or fall: names or numbers with a sign, as bm25:+1,age:-1.",
        MODEL,
    ).field(None)
    scale: Any = SCALE.field("standard")  # noqa: RUF009 (a field)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SparseDeclaration:
    """What a sparse RankSVM takes; see :class:`~marginrank.SparseRankSVM`."""

    radius: float | None = Parameter(
        or_none(number()), "Bound on the l1 norm of w, instead of C.", MODEL
    ).field(None)
    C: float | None = Parameter(
        or_none(number()), "Weight of the loss; chosen from the data by default.", MODEL, "-C"
    ).field(None)
    l1_ratio: float = Parameter(share(), "Share of the l1 norm in the penalty.", MODEL).field(1.0)
    positive: bool = Parameter(FLAG, "No weight may be negative.", MODEL).field(False)
    loss: str = SMOOTH_LOSS.field("squared_hinge")
    solver: str = Parameter(
        choice(_sparse_solvers),
        "proximal_newton; fenchel with a radius; truncated_gradient without.",
        OPTIMISATION,
    ).field("proximal_newton")
    variant: str = Parameter(
        choice(_variants), "Steps of fenchel: plain, away or pairwise.", OPTIMISATION
    ).field("plain")
    tol: float = TOL.field(1e-6)
    max_iter: int = MAX_ITER.field(1000)
    pair_selection: str = PAIR_SELECTION.field("all")
    pair_cost: Any = PAIR_COST.field(None)  # noqa: RUF009 (a field)
    normalization: str = NORMALIZATION.field("pairs")
    scale: Any = SCALE.field("standard")  # noqa: RUF009 (a field)
    n_jobs: int | None = N_JOBS.field(None)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OnlineDeclaration:
    """What online learning takes; see :class:`~marginrank.SGDRankSVM`."""

    C: float = LOSS_WEIGHT.field(1.0)
    loss: str = LOSS.field("squared_hinge")
    pair_selection: str = PAIR_SELECTION.field("all")
    pair_cost: Any = PAIR_COST.field(None)  # noqa: RUF009 (a field)
    margin: Any = MARGIN.field("unit")  # noqa: RUF009 (a field)
    normalization: str = NORMALIZATION.field("none")
    scale: Any = SCALE.field(None)  # noqa: RUF009 (a field)
    method: str = Parameter(
        choice(METHODS), "Steps over a whole query, or over a pair drawn at random.", OPTIMISATION
    ).field("query")
    learning_rate: str = Parameter(
        choice(LEARNING_RATES),
        "Length of a step: auto; or eta0, constant or by the inverse of its number.",
        OPTIMISATION,
    ).field("auto")
    eta0: float = Parameter(number(), "Length of a step that is not auto.", OPTIMISATION).field(1.0)
    average: bool = Parameter(FLAG, "Average the weights over the steps.", OPTIMISATION).field(True)
    max_iter: int = Parameter(
        integer(at_least=1), "Limit on the passes over the data.", OPTIMISATION
    ).field(100)
    tol: float = Parameter(
        number(allow_equal=True), "Relative distance to the optimum, by estimate.", OPTIMISATION
    ).field(1e-3)
    shuffle: bool = Parameter(
        FLAG, "Visit the queries in a new order in each pass.", OPTIMISATION
    ).field(True)
    early_stopping: bool = Parameter(
        FLAG, "Stop by a metric on validation data.", OPTIMISATION
    ).field(False)
    # The command line holds no queries out and takes --metrics for scoring.
    validation_fraction: float = Parameter(
        share(allow_ends=False), "Share of the queries held out.", OPTIMISATION, has_flag=False
    ).field(0.1)
    n_iter_no_change: int = Parameter(
        integer(at_least=1), "Passes without progress after which it stops.", OPTIMISATION
    ).field(5)
    scoring: str = Parameter(
        accepted_by(_check_metric), "Metric on validation data.", OPTIMISATION, has_flag=False
    ).field("ndcg@10")
    n_jobs: int | None = N_JOBS.field(None)
