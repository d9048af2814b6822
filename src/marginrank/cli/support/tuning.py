"""Flags of tune: the candidates, and how they are scored."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from marginrank._utils.parameters import (
    FLAG,
    TEXT,
    Mention,
    Parameter,
    ParameterError,
    check_choice,
    check_parameters,
    choice,
    declared,
    given,
    integer,
    number,
    or_none,
)
from marginrank.cli.support.options import EVALUATION, OUTPUT
from marginrank.models.parameters import (
    BINS_TRIED,
    CURVES_TRIED,
    LINES_TRIED,
    LOSS_WEIGHT,
    PAIR_COSTS,
    SMOOTHNESS_TRIED,
    AdditiveDeclaration,
)

if TYPE_CHECKING:
    from marginrank.selection.space import SearchSpace

LISTS = "Model (several values with commas)"
SEARCH = "Search"
MOST_POINTS = 1000
MOST_FOLDS = 1000
NONE = "none"  # what the parameters whose default is None have for it on the command line
AXES = ("loss", "pair_selection", "pair_cost", "margin")
AXES_BY_LEARNER = ("normalization", "scale")  # whose default depends on what is searched
SHARED = ("solver", "tol", "max_iter")  # by all candidates

OF_CURVES = (
    "categorical_features",
    "interactions",
    "group_l1",
    "monotonic_cst",
)  # of all additive candidates
CURVES_ONLY = ("smoothness", "max_bins", *OF_CURVES)  # what lines have no use for

_OF_TRAIN = declared(AdditiveDeclaration)
_DEFAULTS: dict[str, Any] = {f.name: f.default for f in fields(AdditiveDeclaration)}


def _listed(name: str) -> Any:
    """Return a field for several values of a parameter of train."""
    default = _DEFAULTS[name]
    return Parameter(TEXT, _OF_TRAIN[name].help, LISTS).field(NONE if default is None else default)


def _of_curves(name: str, default: str) -> Any:
    """Return a field for several values of a parameter of train-additive."""
    told = f"{_OF_TRAIN[name].help[:-1]}, with --additive."
    return Parameter(TEXT, told, LISTS).field(default)


def _shared(name: str) -> Any:
    """Return a field for a parameter of train."""
    return _OF_TRAIN[name].field(_DEFAULTS[name])


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SearchOptions:
    """The candidates: all combinations of the values that are listed."""

    C: str | None = Parameter(
        or_none(TEXT), f"{LOSS_WEIGHT.help[:-1]}; by default a grid from the data.", LISTS, "-C"
    ).field(None)
    loss: str = _listed("loss")
    pair_selection: str = _listed("pair_selection")
    pair_cost: str = _listed("pair_cost")
    margin: str = _listed("margin")
    normalization: str | None = Parameter(
        or_none(TEXT),
        f"{_OF_TRAIN['normalization'].help[:-1]}; none,query by default, none with -C, pairs with "
        "--additive.",
        LISTS,
    ).field(None)
    scale: str | None = Parameter(
        or_none(TEXT),
        f"{_OF_TRAIN['scale'].help[:-1]}; none,query by default, none with -C, standard with "
        "--additive.",
        LISTS,
    ).field(None)
    additive: bool = Parameter(
        FLAG, "Search additive models (one curve per feature, see train-additive).", LISTS
    ).field(False)
    smoothness: str = _of_curves("smoothness", ",".join(f"{s:g}" for s in SMOOTHNESS_TRIED))
    max_bins: str = _of_curves("max_bins", str(BINS_TRIED))
    categorical_features: str | None = _shared("categorical_features")
    interactions: int = _shared("interactions")
    group_l1: float = _shared("group_l1")
    monotonic_cst: str | None = _shared("monotonic_cst")
    solver: str = _shared("solver")
    tol: float = (
        _OF_TRAIN["tol"]
        ._replace(
            help=f"{_OF_TRAIN['tol'].help[:-1]}; candidates have 1e-5, additive ones 1e-3, or this "
            "if it is larger."
        )
        .field(_DEFAULTS["tol"])
    )
    max_iter: int = _shared("max_iter")
    points: int | None = Parameter(
        or_none(integer(at_least=1, at_most=MOST_POINTS)),
        "Length of the grid of C from the data: 21 by default, 11 with --budget, and 3 with "
        "--additive, which goes on where an end is the best.",
        SEARCH,
    ).field(None)
    budget: float | None = Parameter(
        or_none(number()),
        "Seconds for the search: a coarse grid of C for all combinations, then finer ones around "
        "the best; with -C, the values that are given and no others.",
        SEARCH,
    ).field(None)

    def __post_init__(self) -> None:
        """Raise ValueError before anything is read."""
        check_parameters(self)

    def space(self, n_jobs: int | None) -> "SearchSpace":
        """Return the candidates; raise ValueError for a wrong entry of a list by its name."""
        from marginrank.fit.linear import Parameters
        from marginrank.selection.space import SearchSpace

        shared: dict[str, Any] = {
            "n_jobs": n_jobs,
            **{name: getattr(self, name) for name in SHARED},
        }
        axes = {name: _entries(name, getattr(self, name)) for name in AXES}
        for name in AXES_BY_LEARNER:
            listed = getattr(self, name)
            axes[name] = _entries(name, self._default(name) if listed is None else listed)
        shared |= {name: values[0] for name, values in axes.items()}
        Cs = None if self.C is None else _numbers("C", self.C)
        if not self.additive:
            return SearchSpace(Parameters(**shared), axes, Cs, self.points)
        from marginrank.additive.fit import AdditiveParameters
        from marginrank.additive.selection import AdditiveLearner

        base = AdditiveParameters(**shared, **{name: getattr(self, name) for name in OF_CURVES})
        axes["max_bins"] = _numbers("max_bins", self.max_bins)
        axes["smoothness"] = _numbers("smoothness", self.smoothness)
        return SearchSpace(base, axes, Cs, self.points, AdditiveLearner())

    def _default(self, name: str) -> str:
        """Return the values to try if none are listed."""
        if self.additive:
            return CURVES_TRIED if name == "normalization" else str(_DEFAULTS[name])
        return ",".join(LINES_TRIED if self.C is None else LINES_TRIED[:1])


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ScoringOptions:
    """What candidates are scored on, and the model that is written."""

    valid: str | None = Parameter(
        or_none(TEXT), "Data to score candidates on, instead of folds.", EVALUATION
    ).field(None)
    valid_group: str | None = Parameter(
        or_none(TEXT), "File of query sizes for --valid, as --group for DATA.", EVALUATION
    ).field(None)
    folds: int = Parameter(
        integer(at_least=2, at_most=MOST_FOLDS), "Number of folds of whole queries.", EVALUATION
    ).field(5)
    rule: str = Parameter(
        choice(("best", "one_se")),
        "The highest mean (best), or the smallest C within a standard error of it (one_se).",
        EVALUATION,
    ).field("best")
    nested: bool = Parameter(
        FLAG,
        "Repeat the whole search without each fold, to estimate how good the chosen model is.",
        EVALUATION,
    ).field(False)
    test: str | None = Parameter(or_none(TEXT), "Data to evaluate the model on.", EVALUATION).field(
        None
    )
    test_group: str | None = Parameter(
        or_none(TEXT), "File of query sizes for --test, as --group for DATA.", EVALUATION
    ).field(None)
    plot: str | None = Parameter(
        or_none(TEXT), "File to draw the metric against C to, such as tune.png.", OUTPUT
    ).field(None)

    def __post_init__(self) -> None:
        """Raise ValueError before anything is read."""
        check_parameters(self)
        if self.rule == "one_se" and self.valid is not None:
            told = " needs a standard error over folds, and --valid has none; drop one of them."
            raise ParameterError(Mention("rule", self.rule), told)


def _entries(name: str, listed: str) -> list[Any]:
    """Return the values of a list, each checked as train does."""
    values: list[Any] = []
    for entry in _split(listed):
        if name == "pair_cost":
            check_choice(name, entry, (NONE, *PAIR_COSTS))
        else:
            _OF_TRAIN[name].constraint.check(name, entry)
        is_none = entry == NONE and name in ("pair_cost", "scale")
        values.append(None if is_none else entry)
    return _distinct(name, values)


def _split(listed: str) -> list[str]:
    return [entry.strip() for entry in listed.split(",")]


def _numbers(name: str, listed: str) -> list[float]:
    """Return the values of a list of numbers, each checked as train does."""
    values: list[Any] = []
    for entry in _split(listed):
        try:
            values.append((int if name == "max_bins" else float)(entry))
        except ValueError:
            values.append(entry)
        _OF_TRAIN[name].constraint.check(name, values[-1])
    return _distinct(name, values)


def _distinct(name: str, values: list[Any]) -> list[Any]:
    """Raise ValueError if an entry is there twice."""
    for k, value in enumerate(values):
        if value in values[:k]:
            raise ParameterError(
                given(name, NONE if value is None else value), " is given twice; drop one of them."
            )
    return values
