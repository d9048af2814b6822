"""From a model to the files of a target."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from marginrank._utils.atomic_files import atomic_write
from marginrank._utils.parameters import Mention, ParameterError, given
from marginrank._utils.types import Floats
from marginrank.export.names import IDENTIFIER, Names, check_names, identifier, names_of
from marginrank.export.numbers import LARGEST_FLOAT32
from marginrank.export.registry import TARGETS, Target, find_target
from marginrank.export.sums import Model, Sum, check_numbers, sum_over
from marginrank.models import AdditiveModel, KernelModel, LinearModel

Files = dict[str, bytes]  # by what comes before the ending: "" for the main file


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
    kind = check_taken(model, to)
    check_numbers(model)
    if not IDENTIFIER.fullmatch(name):
        raise ParameterError(
            given("name", name), " must be letters, digits and _, with a letter first."
        )
    if not np.isfinite(offset):
        raise ParameterError(given("offset", offset), " must be a finite number.")
    features = names_of(model, names)
    if target.by_name:
        check_names(features)
    whole = sum_over(model, features, name, float(offset), dialect)
    _check_fits(target, to, kind, whole)
    files: Files = target.writer(kind)(whole)
    return files


def check_taken(model: Model, to: str) -> str:
    """Return the kind of a model; raise ValueError with other targets if this does not take it."""
    kind = next(name for name, cls in KINDS.items() if isinstance(model, cls))
    if kind in find_target(to)[0].takes:
        return kind
    takers = [name for name, target in TARGETS.items() if kind in target.takes]
    advice = f"export it to {' or '.join(takers)}" if takers else "score with marginrank predict"
    raise ValueError(f"{CALLED[kind].format(to=to)}; {advice}, or train a RankSVM.")


def counts_in(model: Model) -> dict[str, int]:
    """Return how many terms of each kind add to scores."""
    return sum_over(model, names_of(model, None)).counts


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


def _check_fits(target: Target, to: str, kind: str, whole: Sum[Any]) -> None:
    if not any(whole.counts.values()):
        raise ValueError(
            f"all {next(iter(whole.counts))} of the model are zero, so it gives every document the "
            "same score; train it again with a larger C or without l1."
        )
    if whole.offset and not target.has_offset:
        raise ParameterError(
            f"{to} has no place for ",
            Mention("offset"),
            ", and needs none: it ranks negative scores as well; leave it out.",
        )
    if target.scores_in_float32 and abs(whole.offset) > LARGEST_FLOAT32:
        raise ParameterError(
            given("offset", whole.offset), f" is too large for {to}: its scores are float32."
        )
    n_used = len(whole.places)
    if target.limit is not None and n_used > target.limit.features:
        raise ValueError(
            f"the model uses {n_used:,} features, but {target.limit.reason}: {to} takes "
            f"{target.limit.features:,}; {FEWER[kind]}, or export to another target."
        )


KINDS = {"linear": LinearModel, "additive": AdditiveModel, "kernel": KernelModel}
FEWER = {
    "linear": "train a SparseRankSVM",
    "additive": "train on fewer features",
    "kernel": "train with fewer n_components",
}
CALLED = {
    "linear": "{to} does not support linear models",
    "additive": "{to} does not support additive models",
    "kernel": "a KernelRankSVM has no weights of features, which {to} needs",
}
