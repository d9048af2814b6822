"""Export of a model: creation of the files with which a *target*, another system, runs it."""

import os
from pathlib import Path

import numpy as np

from marginrank._utils.atomic_files import atomic_write
from marginrank._utils.parameters import Mention, ParameterError, given
from marginrank._utils.types import Floats
from marginrank.export.names import IDENTIFIER, Names, check_names, identifier, names_of
from marginrank.export.registry import TARGETS, find_target
from marginrank.export.sums import Model, check_numbers, sum_over
from marginrank.export.text import LARGEST_FLOAT32
from marginrank.models import AdditiveModel, KernelModel, LinearModel

# Contents of an export's files. The key "" is the main file; others become a part of its name.
Files = dict[str, bytes]

KINDS = {"linear": LinearModel, "additive": AdditiveModel, "kernel": KernelModel}
FEWER = {
    "linear": "train a SparseRankSVM",
    "additive": "train on fewer features",
    "kernel": "train with fewer n_components",
}


def export_files(
    model: Model,
    to: str,
    *,
    name: str = "marginrank",
    names: Names | None = None,
    offset: float = 0.0,
) -> Files:
    """Return the contents of the files with which a target (such as "onnx") runs a model.

    Parameters
    ----------
    model : LinearModel, AdditiveModel or KernelModel
        Model to export.
    to : str
        One of :data:`~marginrank.export.registry.TARGETS`; "sql" with a dialect, as in "sql:mysql".
    name : str
        Name of the model in the target: letters, digits and ``_``.
    names : list of str, or dict of str to str, optional
        One name per feature, or new names for some features.
    offset : float
        Constant to add to every score.

    Returns
    -------
    dict of str to bytes
        The contents of each file. The key of the main file is "". Another key is a part of the file
        name: "features" is written to model.features.json if the main file is model.json.

    Raises
    ------
    ValueError
        If the target does not support the model, its size, its names or its numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from marginrank.models import LinearModel
    >>> print(export_files(LinearModel(np.array([0.5, 2.0]), {}), "lucene")[""].decode())
    0.5*doc['f1'].value
      + 2.0*doc['f2'].value
    <BLANKLINE>
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
    if not any(whole.counts.values()):
        raise ValueError(
            f"all {next(iter(whole.counts))} of the model are zero, so every document has the same "
            "score; train it with a larger C or without an l1 penalty."
        )
    if whole.offset and not target.has_offset:
        raise ParameterError(
            f"{to} does not support ",
            Mention("offset"),
            ", and does not need it, because it accepts negative scores; drop offset.",
        )
    if target.scores_in_float32 and abs(whole.offset) > LARGEST_FLOAT32:
        raise ParameterError(
            given("offset", whole.offset), f" is too large for {to} (float32); pass a smaller one."
        )
    n_used = len(whole.places)
    if target.limit is not None and n_used > target.limit.features:
        raise ValueError(
            f"the model uses {n_used:,} features, but {to} takes at most "
            f"{target.limit.features:,} "
            f"({target.limit.reason}); {FEWER[kind]}, or export to another target."
        )
    files: Files = target.writer()(whole)
    return files


def check_taken(model: Model, to: str) -> str:
    """Return the kind of a model, such as "linear"; raise an error if `to` does not support it."""
    kind = next(name for name, cls in KINDS.items() if isinstance(model, cls))
    if kind in find_target(to)[0].takes:
        return kind
    takers = [name for name, target in TARGETS.items() if kind in target.takes]
    advice = f"export it to {' or '.join(takers)}" if takers else "score with marginrank predict"
    raise ValueError(f"{to} does not support {kind} models; {advice}, or train a RankSVM.")


def counts_in(model: Model) -> dict[str, int]:
    """Return the numbers of nonzero parts of a model, as {"weights": 12} for a linear model."""
    return sum_over(model, names_of(model, None)).counts


def write_files(path: str | os.PathLike[str], files: Files) -> list[str]:
    """Write the files of an export, the main file to `path`, and return all paths."""
    paths = paths_of(path, files)
    for place, content in zip(paths, files.values(), strict=True):
        with atomic_write(place) as file:
            file.write(content)
    return paths


def paths_of(path: str | os.PathLike[str], parts: list[str] | Files) -> list[str]:
    """Return the paths of the files of an export, given the main path and the keys of the files.

    With the main path model.json, the key "features" becomes model.features.json. A key with its
    own ending keeps that ending: with model.sd, "names.json" becomes model.names.json.
    """
    main = Path(path)
    named = (part if "." in part else part + main.suffix for part in parts)
    return [
        str(main.with_name(f"{main.stem}.{name}")) if part else str(main)
        for part, name in zip(parts, named, strict=True)
    ]


def name_for(path: str | os.PathLike[str]) -> str:
    """Return the default name of an exported model: the file name as an identifier."""
    return identifier(Path(path).stem)


def offset_above_zero(scores: Floats) -> float:
    """Return an offset that makes all scores positive, for engines that reject negative scores."""
    if not scores.size:
        return 0.0
    # New documents may have lower scores, so the margin below the lowest score is as large as the
    # range of the scores.
    room = np.ptp(scores) or abs(scores.min())
    return float(room - scores.min())
