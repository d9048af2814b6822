"""Flags of tune: the candidates, and how they are scored."""

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
from marginrank.cli.flags.shared import EVALUATION, OUTPUT, count, switch, text
from marginrank.models.parameters import (
    BINS_TRIED,
    LOSS_WEIGHT,
    SMOOTHNESS_TRIED,
    AdditiveDeclaration,
)

LISTS = "Model (separate several values to try by commas)"
SEARCH = "Search"
NONE = "none"  # command-line text of None

OF_TRAIN = declared(AdditiveDeclaration)
DEFAULTS: dict[str, Any] = {f.name: f.default for f in fields(AdditiveDeclaration)}


def _listed(name: str, more: str = ".", default: Any = "", unset: str | None = None) -> Any:
    """Return a field for several values of a parameter of train or train-additive."""
    if default == "":
        default = NONE if DEFAULTS[name] is None else DEFAULTS[name]
    constraint = or_none(TEXT) if default is None else TEXT
    help = f"{OF_TRAIN[name].help[:-1]}{more}"
    return Parameter(constraint, help, LISTS, unset=unset).field(default)


def _shared(name: str, more: str = ".") -> Any:
    parameter = OF_TRAIN[name]
    return parameter._replace(help=f"{parameter.help[:-1]}{more}").field(DEFAULTS[name])


class SearchOptions(Flags):
    """The candidates: all combinations of the values that are listed."""

    C: str | None = Parameter(
        or_none(TEXT), LOSS_WEIGHT.help, LISTS, "-C", unset="a grid derived from the data"
    ).field(None)
    loss: str = _listed("loss")
    pair_selection: str = _listed("pair_selection")
    pair_cost: str = _listed("pair_cost", "; none: 1 for every pair.")
    margin: str = _listed("margin")
    normalization: str | None = _listed(
        "normalization", default=None, unset="none,query; only none with -C; pairs with --additive"
    )
    scale: str | None = _listed(
        "scale", default=None, unset="none,query; only none with -C; standard with --additive"
    )
    additive: bool = switch(
        "Search additive models (one curve per feature, see train-additive).", LISTS
    )
    smoothness: str = Parameter(
        TEXT, "Penalty on the roughness of curves, for --additive.", LISTS
    ).field(",".join(f"{s:g}" for s in SMOOTHNESS_TRIED))
    max_bins: str = _listed("max_bins", ", for --additive.", str(BINS_TRIED))
    categorical_features: str | None = _shared("categorical_features")
    interactions: int = _shared("interactions")
    group_l1: float = _shared("group_l1")
    monotonic_cst: str | None = _shared("monotonic_cst")
    solver: str = _shared("solver")
    tol: float = _shared(
        "tol", "; the search before the last fit uses at least 1e-4 (1e-3 with --additive)."
    )
    max_iter: int = _shared("max_iter")
    points: int | None = count(
        "Number of values of C to try. With --additive, the grid is extended while "
        "its first or last value is the best.",
        SEARCH,
        unset="21; 11 with --budget; 3 with --additive",
        at_most=1000,
    )
    budget: float | None = Parameter(
        or_none(number()),
        "Time limit of the search in seconds. It tries a coarse grid of C for all combinations of "
        "the other parameters, then finer grids around the best C. With -C, only its values.",
        SEARCH,
        unset="no limit",
    ).field(None)


class ScoringOptions(Flags):
    """Data and rule to score candidates by, and data to evaluate the selected model on."""

    valid: str | None = text(
        "Validation data to score candidates on, instead of folds.",
        EVALUATION,
        unset="folds of DATA",
    )
    valid_group: str | None = text(
        "File of query sizes for --valid, in the format of --group.", EVALUATION, unset="one query"
    )
    folds: int = count(
        "Number of cross-validation folds; each query is in one fold.",
        EVALUATION,
        5,
        at_least=2,
        at_most=1000,
    )
    rule: str = Parameter(
        choice(("best", "one_se")),
        "Candidate to select: best (the highest mean) or one_se (the smallest C within one "
        "standard error of the highest mean).",
        EVALUATION,
    ).field("best")
    nested: bool = switch(
        "Nested cross-validation: repeat the search within each training fold, for an unbiased "
        "estimate on new queries.",
        EVALUATION,
    )
    test: str | None = text(
        "Test data to evaluate the selected model on.", EVALUATION, unset="no test"
    )
    test_group: str | None = text(
        "File of query sizes for --test, in the format of --group.", EVALUATION, unset="one query"
    )
    plot: str | None = text(
        "File to plot the metric against C to, such as search.png.", OUTPUT, unset="no plot"
    )

    def __post_init__(self) -> None:
        """Raise ValueError for an invalid value, or for a rule that needs folds."""
        super().__post_init__()
        if self.rule == "one_se" and self.valid is not None:
            message = " needs the standard error over folds; drop --valid."
            raise ParameterError(Mention("rule", self.rule), message)
