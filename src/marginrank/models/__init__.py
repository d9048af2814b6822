"""Fitted models as plain data, their files, and scores of models of other libraries.

The names of this package are imported on first use: solvers import only
:mod:`marginrank.models.fit_report` and should not load the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from marginrank.models.additive_model import AdditiveModel
    from marginrank.models.fit_report import FitReport
    from marginrank.models.foreign import foreign_reasons, foreign_scores
    from marginrank.models.formats import is_model, read_any_model, read_model, write_model
    from marginrank.models.fusion_model import FusionModel
    from marginrank.models.kernel_model import KernelModel
    from marginrank.models.linear_model import LinearModel

__all__ = [
    "AdditiveModel",
    "FitReport",
    "FusionModel",
    "KernelModel",
    "LinearModel",
    "foreign_reasons",
    "foreign_scores",
    "is_model",
    "read_any_model",
    "read_model",
    "write_model",
]

_MODULES = {
    "AdditiveModel": "additive_model",
    "FitReport": "fit_report",
    "FusionModel": "fusion_model",
    "KernelModel": "kernel_model",
    "LinearModel": "linear_model",
    "foreign_reasons": "foreign",
    "foreign_scores": "foreign",
    "is_model": "formats",
    "read_any_model": "formats",
    "read_model": "formats",
    "write_model": "formats",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'marginrank.models' has no attribute {name!r}")
    value = getattr(import_module(f"marginrank.models.{_MODULES[name]}"), name)
    globals()[name] = value  # later accesses do not call this function
    return value
