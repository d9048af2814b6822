"""Flags of the command tune: the parameters to search, and how candidates are scored."""

from dataclasses import fields
from typing import Any

from marginrank._utils.parameters import (
    TEXT,
    Mention,
    Parameter,
    ParameterError,
    choice,
    declared,
    number,
    or_none,
)
from marginrank.cli.flags.declaration import Flags
from marginrank.cli.flags.shared import EVALUATION, OUTPUT, count, sizes_of, switch, text
from marginrank.models.parameters import (
    BINS_TRIED,
    LOSS_WEIGHT,
    OPTIMIZATION,
    SMOOTHNESS_TRIED,
    AdditiveDeclaration,
)

LISTS = "Parameters to search: one value, or several to try, separated by commas"
FIXED = "Additive models: parameters that are not searched"
SEARCH = "Extent of the search"
NONE = "none"  # how the value None is written on the command line

OF_TRAIN = declared(AdditiveDeclaration)
DEFAULTS: dict[str, Any] = {f.name: f.default for f in fields(AdditiveDeclaration)}


def _listed(name: str, more: str = ".", default: Any = "", unset: str | None = None) -> Any:
    """Return a dataclass field for a flag that takes several values of a parameter, like "-C 1,10".

    The help is the help of the flag in `marginrank train-additive`, with `more` at its end.
    """
    if default == "":
        default = NONE if DEFAULTS[name] is None else DEFAULTS[name]
    constraint = or_none(TEXT) if default is None else TEXT
    help = f"{OF_TRAIN[name].help[:-1]}{more}"
    return Parameter(constraint, help, LISTS, unset=unset, metavar="VALUES").field(default)


def _shared(name: str, more: str = ".", panel: str = OPTIMIZATION) -> Any:
    parameter = OF_TRAIN[name]
    help = f"{parameter.help[:-1]}{more}"
    return parameter._replace(help=help, panel=panel).field(DEFAULTS[name])


class SearchOptions(Flags):
    """Flags of tune that list the values of each parameter; all combinations are searched."""

    C: str | None = Parameter(
        or_none(TEXT),
        LOSS_WEIGHT.help,
        LISTS,
        "-C",
        unset="--points values, derived from the data",
        metavar="VALUES",
    ).field(None)
    loss: str = _listed("loss")
    pair_selection: str = _listed("pair_selection")
    pair_cost: str = _listed("pair_cost", "; none: all pairs weigh the same.")
    margin: str = _listed("margin")
    normalization: str | None = _listed(
        "normalization",
        default=None,
        unset="none,query (if -C is given: none; with --additive: pairs)",
    )
    scale: str | None = _listed(
        "scale", default=None, unset="none,query (if -C is given: none; with --additive: standard)"
    )
    additive: bool = switch(
        "Tune an additive model (one curve per feature, as train-additive) instead of a linear "
        "one.",
        LISTS,
    )
    smoothness: str = Parameter(
        TEXT,
        "Penalty on the roughness of curves, for --additive.",
        LISTS,
        metavar="VALUES",
    ).field(",".join(f"{s:g}" for s in SMOOTHNESS_TRIED))
    max_bins: str = _listed("max_bins", ", for --additive.", str(BINS_TRIED))
    categorical_features: str | None = _shared("categorical_features", panel=FIXED)
    interactions: int = _shared("interactions", panel=FIXED)
    group_l1: float = _shared("group_l1", panel=FIXED)
    monotonic_cst: str | None = _shared("monotonic_cst", panel=FIXED)
    solver: str = _shared("solver")
    tol: float = _shared("tol", "; the search itself uses at least 1e-4, with --additive 1e-3.")
    max_iter: int = _shared("max_iter")
    points: int | None = count(
        "Number of values of C to try. With --additive, more are tried while the smallest or "
        "largest is the best.",
        SEARCH,
        unset="21 (with --budget: 11; with --additive: 3)",
        at_most=1000,
    )
    budget: float | None = Parameter(
        or_none(number()),
        "Time limit of the search in seconds. All combinations are tried with few values of C, "
        "then more values near the best C while time remains (unless -C lists the values).",
        SEARCH,
        unset="no limit",
        metavar="SECONDS",
    ).field(None)


class ScoringOptions(Flags):
    """Flags of tune for scoring: data and rule that select parameters, and test data."""

    valid: str | None = text(
        "Validation data to choose the parameters on, instead of cross-validation.",
        EVALUATION,
        unset="cross-validation",
    )
    valid_group: str | None = sizes_of("valid")
    folds: int = count(
        "Number of cross-validation folds; each query is in one fold.",
        EVALUATION,
        5,
        at_least=2,
        at_most=1000,
    )
    rule: str = Parameter(
        choice(("best", "one_se")),
        "Which parameters to select: best (highest mean over the folds) or one_se (smallest C "
        "whose mean is within one standard error of the highest).",
        EVALUATION,
    ).field("best")
    nested: bool = switch(
        "Also estimate the metric on new queries without bias, by nested cross-validation: one "
        "search per fold, so it takes --folds times as long.",
        EVALUATION,
    )
    test: str | None = text(
        "Test data: print the metric of the trained model on them.", EVALUATION, unset="no test"
    )
    test_group: str | None = sizes_of("test")
    plot: str | None = text(
        "Image file for the metric against C, such as search.png.", OUTPUT, unset="no image"
    )

    def __post_init__(self) -> None:
        """Raise ValueError if the value of a flag is invalid, or a rule needs cross-validation."""
        super().__post_init__()
        if self.rule == "one_se" and self.valid is not None:
            message = " needs the standard error over folds; drop --valid."
            raise ParameterError(Mention("rule", self.rule), message)
