"""Model files of KernelRankSVM: NumPy's .npz, described array by array in ``docs/formats.md``."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from dataclasses import dataclass
from dataclasses import fields as fields_of
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank._utils.atomic_files import atomic_write
from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats
from marginrank._utils.version import __version__
from marginrank.data.validation import as_matrix, check_features, check_finite
from marginrank.fit.linear import RidgeParameters
from marginrank.models._features import require_features
from marginrank.models.json_model import (
    _encode_parameters,
    _Fields,
    _is_count,
    _read_training,
    _training,
    decode_parameters,
    parse_object,
    read_names,
)
from marginrank.models.linear_model import Training

if TYPE_CHECKING:
    from marginrank.fit.kernel_map import Kernel, Landmarks

FORMAT = "marginrank-kernel-model"
VERSION = 1
HEADER = "marginrank"  # the array that tells these files from other .npz files

# The parameters of the estimator, by what they belong to.
KERNEL_OPTIONS = frozenset(["gamma", "degree", "coef0"])
LINEAR_PARAMETERS = frozenset(field.name for field in fields_of(RidgeParameters))
KNOWN_PARAMETERS = (
    {"kernel", "n_components", "random_state", "verbose"} | KERNEL_OPTIONS | LINEAR_PARAMETERS
)

# What NumPy and zipfile raise of a damaged file; MemoryError is that of an absurd shape.
UNREADABLE = (
    ValueError,
    KeyError,
    EOFError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True)
class KernelModel:
    """What a file of a KernelRankSVM holds, as plain data.

    Attributes
    ----------
    parameters : dict
        The parameters of the estimator.
    dual_coef, landmark_rows, landmarks
        As in :class:`~marginrank.KernelRankSVM`.
    n_features : int
        Number of features.
    feature_names : list of str or None
        Names of the features.
    training : Training
        How the fit ended.
    scale : ndarray of shape (n_features,), or None
        What features are divided by before the kernel sees them.
    """

    parameters: dict[str, Any]
    dual_coef: Floats
    landmark_rows: NDArray[np.int64]
    landmarks: Any
    n_features: int
    feature_names: list[str] | None
    training: Training | None
    scale: Floats | None = None

    def __repr__(self) -> str:
        """Return the numbers of landmarks and features."""
        return f"KernelModel({self.dual_coef.size} landmarks, {self.n_features} features)"

    @property
    def kind(self) -> str:
        """Name of the library and of the estimator's class, as those of other libraries have it."""
        return "marginrank KernelRankSVM"

    def kernel(self) -> Kernel:
        """Return the kernel that documents are compared with."""
        return _kernel_of(self.parameters)

    def scores(self, X: Any) -> Floats:
        """Return the score of each document, the one that the saved estimator gave it."""
        X = check_features(X)
        require_features(X, self.n_features)
        threads = effective_threads(self.parameters.get("n_jobs"))
        check_finite(X, as_matrix(X), threads)
        return self.compared().product(X, self.dual_coef, threads)

    def compared(self) -> Landmarks:
        """Return what documents are compared with."""
        from marginrank.fit.kernel_map import Landmarks  # late: it imports scikit-learn

        return Landmarks(self.kernel(), self.landmark_rows, self.landmarks, self.scale)


def _kernel_of(parameters: dict[str, Any]) -> Kernel:
    from marginrank.fit.kernel_map import Kernel  # late: it imports scikit-learn

    options = {name: parameters[name] for name in KERNEL_OPTIONS & parameters.keys()}
    return Kernel(parameters["kernel"], **options)


def _check_parameters(parameters: dict[str, Any]) -> None:
    """Raise ValueError for unknown parameters of the estimator, or wrong values."""
    if "kernel" not in parameters:
        raise ValueError("'kernel' is missing")
    unknown = parameters.keys() - KNOWN_PARAMETERS
    if unknown:
        raise ValueError(f"unknown: {', '.join(map(repr, sorted(unknown)))}")
    _kernel_of(parameters).check()
    given = {name: parameters[name] for name in LINEAR_PARAMETERS & parameters.keys()}
    RidgeParameters(**given).check()


def write(model: KernelModel, path: str | os.PathLike[str]) -> None:
    """Write a model; a kernel that is a function, or what could not be read again, is refused."""
    if not isinstance(model.parameters["kernel"], str):
        raise TypeError(
            "a kernel that is a Python function cannot be saved; use one with a name, or "
            "kernel='precomputed'."
        )
    header = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"marginrank {__version__}",
        "parameters": _encode_parameters(model.parameters),
        "n_features": model.n_features,
        "feature_names": model.feature_names,
        "training": None if model.training is None else _training(model.training),
    }
    arrays: dict[str, Any] = {
        HEADER: np.frombuffer(json.dumps(header, allow_nan=False).encode("ascii"), np.uint8),
        "dual_coef": model.dual_coef,
        "landmark_rows": model.landmark_rows,
        **_landmark_arrays(model.landmarks),
    }
    if model.scale is not None:
        arrays["scale"] = model.scale
    _parse(_Fields.to_write(header), arrays)
    with atomic_write(path) as file:
        np.savez(file, **arrays)


def _landmark_arrays(landmarks: Any) -> dict[str, NDArray[Any]]:
    if landmarks is None:
        return {}
    if sp.issparse(landmarks):
        return {name: getattr(landmarks, name) for name in ("data", "indices", "indptr")}
    return {"landmarks": landmarks}


def is_kernel_model(path: str) -> bool:
    """Whether a file is one of these."""
    try:
        with zipfile.ZipFile(path) as archive:
            return f"{HEADER}.npy" in archive.namelist()
    except (*UNREADABLE, OSError) as error:
        if getattr(error, "filename", None) is not None:  # it cannot be opened
            raise
        return False


def read(path: str) -> KernelModel:
    """Read a model; nothing in it is ever executed."""
    try:
        _check_uncompressed(path)
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        text = arrays[HEADER].tobytes()
    except UNREADABLE as error:
        raise _Fields(path, {}).damaged(str(error)) from error
    except OSError as error:
        if error.filename is not None:  # the file cannot be opened
            raise
        raise _Fields(path, {}).damaged(str(error)) from error
    return _parse(_header_fields(path, parse_object(path, text)), arrays)


def _check_uncompressed(path: str) -> None:
    """Raise ValueError for compressed arrays, which could take far more memory than the file."""
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if entry.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{entry.filename} is compressed")


def _parse(fields: _Fields, arrays: dict[str, NDArray[Any]]) -> KernelModel:
    n_features = fields.get("n_features", _is_count, "a positive integer")
    _check_vectors(fields, arrays)
    return KernelModel(
        parameters=_read_parameters(fields),
        dual_coef=arrays["dual_coef"],
        landmark_rows=arrays["landmark_rows"],
        landmarks=_read_landmarks(fields, arrays, n_features),
        n_features=n_features,
        feature_names=read_names(fields, n_features),
        training=_read_training(fields),
        scale=_read_scale(fields, arrays, n_features),
    )


def _read_parameters(fields: _Fields) -> dict[str, Any]:
    parameters = decode_parameters(fields)
    try:
        _check_parameters(parameters)
    except (ValueError, TypeError) as error:
        raise fields.damaged(f"'parameters' are not those of a KernelRankSVM ({error})") from error
    return parameters


def _header_fields(path: str, header: Any) -> _Fields:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"{path} is no kernel model: its format is not {FORMAT!r}.")
    if header.get("version") != VERSION:
        raise ValueError(
            f"{path} has version {header.get('version')!r} and this marginrank reads version "
            f"{VERSION}; update marginrank."
        )
    return _Fields(path, header)


def _check_vectors(fields: _Fields, arrays: dict[str, NDArray[Any]]) -> None:
    for name, kind in (("dual_coef", "f8"), ("landmark_rows", "i8")):
        array = arrays.get(name)
        if array is None or array.ndim != 1 or array.dtype != kind:
            raise fields.damaged(f"{name!r} is not a vector of {kind}")
    coef, rows = arrays["dual_coef"], arrays["landmark_rows"]
    if coef.size == 0 or coef.size != rows.size or not np.isfinite(coef).all() or rows.min() < 0:
        raise fields.damaged("'dual_coef' and 'landmark_rows' are not one entry a landmark")


def _read_landmarks(fields: _Fields, arrays: dict[str, NDArray[Any]], n_features: int) -> Any:
    shape = (arrays["dual_coef"].size, n_features)
    try:
        if "indptr" in arrays:
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            if any(part.dtype.kind not in "iu" for part in parts[1:]):
                raise ValueError("indices are no integers")
            landmarks = sp.csr_array(parts, shape=shape)
            landmarks.check_format(full_check=True)
        elif "landmarks" in arrays:
            landmarks = arrays["landmarks"]
        else:
            return _no_landmarks(fields, arrays["landmark_rows"], n_features)
    except (KeyError, ValueError) as error:
        raise fields.damaged(f"the landmarks are no CSR matrix ({error})") from error
    values = landmarks.data if sp.issparse(landmarks) else landmarks
    if landmarks.shape != shape or landmarks.dtype != np.float64 or not np.isfinite(values).all():
        raise fields.damaged(f"the landmarks are not {shape[0]} × {shape[1]} finite numbers")
    return landmarks


def _read_scale(fields: _Fields, arrays: dict[str, NDArray[Any]], n_features: int) -> Floats | None:
    scale = arrays.get("scale")
    if scale is None:
        return None
    if scale.shape != (n_features,) or scale.dtype != np.float64:
        raise fields.damaged(f"'scale' is not {n_features} numbers")
    if not (np.isfinite(scale) & (scale > 0)).all():
        raise fields.damaged("'scale' is not positive")
    return scale


def _no_landmarks(fields: _Fields, rows: NDArray[np.int64], n_features: int) -> None:
    """Check that a precomputed kernel has the columns that the model takes."""
    parameters = fields.get("parameters", lambda v: isinstance(v, dict), "an object")
    if parameters.get("kernel") != "precomputed" or rows.max() >= n_features:
        raise fields.damaged("the landmarks are missing")
