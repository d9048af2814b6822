"""Reading and writing of model files; the first bytes of a file determine its format."""

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from marginrank.models import (
    fusion_model,
    json_model,
    kernel_model,
    search_engines,
    text_formats,
)
from marginrank.models.additive_model import AdditiveModel
from marginrank.models.fusion_model import FusionModel
from marginrank.models.kernel_model import KernelModel
from marginrank.models.linear_model import LinearModel, check_weights

Path = str | os.PathLike[str]


class ModelFormat(NamedTuple):
    """A file format of linear models: its first bytes, its reader and, if supported, its writer."""

    beginning: bytes
    read: Callable[[str], LinearModel]
    write: Callable[[LinearModel, Path], None] | None = None


FORMATS = {
    "ranklib": ModelFormat(text_formats.RANKLIB_FIRST_LINE.encode(), text_formats.read_ranklib),
    "solr": ModelFormat(b"{", search_engines.read_solr),
    "elasticsearch": ModelFormat(b"{", search_engines.read_plugin),
    "liblinear": ModelFormat(
        b"solver_type", text_formats.read_liblinear, text_formats.write_liblinear
    ),
    "svmrank": ModelFormat(
        text_formats.SVMRANK_FIRST_LINE.encode(),
        text_formats.read_svmrank,
        text_formats.write_svmrank,
    ),
    "json": ModelFormat(b"{", json_model.read, json_model.write),
}

# First bytes of pickles, including pickles compressed by joblib, and endings of their names.
PICKLE_BEGINNINGS = (b"\x80", b"x\x01", b"x\x5e", b"x\x9c", b"x\xda")
PICKLE_ENDINGS = (".pkl", ".pickle", ".joblib")


def write_model(
    model: LinearModel | AdditiveModel | FusionModel, path: Path, format: str | None = None
) -> None:
    """Write a linear, additive or fusion model to a file.

    Parameters
    ----------
    model : LinearModel, AdditiveModel or FusionModel
        The model.
    path : str or path
        The file; it is written completely or not at all.
    format : {"json", "liblinear", "svmrank"}, default="json"
        JSON stores everything; the formats of LIBLINEAR-ranksvm and SVM^rank store the weights of
        a linear model.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from marginrank.models import LinearModel, read_model, write_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.txt")
    ...     write_model(LinearModel(np.array([0.5, -1.0]), {}), path, format="svmrank")
    ...     read_model(path).coef
    array([ 0.5, -1. ])
    """
    name = "json" if format is None else format
    if not isinstance(model, LinearModel):
        if name != "json":
            kind = type(model).__name__
            raise ValueError(f"format={format!r} does not support a {kind}; use 'json'.")
        if isinstance(model, FusionModel):
            fusion_model.write(model, path)
        else:
            json_model.write(model, path)
        return
    writers = {name: known.write for name, known in FORMATS.items() if known.write is not None}
    _check_name(name, writers)
    check_weights(model)
    writers[name](model, path)


def read_model(path: Path, format: str | None = None) -> LinearModel:
    """Read a file with a linear model as a LinearModel; see :func:`marginrank.load_model`."""
    path = os.fspath(path)
    if format is None:
        return _recognize(path).read(path)
    _check_name(format, FORMATS)
    return FORMATS[format].read(path)


def read_any_model(path: Path) -> LinearModel | AdditiveModel | KernelModel | FusionModel:
    """Read a file with a model of any kind as plain data; see :func:`marginrank.load_model`."""
    path = os.fspath(path)
    if kernel_model.is_kernel_model(path):
        return kernel_model.read(path)
    if json_model.is_additive_model(path):
        return json_model.read_additive(path)
    if fusion_model.is_fusion_model(path):
        return fusion_model.read(path)
    return read_model(path)


def is_model(path: Path) -> bool:
    """Return whether the first bytes of a file match a known model format."""
    path = os.fspath(path)
    return _linear_format(path) is not None or kernel_model.is_kernel_model(path)


def _check_name(format: str, known: Iterable[str]) -> None:
    if format not in known:
        raise ValueError(f"format={format!r} must be one of {', '.join(map(repr, sorted(known)))}.")


def _recognize(path: str) -> ModelFormat:
    for kind, is_one in (
        ("an additive", json_model.is_additive_model),
        ("a kernel", kernel_model.is_kernel_model),
        ("a fusion", fusion_model.is_fusion_model),
    ):
        if is_one(path):
            raise ValueError(
                f"{path} is {kind} model, but a linear model is required; read it with "
                "marginrank.load_model, or score with marginrank predict."
            )
    format = _linear_format(path)
    if format is not None:
        return format
    if _beginning(path).startswith(PICKLE_BEGINNINGS) or path.endswith(PICKLE_ENDINGS):
        raise ValueError(
            f"{path} is a pickle, and pickles are never loaded, because they can run any code; "
            "save models of marginrank with model.save, and score with other models in Python "
            "(marginrank.models.foreign_scores)."
        )
    if _beginning(path).startswith(b"PK\x03\x04"):
        raise ValueError(
            f"{path} is damaged or not a model: it is a zip archive without a KernelRankSVM; save "
            "the model again."
        )
    raise ValueError(
        f"{path} is not a model file of marginrank, LIBLINEAR-ranksvm, SVM^rank, RankLib, Solr or "
        "Elasticsearch. Score with "
        "models of other libraries in Python (marginrank.models.foreign_scores)."
    )


def _linear_format(path: str) -> ModelFormat | None:
    beginning = _beginning(path)
    if beginning.startswith(b"{"):
        return FORMATS[search_engines.engine_of(path) or "json"]
    return next((f for f in FORMATS.values() if beginning.startswith(f.beginning)), None)


def _beginning(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
