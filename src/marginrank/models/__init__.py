"""Models on disk: marginrank's own JSON, and the files of LIBLINEAR-ranksvm and of SVM^rank."""

from marginrank.models.formats import load_model, read_model, write_model
from marginrank.models.linear_model import LinearModel, Training

__all__ = ["LinearModel", "Training", "load_model", "read_model", "write_model"]
