"""Export of fusion models (hybrid search) to settings of search engines that combine searches.

A fusion model adds the weighted, normalized scores of several searches, its *signals*.
``registry.py`` lists which normalizers a search engine supports;
``marginrank.data.score_normalization`` defines them.
"""

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

import numpy as np

from marginrank._utils.parameters import ParameterError, given
from marginrank.export.exporting import Files
from marginrank.export.names import IDENTIFIER, Names, check_names, renamed
from marginrank.export.registry import FUSION_TARGETS, FusionTarget, find_fusion_target
from marginrank.models import FusionModel


class WeightedSignals(NamedTuple):
    """A fusion model to export: the searches that it combines (`signals`) and their weights."""

    name: str  # name of the model: letters, digits and _
    signals: tuple[str, ...]
    weights: tuple[float, ...]
    normalizer: str
    rrf_constant: float
    depth: int


def fusion_files(
    model: FusionModel, to: str, *, name: str = "marginrank", names: Names | None = None
) -> Files:
    """Return the contents of files that make a search engine combine searches like a fusion model.

    A fusion model adds the weighted, normalized scores of several searches, its *signals*.

    Parameters
    ----------
    model : FusionModel
        Model to export.
    to : str
        One of :data:`~marginrank.export.registry.FUSION_TARGETS`.
    name : str
        Name of the model in the search engine: letters, digits and ``_``.
    names : list of str, or dict of str to str, optional
        One name per signal, or new names for some signals, such as ``{"bm25": "bm25(title)"}``.

    Returns
    -------
    dict of str to bytes
        The contents of each file. The key of the main file is "". Another key is a part of the file
        name: "search" is written to fusion.search.json if the main file is fusion.json.

    Raises
    ------
    ValueError
        If the search engine does not support the model's normalizer, weights or number of signals.

    Examples
    --------
    >>> from marginrank.models import FusionModel
    >>> print(fusion_files(FusionModel(("bm25", "dense"), [0.25, 0.75]), "weaviate")[""].decode())
    {
     "alpha": 0.75,
     "fusionType": "relativeScoreFusion"
    }
    <BLANKLINE>
    """
    target = find_fusion_target(to)
    if not IDENTIFIER.fullmatch(name):
        raise ParameterError(
            given("name", name), " must be letters, digits and _, with a letter first."
        )
    _check_runs(model, to, target)
    signals = renamed(list(model.signals), names, "signal")
    check_names(signals)
    write = getattr(import_module("marginrank.export.targets.fusion"), target.write)
    files: Files = write(
        WeightedSignals(
            name,
            tuple(signals),
            tuple(model.weights.tolist()),
            model.normalizer,
            model.rrf_constant,
            model.depth,
        )
    )
    return files


def _check_runs(model: FusionModel, to: str, target: FusionTarget) -> None:
    """Raise ValueError if a search engine cannot compute the scores of a fusion model."""
    if model.query_features:
        raise ValueError(
            f"the weights depend on the query feature {model.query_features[0].name!r}, which {to} "
            "does not know; fit without query_features, or fuse with marginrank."
        )
    _check_normalizer(model, to, target)
    negative = np.flatnonzero(model.weights < 0.0)
    if negative.size and not target.negative:
        raise ValueError(
            f"the weight of {model.signals[negative[0]]!r} is {model.weights[negative[0]]:g}, but "
            f"{to} has no negative weights; fit with positive=True, or export to "
            f"{_targets_with(lambda other: other.negative)}."
        )
    fewest, most = target.signals
    if not fewest <= len(model.signals) <= most:
        limit = f"exactly {most}" if fewest == most else f"at most {most}"
        raise ValueError(
            f"the model has {len(model.signals)} signals, but {to} supports {limit}; fit on fewer "
            "signals, or export to another target."
        )
    _check_constant(model, to, target)


def _check_normalizer(model: FusionModel, to: str, target: FusionTarget) -> None:
    own = model.normalizer
    if own in target.equal and np.ptp(model.weights):
        raise ValueError(
            f"{to} runs normalizer={own!r} with equal weights only; fit with normalizer="
            f"{_either(target.normalizers)}, or export to "
            f"{_targets_with(lambda other: own in other.normalizers)}."
        )
    runs = (*target.normalizers, *target.equal)
    if own not in runs:
        raise ValueError(
            f"{to} cannot run normalizer={own!r}; fit with normalizer={_either(runs)}, or export "
            f"to {_targets_with(lambda other: own in other.normalizers)}."
        )


def _check_constant(model: FusionModel, to: str, target: FusionTarget) -> None:
    if model.normalizer != "rrf" or target.constants is None:
        return
    low, high = target.constants
    constant = model.rrf_constant
    if not (low <= constant <= high and float(constant).is_integer()):
        raise ValueError(
            f"rrf_constant={constant:g} must be an integer from {low} to {high} for {to}; fit with "
            "another one."
        )


def _targets_with(is_one: Callable[[FusionTarget], bool]) -> str:
    return _either([name for name, target in FUSION_TARGETS.items() if is_one(target)], shown=str)


def _either(choices: tuple[str, ...] | list[str], shown: Callable[[str], str] = repr) -> str:
    return " or ".join(map(shown, choices))
