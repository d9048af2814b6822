"""Models on disk, marginrank's and others', and fitted models of other libraries."""

from marginrank.models.additive_model import AdditiveModel
from marginrank.models.foreign import foreign_scores
from marginrank.models.formats import is_model, read_any_model, read_model, write_model
from marginrank.models.kernel_model import KernelModel
from marginrank.models.linear_model import LinearModel, Training

__all__ = [
    "AdditiveModel",
    "KernelModel",
    "LinearModel",
    "Training",
    "foreign_scores",
    "is_model",
    "read_any_model",
    "read_model",
    "write_model",
]
