"""Models on disk: marginrank's own JSON, and the files of LIBLINEAR-ranksvm and of SVM^rank."""

from marginrank.models.formats import load_model, save_model

__all__ = ["load_model", "save_model"]
