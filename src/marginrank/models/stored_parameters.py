"""Checks of estimator parameters that are read from model files."""

from collections.abc import Iterable
from typing import Any

from marginrank._utils.parameters import declared
from marginrank.models.fusion_parameters import FusionDeclaration
from marginrank.models.online_parameters import OnlineDeclaration
from marginrank.models.parameters import (
    ESTIMATOR_ONLY,
    AdditiveDeclaration,
    DeviceDeclaration,
    LinearDeclaration,
    SparseDeclaration,
)

DECLARATIONS: dict[str, tuple[type, ...]] = {
    "RankSVM": (LinearDeclaration, DeviceDeclaration),
    "SparseRankSVM": (SparseDeclaration, DeviceDeclaration),
    "SGDRankSVM": (OnlineDeclaration,),
    "AdditiveRankSVM": (AdditiveDeclaration,),
    "KernelRankSVM": (LinearDeclaration,),
    "FusionRanker": (FusionDeclaration,),
}


def check_stored(estimator: str, parameters: dict[str, Any], more: Iterable[str] = ()) -> None:
    """Raise ValueError if a parameter of a model file is unknown or has an invalid value.

    `more` are names of parameters that the caller checks. Names of losses, solvers and metrics are
    checked when the model is fitted again.
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
