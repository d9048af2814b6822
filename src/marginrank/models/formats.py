"""Choosing a format: by name for writing, from the first bytes for reading."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from marginrank.models import json_model, liblinear, svmrank
from marginrank.models.linear_model import LinearModel

if TYPE_CHECKING:
    from marginrank.estimators import RankSVM, SGDRankSVM

Path = str | os.PathLike[str]


class Format(NamedTuple):
    """A format of model files: how its files begin, a reader and a writer."""

    beginning: bytes
    read: Callable[[str], LinearModel]
    write: Callable[[LinearModel, Path], None]


FORMATS = {
    "json": Format(b"{", json_model.read, json_model.write),
    "liblinear": Format(b"solver_type", liblinear.read, liblinear.write),
    "svmrank": Format(b"SVM-light Version", svmrank.read, svmrank.write),
}


def write_model(model: LinearModel, path: Path, format: str | None = None) -> None:
    """Write a model to a file.

    Parameters
    ----------
    model : LinearModel
        What to write.
    path : str or path
        The file; it appears only when it is complete.
    format : {"json", "liblinear", "svmrank"}, default="json"
        JSON keeps everything; the model formats of LIBLINEAR-ranksvm and of
        SVM^rank keep the weights.
    """
    _named("json" if format is None else format).write(model, path)


def read_model(path: Path, format: str | None = None) -> LinearModel:
    """Read a model file as plain data; see :func:`load_model`."""
    path = os.fspath(path)
    chosen = _recognize(path) if format is None else _named(format)
    return chosen.read(path)


def load_model(path: Path, format: str | None = None) -> "RankSVM | SGDRankSVM":
    """Read a model file; nothing in it is ever executed.

    Parameters
    ----------
    path : str or path
        A file of :meth:`marginrank.RankSVM.save`, LIBLINEAR-ranksvm, SVM^rank or SVM-light.
    format : {"json", "liblinear", "svmrank"}, optional
        The format; by default, that which the file begins like.

    Returns
    -------
    RankSVM or SGDRankSVM
        A fitted model. From JSON, it predicts bitwise what the saved one did. The other formats
        hold only weights: they become a RankSVM whose parameters have their defaults.

    Raises
    ------
    ValueError
        If the file is damaged, of a newer version or of another kind.
    """
    from marginrank import estimators  # late: it imports scikit-learn

    model = read_model(path, format)
    fitted: RankSVM | SGDRankSVM = getattr(estimators, model.estimator).from_linear_model(model)
    return fitted


def _named(format: str) -> Format:
    if format not in FORMATS:
        raise ValueError(f"format={format!r} must be one of {', '.join(map(repr, FORMATS))}.")
    return FORMATS[format]


def _recognize(path: str) -> Format:
    with open(path, "rb") as file:
        beginning = file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
    for format in FORMATS.values():
        if beginning.startswith(format.beginning):
            return format
    hint = "; pickles are never loaded" if beginning.startswith(b"\x80") else ""
    raise ValueError(
        f"{path} is no model file: it does not begin like marginrank's JSON, LIBLINEAR's or "
        f"SVM-light's{hint}."
    )
