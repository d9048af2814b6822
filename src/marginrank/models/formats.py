"""Choosing a format: by name for writing, from the first bytes for reading."""

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from marginrank.models import (
    additive_model,
    json_model,
    kernel_model,
    liblinear,
    ranklib,
    search_engines,
    svmrank,
    vowpal_wabbit,
)
from marginrank.models.additive_model import AdditiveModel
from marginrank.models.foreign import ForeignModel
from marginrank.models.foreign_files import foreign_format
from marginrank.models.kernel_model import KernelModel
from marginrank.models.linear_model import LinearModel, check_weights
from marginrank.models.trial import read_foreign

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


class PeerFormat(NamedTuple):
    """A format of another system, which is only read: how it is recognised, and a reader."""

    recognize: Callable[[str], bool]
    read: Callable[[str], LinearModel]


PEERS = {
    "ranklib": PeerFormat(ranklib.is_ranklib, ranklib.read),
    "solr": PeerFormat(search_engines.is_solr, search_engines.read_solr),
    "elasticsearch": PeerFormat(search_engines.is_plugin, search_engines.read_plugin),
    "vowpal_wabbit": PeerFormat(vowpal_wabbit.is_vowpal_wabbit, vowpal_wabbit.read),
}

OTHER_KINDS = {
    "an additive": additive_model.is_additive_model,
    "a kernel": kernel_model.is_kernel_model,
}

Chosen = TypeVar("Chosen")

# How pickles begin, also those that joblib compresses, and how they are called.
PICKLE_BEGINNINGS = (b"\x80", b"x\x01", b"x\x5e", b"x\x9c", b"x\xda")
PICKLE_ENDINGS = (".pkl", ".pickle", ".joblib")


def write_model(model: LinearModel | AdditiveModel, path: Path, format: str | None = None) -> None:
    """Write a model to a file.

    Parameters
    ----------
    model : LinearModel or AdditiveModel
        What to write.
    path : str or path
        The file; it appears only when it is complete.
    format : {"json", "liblinear", "svmrank"}, default="json"
        JSON keeps everything; the model formats of LIBLINEAR-ranksvm and of
        SVM^rank keep the weights of a linear model.
    """
    if isinstance(model, AdditiveModel):
        if format not in (None, "json"):
            raise ValueError(f"format={format!r} holds no curves; save the model as 'json'.")
        additive_model.write(model, path)
        return
    chosen = _named("json" if format is None else format, FORMATS)
    check_weights(model)
    chosen.write(model, path)


def read_model(path: Path, format: str | None = None) -> LinearModel:
    """Read a model file as plain data; see :func:`marginrank.load_model`."""
    path = os.fspath(path)
    if format is not None:
        readers = {name: known.read for name, known in FORMATS.items()}
        readers |= {name: peer.read for name, peer in PEERS.items()}
        return _named(format, readers)(path)
    return _recognize(path).read(path)


def read_any_model(path: Path) -> LinearModel | AdditiveModel | KernelModel | ForeignModel:
    """Read a model file, of other libraries too.

    Parameters
    ----------
    path : str or path
        What :func:`marginrank.load_model` reads; a text model of LightGBM; a ``.json`` or ``.ubj``
        model of XGBoost; or a scikit-learn estimator written by skops. The file is recognised by
        its content, and nothing in it is ever executed.

    Returns
    -------
    LinearModel, AdditiveModel, KernelModel or ForeignModel
        All have ``n_features`` and ``feature_names``. All but the first have no weights of
        features, but ``kind`` and ``scores``.
    """
    path = os.fspath(path)
    if kernel_model.is_kernel_model(path):
        return kernel_model.read(path)
    if additive_model.is_additive_model(path):
        return additive_model.read(path)
    return read_model(path) if foreign_format(path) is None else read_foreign(path)


def is_model(path: Path) -> bool:
    """Whether a file begins like a model that can be read."""
    path = os.fspath(path)
    known = _linear_format(path) or foreign_format(path)
    return known is not None or kernel_model.is_kernel_model(path)


def _named(format: str, formats: Mapping[str, Chosen]) -> Chosen:
    if format not in formats:
        raise ValueError(f"format={format!r} must be one of {', '.join(map(repr, formats))}.")
    return formats[format]


def _recognize(path: str) -> Format | PeerFormat:
    foreign = foreign_format(path)
    if foreign is not None:
        raise ValueError(
            f"{path} was written by {foreign}, not by marginrank; read it with "
            "marginrank.models.read_any_model."
        )
    for kind, is_one in OTHER_KINDS.items():
        if is_one(path):
            raise ValueError(
                f"{path} is {kind} model, which has no weights of features; read it with "
                "marginrank.load_model, or score with marginrank predict."
            )
    format = _linear_format(path)
    if format is None:
        _refuse_pickle(path)
        raise ValueError(
            f"{path} is no model file: it does not begin like marginrank's JSON, LIBLINEAR's, "
            "SVM-light's, RankLib's, Vowpal Wabbit's, LightGBM's, XGBoost's or that of skops."
        )
    return format


def _linear_format(path: str) -> Format | PeerFormat | None:
    beginning = _beginning(path)
    if beginning.startswith((b"{", b"##", b"Version ")):
        for peer in PEERS.values():
            if peer.recognize(path):
                return peer
    return next((f for f in FORMATS.values() if beginning.startswith(f.beginning)), None)


def _refuse_pickle(path: str) -> None:
    if _beginning(path).startswith(PICKLE_BEGINNINGS) or path.endswith(PICKLE_ENDINGS):
        raise ValueError(
            f"{path} is a pickle, and pickles are never loaded, as they can run any code; write a "
            "model of marginrank with model.save, and one of scikit-learn with skops.io.dump."
        )


def _beginning(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
