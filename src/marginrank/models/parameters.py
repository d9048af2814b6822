"""Declarations of the parameters of all estimators and commands; each parameter has one.

Checks, command-line flags and model files derive from the fields below, see
:mod:`marginrank._utils.parameters`. Names of losses, solvers and metrics, which users can extend,
are checked by the fits. For a fast ``--help``, NumPy is not imported before a value is checked, and
dataclasses are built without methods that are not used.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

from marginrank._utils.parameters import (
    FLAG,
    TEXT,
    Mention,
    Parameter,
    ParameterError,
    Wording,
    accepted_by,
    choice,
    given,
    integer,
    number,
    or_none,
    share,
)

if TYPE_CHECKING:
    from marginrank._utils.types import Floats

MODEL = "Model and loss"
OPTIMIZATION = "Optimization"

PAIR_SELECTIONS = ("all", "adjacent", "within:d", "label-within:d")
NORMALIZATIONS = ("none", "pairs", "query")
PAIR_COSTS = ("gain", "ndcg")
MARGINS = ("unit", "label", "gain")
SCALES = ("standard", "range", "query")
NO_SCALE = "none"  # value of --scale on the command line for scale=None
LEAST_SCALE, MOST_SCALE = 1e-150, 1e150  # bounds of scales: their squares do not under- or overflow
NO_FLOAT64 = "mps"  # the PyTorch device without float64
VARIANTS = ("plain", "short", "away", "pairwise")
# Values that searches try by default.
SMOOTHNESS_TRIED = (0.03, 3.0)
BINS_TRIED = 32
ADDITIVE_TRIED = "pairs"  # normalization of additive models
LINEAR_TRIED = ("none", "query")  # normalizations and scales of linear models
LARGEST_SEED = 2**32 - 1  # NumPy's limit


def ndcg_cutoff(objective: Any) -> int | None:
    """Return the k of the parameter `objective` if it is "ndcg@k", and None if it is "pairs".

    Raise ParameterError for other values.
    """
    text = objective if isinstance(objective, str) else ""
    match = re.fullmatch(r"ndcg@([1-9][0-9]*)", text, re.IGNORECASE)
    if match is None and text != "pairs":
        raise ParameterError(
            given("objective", objective), " must be 'pairs' or 'ndcg@k', such as 'ndcg@10'."
        )
    return None if match is None else int(match[1])


class PairSelection(NamedTuple):
    """Condition on the pairs to train on: a maximum difference between the two documents.

    The difference is between labels if `by_label`, else between dense ranks of labels in the query.
    """

    width: int | None  # maximum difference; None for all pairs
    by_label: bool = False


def selected_pairs(selection: Any) -> PairSelection:
    """Parse the parameter `pair_selection`, such as "within:2"; raise ParameterError if unknown."""
    if selection == "all":
        return PairSelection(None)
    if selection == "adjacent":
        return PairSelection(1)
    text = selection if isinstance(selection, str) else ""
    match = re.fullmatch(r"(label-)?within:([1-9][0-9]{0,8})", text)
    if match is None:
        names = ", ".join(map(repr, PAIR_SELECTIONS))
        raise ParameterError(
            given("pair_selection", selection), f" must be one of {names}, with a d such as 2."
        )
    return PairSelection(int(match[2]), match[1] is not None)


def check_pair_cost(cost: Any) -> None:
    """Raise ParameterError if `pair_cost` is an unknown name; fits check matrices and callables."""
    if isinstance(cost, str) and cost not in PAIR_COSTS:
        takes = "None, {names}, a matrix or a callable of two labels"
        raise _must_be("pair_cost", cost, takes, PAIR_COSTS)


def check_margin(margin: Any) -> None:
    """Raise ParameterError if `margin` is a number or an unknown name; fits check a matrix."""
    is_matrix = hasattr(margin, "__len__") and not isinstance(margin, str)
    if not (callable(margin) or is_matrix or (isinstance(margin, str) and margin in MARGINS)):
        takes = "{names}, a matrix, or a callable of labels or of two labels"
        raise _must_be("margin", margin, takes, MARGINS)


def takes_two_labels(margin: Any) -> bool:
    """Return whether the parameter `margin` is a matrix, or a function of two labels."""
    if isinstance(margin, str):
        return False
    if not callable(margin):
        return True
    try:
        signature(margin).bind(0.0)
    except TypeError:
        return True
    except ValueError:  # functions of NumPy have no signature
        return getattr(margin, "nin", 1) == 2
    return False


def _must_be(name: str, value: Any, takes: str, choices: Iterable[str]) -> ParameterError:
    """Return a ParameterError for an invalid value, with the valid values.

    In Python they are the text `takes`; on the command line only the names `choices` are valid.
    """
    names = ", ".join(map(repr, choices))
    wording = Wording(takes.format(names=names), f"one of {names}")
    return ParameterError(given(name, value), " must be ", wording, ".")


def no_scale(scale: Any) -> bool:
    """Return whether the parameter `scale` means that features are not scaled."""
    return scale is None or (isinstance(scale, str) and scale == NO_SCALE)


def check_scale(scale: Any) -> None:
    """Raise ParameterError if `scale` is neither a known name nor a vector of positive numbers."""
    if isinstance(scale, str) and scale not in (NO_SCALE, *SCALES):
        raise _wrong_scale(scale)
    if scale is not None and not isinstance(scale, str):
        check_scale_values(scale)


def check_scale_values(scale: Any, n_features: int | None = None) -> "Floats":
    """Return divisors of features as a vector; raise ParameterError if one is not positive.

    If `n_features` is given, there must be one divisor per feature.
    """
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
            f"{MOST_SCALE:g}. Use 1 for a feature that is not scaled.",
        )
    return values.copy()


def _wrong_scale(scale: Any) -> ParameterError:
    names = ", ".join(map(repr, SCALES))
    takes = f"None, {names} or an array with one number per feature"
    return _must_be("scale", scale, takes, (NO_SCALE, *SCALES))


def check_device(device: Any) -> None:
    """Raise ParameterError if `device` has a wrong form; fits check whether the device exists."""
    if isinstance(device, str) and device.partition(":")[0] == NO_FLOAT64:
        raise ParameterError(
            given("device", device), " has no float64; use a CUDA or ROCm GPU, or None."
        )
    if not isinstance(device, str) or not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise ParameterError(
            given("device", device), " must be None, 'cpu', 'cuda' or 'cuda:<index>'."
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


# Parameters that several learners share, with different defaults.
LOSS_WEIGHT = Parameter(
    number(),
    "Inverse strength of the regularization, as in scikit-learn: a larger C fits the training data "
    "more closely.",
    MODEL,
    letter="-C",
)
LOSS = Parameter(
    TEXT,
    "Loss of a pair: squared_hinge, hinge, huber (squared_hinge, but linear for large errors) or "
    "logistic.",
    MODEL,
)
PAIR_SELECTION = Parameter(
    accepted_by(selected_pairs),
    "Pairs of documents of a query to learn from: all (with different labels); adjacent (no other "
    "label of the query lies between the two); within:N (fewer than N labels lie between); or "
    "label-within:N (labels differ by at most N).",
    MODEL,
)
PAIR_COST = Parameter(
    accepted_by(check_pair_cost),
    "Weight of a pair: gain (difference of 2^label) or ndcg (NDCG lost by swapping the two "
    "documents in the ideal ranking).",
    MODEL,
    unset="all pairs weigh the same",
)
MARGIN = Parameter(
    accepted_by(check_margin),
    "Margin, the smallest score difference at which a pair has no loss: unit (1), label "
    "(difference of the labels) or gain (difference of 2^label).",
    MODEL,
)
OBJECTIVE = Parameter(
    accepted_by(ndcg_cutoff),
    "What to optimize: pairs (all pairs count) or ndcg@K, such as ndcg@10 (each pair is weighted "
    "by its effect on NDCG@K).",
    MODEL,
)
NORMALIZATION = Parameter(
    choice(NORMALIZATIONS),
    "Total loss: none (sum over all pairs), pairs (mean over all pairs), or query (mean over the "
    "pairs of each query, then over queries, so that all queries count the same).",
    MODEL,
)
SCALE = Parameter(
    accepted_by(check_scale),
    "Divide each feature by its standard deviation (standard), by its standard deviation within "
    "queries (query) or by its maximum minus minimum (range), or leave it as it is (none).",
    MODEL,
    unset="none",
)
TOL = Parameter(
    number(),
    "Stop when the objective is within this relative distance of its minimum (1e-6: a millionth).",
    OPTIMIZATION,
)
MAX_ITER = Parameter(integer(at_least=1), "Maximum number of solver iterations.", OPTIMIZATION)
RANDOM_STATE = Parameter(
    integer(at_least=0, at_most=LARGEST_SEED), "Seed of the random number generator.", OPTIMIZATION
)
# The flag --n-jobs is declared in cli/flags/shared.py, because commands that do not train have it.
N_JOBS = Parameter(
    accepted_by(_check_threads, int),
    "Number of threads.",
    OPTIMIZATION,
    has_flag=False,
    unset="one per core",
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DeviceDeclaration:
    """Declared parameter `device`, described in :class:`~marginrank.RankSVM`."""

    device: str | None = Parameter(
        or_none(accepted_by(check_device)),
        "Compute with PyTorch on a GPU (cuda, cuda:1) or on the CPU (cpu).",
        OPTIMIZATION,
        unset="the CPU, without PyTorch",
        metavar="DEVICE",
    ).field(None)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LinearDeclaration:
    """Declared parameters of linear fits, described in :class:`~marginrank.RankSVM`."""

    C: float = LOSS_WEIGHT.field(1.0)
    lam: float | None = Parameter(
        or_none(number()),
        "Strength of the regularization, instead of C: lam = 1 / (2 C).",
        MODEL,
        unset="1 / (2 C)",
    ).field(None)
    objective: str = OBJECTIVE.field("pairs")
    loss: str = LOSS.field("squared_hinge")
    solver: str = Parameter(
        TEXT,
        "Solver: newton or tron; for --loss hinge: smoothing, ocas or bmrm; auto takes newton or "
        "smoothing.",
        OPTIMIZATION,
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
    """Declared parameters of additive fits, described in :class:`~marginrank.AdditiveRankSVM`."""

    C: float | None = LOSS_WEIGHT._replace(  # type: ignore[assignment]  # None: from the data
        constraint=or_none(number()), unset="documents per feature / 5"
    ).field(None)
    normalization: str = NORMALIZATION.field("query")
    max_bins: int = Parameter(
        integer(at_least=1, at_most=254),
        "Maximum number of linear pieces of a curve; the pieces meet at quantiles of the feature.",
        MODEL,
    ).field(16)
    smoothness: float | None = Parameter(
        or_none(number(above=1e-12)),
        "Penalty on the roughness of curves; larger values give smoother curves.",
        MODEL,
        unset="1 / cube root of the number of documents",
    ).field(None)
    categorical_features: Any = Parameter(  # noqa: RUF009 (a field)
        or_none(accepted_by(_check_categorical)),
        "Categorical features: names or numbers (1 is the first), separated by commas.",
        MODEL,
        unset="none",
        metavar="LIST",
    ).field(None)
    interactions: int = Parameter(
        integer(at_least=0),
        "Number of pairs of features that get a joint function; the most promising are chosen.",
        MODEL,
    ).field(0)
    group_l1: float = Parameter(
        number(allow_equal=True),
        "Group-lasso penalty on curves: larger values drop more features.",
        MODEL,
    ).field(0.0)
    monotonic_cst: Any = Parameter(  # noqa: RUF009 (a field)
        or_none(accepted_by(_check_monotonic)),
        "Features whose curves must increase (+1) or decrease (-1), by name or number (1 is the "
        "first), such as bm25:+1,age:-1.",
        MODEL,
        unset="none",
        metavar="LIST",
    ).field(None)
    scale: Any = SCALE.field("standard")  # noqa: RUF009 (a field)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SparseDeclaration:
    """Declared parameters of sparse fits, described in :class:`~marginrank.SparseRankSVM`."""

    radius: float | None = Parameter(
        or_none(number()),
        "Upper bound on the sum of absolute weights, instead of C; smaller values keep "
        "fewer features.",
        MODEL,
        unset="C is used",
    ).field(None)
    C: float | None = Parameter(
        or_none(number()),
        "Inverse strength of the penalty; smaller values keep fewer features.",
        MODEL,
        "-C",
        unset="50 times the smallest C that keeps a feature",
    ).field(None)
    l1_ratio: float = Parameter(
        share(),
        "Share of the l1 norm in the penalty (the rest is the squared l2 norm), as in "
        "scikit-learn's ElasticNet.",
        MODEL,
    ).field(1.0)
    positive: bool = Parameter(FLAG, "Require all weights to be zero or more.", MODEL).field(False)
    objective: str = OBJECTIVE.field("pairs")
    loss: str = LOSS.field("squared_hinge")
    solver: str = Parameter(
        TEXT,
        "Solver: proximal_newton, fenchel (only with --radius) or truncated_gradient (not with "
        "--radius).",
        OPTIMIZATION,
    ).field("proximal_newton")
    variant: str = Parameter(
        choice(VARIANTS),
        "Kind of Frank-Wolfe step, for --solver fenchel: plain, short (no line search), away or "
        "pairwise (both converge linearly).",
        OPTIMIZATION,
    ).field("plain")
    tol: float = TOL.field(1e-6)
    max_iter: int = MAX_ITER.field(1000)
    pair_selection: str = PAIR_SELECTION.field("all")
    pair_cost: Any = PAIR_COST.field(None)  # noqa: RUF009 (a field)
    normalization: str = NORMALIZATION.field("pairs")
    scale: Any = SCALE.field("standard")  # noqa: RUF009 (a field)
    n_jobs: int | None = N_JOBS.field(None)


# Parameters of estimators that are not parameters of fits, with their defaults.
_BATCH_ONLY = {"random_state": 0, "verbose": 0, "warm_start": False}
_ONLINE_ONLY = {"random_state": 0, "verbose": 0}
ESTIMATOR_ONLY: dict[str, dict[str, Any]] = {
    "RankSVM": _BATCH_ONLY,
    "SparseRankSVM": _BATCH_ONLY,
    "SGDRankSVM": _ONLINE_ONLY,
    "AdditiveRankSVM": _ONLINE_ONLY,
    "KernelRankSVM": _ONLINE_ONLY,
    "FusionRanker": {"random_state": 0},
}


def recorded_parameters(estimator: str, parameters: Any) -> dict[str, Any]:
    """Return all parameters of an estimator by name, as recorded in a model.

    The parameters of its fits have the given values, all others their defaults.
    """
    own = {field.name: getattr(parameters, field.name) for field in fields(parameters)}
    return dict(sorted((ESTIMATOR_ONLY[estimator] | own).items()))
