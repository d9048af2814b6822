"""From a model to the files of a target."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from marginrank._utils.atomic_files import atomic_write
from marginrank._utils.parameters import Mention, ParameterError, given
from marginrank._utils.types import Floats
from marginrank.export.curve_sum import (
    CurveSum,
    check_curves,
    curve_terms_of,
    grid_terms_of,
    places_of,
)
from marginrank.export.kernel_sum import KernelSum, check_kernel, kernel_of, landmarks_of
from marginrank.export.names import IDENTIFIER, Names, check_names, identifier, names_of
from marginrank.export.numbers import LARGEST_FLOAT32
from marginrank.export.registry import TARGETS, Target, find_target
from marginrank.export.weighted_sum import WeightedSum, terms_of
from marginrank.models import AdditiveModel, KernelModel, LinearModel
from marginrank.models.linear_model import check_weights

Files = dict[str, bytes]  # by what comes before the ending: "" for the main file
Model = LinearModel | AdditiveModel | KernelModel


def export_files(
    model: Model,
    to: str,
    *,
    name: str = "marginrank",
    names: Names | None = None,
    offset: float = 0.0,
) -> Files:
    """Return the files that a target runs a model from.

    Parameters
    ----------
    model : LinearModel, AdditiveModel or KernelModel
        What to export; models of a kind that the target does not take are refused with what does.
    to : str
        One of :data:`~marginrank.export.registry.TARGETS`; the target "sql" with a dialect behind
        a colon.
    name : str
        What to call the model there: letters, digits and ``_``.
    names : list of str, or dict of str to str, optional
        A name for each feature, or other names for some of them.
    offset : float
        What to add to every score.

    Returns
    -------
    dict of str to bytes
        The main file under "", others by what their names have before the ending.
    """
    target, dialect = find_target(to)
    model, kind = require_taken(model, to)
    _check_numbers(model)
    if not IDENTIFIER.fullmatch(name):
        raise ParameterError(
            given("name", name), " must be letters, digits and _, with a letter first."
        )
    if not np.isfinite(offset):
        raise ParameterError(given("offset", offset), " must be a finite number.")
    features = names_of(model, names)
    terms = terms_in(model, features)
    if target.by_name:
        check_names(features)
    _check_not_empty(model, kind)
    _check_fits(target, to, kind, len(places_in(model, features)), offset)
    more = _beside_terms(model, features)
    whole = SUMS[kind](name, tuple(features), terms, float(offset), dialect, **more)
    files: Files = target.writer(kind)(whole)
    return files


def require_taken(model: Model, to: str) -> tuple[Model, str]:
    """Return a model that the target takes, and its kind; others are refused with what can."""
    kind = next(name for name, cls in KINDS.items() if isinstance(model, cls))
    if not isinstance(model, Model) or kind not in find_target(to)[0].takes:
        raise ValueError(_refusal(kind, to))
    return model, kind


def terms_in(model: Model, names: list[str]) -> tuple[Any, ...]:
    """Return what adds to scores: a Term or a CurveTerm for a feature, or a Landmark each."""
    if isinstance(model, AdditiveModel):
        return curve_terms_of(model, names)
    if isinstance(model, KernelModel):
        return landmarks_of(model)
    return terms_of(model.coef, names)


def _beside_terms(model: Model, names: list[str]) -> dict[str, Any]:
    """Return what the sum of a model has beside terms."""
    if isinstance(model, AdditiveModel):
        return {"grids": grid_terms_of(model, names)}
    return kernel_of(model) if isinstance(model, KernelModel) else {}


def places_in(model: Model, names: list[str]) -> tuple[int, ...]:
    """Return the places of the features that add to scores."""
    if isinstance(model, KernelModel):
        return tuple(range(model.n_features))
    if isinstance(model, AdditiveModel):
        return places_of([*curve_terms_of(model, names), *grid_terms_of(model, names)])
    return tuple(term.place for term in terms_in(model, names))


def counts_in(model: Model) -> dict[str, int]:
    """Return how many terms of each kind add to scores."""
    names = names_of(model, None)
    n_terms = len(terms_in(model, names))
    if isinstance(model, AdditiveModel):
        return {"curves": n_terms, "interactions": len(grid_terms_of(model, names))}
    return {"landmarks" if isinstance(model, KernelModel) else "weights": n_terms}


def _check_numbers(model: Model) -> None:
    if isinstance(model, AdditiveModel):
        check_curves(model)
    elif isinstance(model, KernelModel):
        check_kernel(model)
    else:
        check_weights(model)


def write_files(path: str | os.PathLike[str], files: Files) -> list[str]:
    """Write the files of an export, the main one to `path` and the others beside it."""
    paths = paths_of(path, files)
    for place, content in zip(paths, files.values(), strict=True):
        with atomic_write(place) as file:
            file.write(content)
    return paths


def paths_of(path: str | os.PathLike[str], parts: list[str] | Files) -> list[str]:
    """Return where the files of an export go: model.json, model.features.json, ….

    A part that has an ending of its own keeps it.
    """
    main = Path(path)
    return [str(main.with_name(_file_name(main, part))) if part else str(main) for part in parts]


def _file_name(main: Path, part: str) -> str:
    return f"{main.stem}.{part}" if "." in part else f"{main.stem}.{part}{main.suffix}"


def name_for(path: str | os.PathLike[str]) -> str:
    """Return what a model is called if only its file has a name."""
    return identifier(Path(path).stem)


def offset_above_zero(scores: Floats) -> float:
    """Return what keeps scores above zero for engines that refuse others.

    It lifts the lowest score to the spread of all, so that a new document may fall as far below the
    lowest as that is below the highest.
    """
    if not scores.size:
        return 0.0
    room = np.ptp(scores) or abs(scores.min())
    return float(room - scores.min())


def _check_not_empty(model: Model, kind: str) -> None:
    """Raise ValueError if nothing adds to scores."""
    if not any(counts_in(model).values()):
        raise ValueError(
            f"all {TERMS[kind]} of the model are zero, so it gives every document the same score; "
            "train it again with a larger C or without l1."
        )


def _check_fits(target: Target, to: str, kind: str, n_used: int, offset: float) -> None:
    if offset and not target.has_offset:
        raise ParameterError(
            f"{to} has no place for ",
            Mention("offset"),
            ", and needs none: it ranks negative scores as well; leave it out.",
        )
    if target.scores_in_float32 and abs(offset) > LARGEST_FLOAT32:
        raise ParameterError(
            given("offset", offset), f" is too large for {to}: its scores are float32."
        )
    if target.limit is not None and n_used > target.limit.features:
        raise ValueError(
            f"the model uses {n_used:,} features, but {target.limit.reason}: {to} takes "
            f"{target.limit.features:,}; {FEWER[kind]}, or export to another target."
        )


KINDS = {
    "linear": LinearModel,
    "additive": AdditiveModel,
    "kernel": KernelModel,
}
SUMS: Mapping[str, Any] = {"linear": WeightedSum, "additive": CurveSum, "kernel": KernelSum}
TERMS = {"linear": "weights", "additive": "curves", "kernel": "landmarks"}
FEWER = {
    "linear": "train a SparseRankSVM",
    "additive": "train on fewer features",
    "kernel": "train with fewer n_components",
}
CALLED = {
    "linear": "a linear model is nothing that {to} runs",
    "additive": "an AdditiveRankSVM has curves in the place of weights, which {to} does not run",
    "kernel": "a KernelRankSVM has no weights of features, which {to} needs",
}


def _refusal(kind: str, to: str) -> str:
    """Say why a target does not take models of a kind, and what does."""
    takers = [name for name, target in TARGETS.items() if kind in target.takes]
    advice = f"export it to {' or '.join(takers)}" if takers else "score with marginrank predict"
    return f"{CALLED[kind].format(to=to)}; {advice}, or train a RankSVM."
