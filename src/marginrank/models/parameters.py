"""The parameters of the learners, each declared once.

Estimators, checks, flags of the command line and model files follow from the fields below: see
:mod:`marginrank._utils.parameters`. What is computed from their values, and the names of losses,
solvers and metrics, which others may add to, are in the modules of the fits. Help should be there
at once: NumPy is not imported before a value is checked, and the dataclasses here are made without
the methods that nobody calls.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from marginrank._utils.parameters import (
    FLAG,
    TEXT,
    Mention,
    Parameter,
    ParameterError,
    Wording,
    accepted_by,
    choice,
    declared,
    given,
    integer,
    number,
    or_none,
    share,
)

if TYPE_CHECKING:
    from marginrank._utils.types import Floats

MODEL = "Model"
OPTIMISATION = "Optimisation"

PAIR_SELECTIONS = ("all", "adjacent")
NORMALIZATIONS = ("none", "pairs", "query")
PAIR_COSTS = ("gain", "ndcg")
MARGINS = ("unit", "label", "gain")
SCALES = ("standard", "range", "query")
NO_SCALE = "none"  # the same as None, which has no name on the command line
LEAST_SCALE, MOST_SCALE = 1e-150, 1e150  # their squares are numbers
LEARNING_RATES = ("auto", "inverse", "constant")
METHODS = ("query", "pair")
NO_FLOAT64 = "mps"  # a device that cannot add in double precision
VARIANTS = ("plain", "away", "pairwise")
SMOOTHNESS_TRIED = (0.03, 3.0)  # by a search
BINS_TRIED = 32  # by a search
CURVES_TRIED = "pairs"  # the normalization of additive models in a search
LINES_TRIED = ("none", "query")  # normalizations and scales of linear models, by a search
LARGEST_SEED = 2**32 - 1  # that NumPy takes


def ndcg_cutoff(objective: Any) -> int | None:
    """Return the k of "ndcg@k", or None for "pairs"; raise ParameterError for anything else.

    Examples
    --------
    >>> from marginrank.models.parameters import ndcg_cutoff
    >>> ndcg_cutoff("ndcg@10")
    10
    """
    text = objective if isinstance(objective, str) else ""
    match = re.fullmatch(r"ndcg@([1-9][0-9]*)", text, re.IGNORECASE)
    if match is None and text != "pairs":
        raise ParameterError(
            given("objective", objective), " must be 'pairs', or 'ndcg@' and a cut-off: 'ndcg@10'."
        )
    return None if match is None else int(match[1])


def check_pair_cost(cost: Any) -> None:
    """Raise ParameterError for an unknown name; a matrix is checked with the labels."""
    if isinstance(cost, str) and cost not in PAIR_COSTS:
        names = ", ".join(map(repr, PAIR_COSTS))
        takes = f"None, {names}, a matrix or a callable of two labels"
        raise ParameterError(
            given("pair_cost", cost), " must be ", Wording(takes, f"one of {names}"), "."
        )


def check_margin(margin: Any) -> None:
    """Raise ParameterError if `margin` is neither a known name nor a callable."""
    if not callable(margin) and not (isinstance(margin, str) and margin in MARGINS):
        names = ", ".join(map(repr, MARGINS))
        takes = f"{names} or a callable of labels"
        raise ParameterError(
            given("margin", margin), " must be ", Wording(takes, f"one of {names}"), "."
        )


def no_scale(scale: Any) -> bool:
    """Return True if features are to be left as they are."""
    return scale is None or (isinstance(scale, str) and scale == NO_SCALE)


def check_scale(scale: Any) -> None:
    """Raise ParameterError if `scale` is neither a known name nor a vector of positive numbers."""
    if isinstance(scale, str) and scale not in (NO_SCALE, *SCALES):
        raise _wrong_scale(scale)
    if scale is not None and not isinstance(scale, str):
        check_scale_values(scale)


def check_scale_values(scale: Any, n_features: int | None = None) -> "Floats":
    """Return an array of scales as positive numbers, one for each feature if it is known."""
    import numpy as np

    try:
        values = np.asarray(scale, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise _wrong_scale(scale) from None
    if values.ndim != 1:
        raise _wrong_scale(scale)
    if n_features is not None and values.size != n_features:
        raise ParameterError(
            Mention("scale"),
            f" has {values.size} entries and must have one per feature, {n_features}.",
        )
    wrong = np.flatnonzero(~((values >= LEAST_SCALE) & (values <= MOST_SCALE)))
    if wrong.size:
        raise ParameterError(
            Mention("scale"),
            f"[{wrong[0]}] is {values[wrong[0]]:g}; it must be positive, from {LEAST_SCALE:g} to "
            f"{MOST_SCALE:g}. 1 leaves a feature as it is.",
        )
    return values.copy()


def _wrong_scale(scale: Any) -> ParameterError:
    names = ", ".join(map(repr, SCALES))
    return ParameterError(
        given("scale", scale),
        " must be ",
        Wording(
            f"None, {names} or an array with one number per feature", f"one of 'none', {names}"
        ),
        ".",
    )


def check_device(device: Any) -> None:
    """Raise ParameterError if `device` is no name of one; the fit finds out whether it exists."""
    if isinstance(device, str) and device.partition(":")[0] == NO_FLOAT64:
        raise ParameterError(
            given("device", device), " has no float64 to sum in; use a CUDA or ROCm GPU, or None."
        )
    if not isinstance(device, str) or not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise ParameterError(
            given("device", device), " must be None, 'cpu', 'cuda' or 'cuda:1' and so on."
        )


def _check_threads(value: Any) -> None:
    from marginrank._utils.threads import effective_threads

    effective_threads(value)


def _check_categorical(value: Any) -> None:
    from marginrank.data.feature_choice import check_listed_features

    check_listed_features("categorical_features", value)


def _check_monotonic(value: Any) -> None:
    from marginrank.data.feature_choice import directions

    directions(value)


# Shared by several learners, which may have defaults of their own.
LOSS_WEIGHT = Parameter(number(), "Weight of the loss.", MODEL, letter="-C")
LOSS = Parameter(TEXT, "Loss of a pair: squared_hinge, hinge, huber or logistic.", MODEL)
SMOOTH_LOSS = Parameter(TEXT, "Loss of a pair: squared_hinge, huber or logistic.", MODEL)
PAIR_SELECTION = Parameter(
    choice(PAIR_SELECTIONS), "Pairs of a query: all, or those of adjacent labels.", MODEL
)
PAIR_COST = Parameter(
    accepted_by(check_pair_cost), "What multiplies the loss of a pair: gain or ndcg.", MODEL
)
MARGIN = Parameter(
    accepted_by(check_margin), "Margin of a pair: unit, or a difference of label or gain.", MODEL
)
OBJECTIVE = Parameter(
    accepted_by(ndcg_cutoff),
    "What to learn: all pairs alike (pairs), or the first documents of each query, as ndcg@10.",
    MODEL,
)
NORMALIZATION = Parameter(
    choice(NORMALIZATIONS),
    "Divide the loss by nothing (none), by the number of pairs, or by those of each query.",
    MODEL,
)
SCALE = Parameter(
    accepted_by(check_scale),
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
        or_none(accepted_by(check_device)),
        "Compute with PyTorch on a GPU (cuda, cuda:1), or as there on the processor (cpu).",
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
        TEXT,
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
        TEXT,
        "proximal_newton; fenchel with a radius; truncated_gradient without.",
        OPTIMISATION,
    ).field("proximal_newton")
    variant: str = Parameter(
        choice(VARIANTS), "Steps of fenchel: plain, away or pairwise.", OPTIMISATION
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
        TEXT, "Metric on validation data.", OPTIMISATION, has_flag=False
    ).field("ndcg@10")
    n_jobs: int | None = N_JOBS.field(None)


# Parameters that estimators have beside those of a fit, with their defaults.
_BATCH_ONLY = {"random_state": 0, "verbose": 0, "warm_start": False}
_ONLINE_ONLY = {"random_state": 0, "verbose": 0}
ESTIMATOR_ONLY: dict[str, dict[str, Any]] = {
    "RankSVM": _BATCH_ONLY,
    "SparseRankSVM": _BATCH_ONLY,
    "SGDRankSVM": _ONLINE_ONLY,
    "AdditiveRankSVM": _ONLINE_ONLY,
    "KernelRankSVM": _ONLINE_ONLY,
}
DECLARATIONS: dict[str, tuple[type, ...]] = {
    "RankSVM": (LinearDeclaration, DeviceDeclaration),
    "SparseRankSVM": (SparseDeclaration, DeviceDeclaration),
    "SGDRankSVM": (OnlineDeclaration,),
    "AdditiveRankSVM": (AdditiveDeclaration,),
    "KernelRankSVM": (LinearDeclaration,),
}


def check_stored(estimator: str, parameters: dict[str, Any], more: Iterable[str] = ()) -> None:
    """Raise ValueError for parameters that an estimator does not have, or wrong values of them.

    Names of losses, solvers and metrics are looked up by a fit. `more` are names of parameters that
    are checked elsewhere.
    """
    known = {
        name: parameter
        for kind in DECLARATIONS[estimator]
        for name, parameter in declared(kind).items()
    }
    unknown = parameters.keys() - {*known, *ESTIMATOR_ONLY[estimator], *more}
    if unknown:
        raise ValueError(f"unknown: {', '.join(map(repr, sorted(unknown)))}")
    for name in known.keys() & parameters.keys():
        known[name].constraint.check(name, parameters[name])


def recorded_parameters(estimator: str, parameters: Any) -> dict[str, Any]:
    """Return the parameters of a fit as those of the estimator, by name."""
    own = {field.name: getattr(parameters, field.name) for field in fields(parameters)}
    return dict(sorted((ESTIMATOR_ONLY[estimator] | own).items()))
