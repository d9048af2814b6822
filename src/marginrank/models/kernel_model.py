"""Model files of KernelRankSVM: NumPy's .npz, described array by array in ``docs/formats.md``."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank._utils.atomic_files import atomic_write
from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats
from marginrank._utils.version import __version__
from marginrank.data.validation import as_matrix, check_features, check_finite
from marginrank.models.features import Reason, check_rows, reasons_by_feature, require_features
from marginrank.models.fit_report import FitReport
from marginrank.models.json_fields import (
    Fields,
    is_count,
    is_object,
    parameters_to_json,
    parse_object,
    training_to_json,
)

if TYPE_CHECKING:
    from marginrank.models.kernels import Kernel, Landmarks

FORMAT = "marginrank-kernel-model"
VERSION = 1
HEADER = "marginrank"  # the array that tells these files from other .npz files

KERNEL_OPTIONS = frozenset(["gamma", "degree", "coef0"])
KERNEL_PARAMETERS = KERNEL_OPTIONS | {"kernel", "n_components"}

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
    report : FitReport or None
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
    report: FitReport | None
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

    def explain(self, preferred: Any, other: Any) -> list[Reason]:
        """Return what each feature adds to the difference of two scores, the strongest first.

        The kernel is "linear", or "precomputed", where a feature is the kernel with a document:
        with other kernels, features do not act one by one.
        """
        X = check_rows(preferred, other, self.n_features, self.feature_names, missing=False)
        function = self.parameters["kernel"]
        if function == "precomputed":
            weights = np.zeros(self.n_features)
            np.add.at(weights, self.landmark_rows, self.dual_coef)
        elif function == "linear":
            weights = self.dual_coef @ self.landmarks
            weights = weights if self.scale is None else weights / self.scale**2
        else:
            raise ValueError(
                f"kernel={function!r} has no exact contributions by feature; use a linear kernel, "
                "RankSVM or AdditiveRankSVM to explain scores."
            )
        return reasons_by_feature(X, ((X[0] - X[1]) * weights).tolist(), self.feature_names)

    def compared(self) -> Landmarks:
        """Return what documents are compared with."""
        from marginrank.models.kernels import Landmarks  # late: it imports scikit-learn

        return Landmarks(self.kernel(), self.landmark_rows, self.landmarks, self.scale)


def _kernel_of(parameters: dict[str, Any]) -> Kernel:
    from marginrank.models.kernels import Kernel  # late: it imports scikit-learn

    options = {name: parameters[name] for name in KERNEL_OPTIONS & parameters.keys()}
    return Kernel(parameters["kernel"], **options)


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
        "parameters": parameters_to_json(model.parameters),
        "n_features": model.n_features,
        "feature_names": model.feature_names,
        "training": training_to_json(model.report),
    }
    arrays: dict[str, Any] = {
        HEADER: np.frombuffer(json.dumps(header, allow_nan=False).encode("ascii"), np.uint8),
        "dual_coef": model.dual_coef,
        "landmark_rows": model.landmark_rows,
        **_landmark_arrays(model.landmarks),
    }
    if model.scale is not None:
        arrays["scale"] = model.scale
    _parse(Fields.to_write(header), arrays)
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
        raise Fields(path, {}).damaged(str(error)) from error
    except OSError as error:
        if error.filename is not None:  # the file cannot be opened
            raise
        raise Fields(path, {}).damaged(str(error)) from error
    header = parse_object(path, text)
    fields = Fields(path, header if isinstance(header, dict) else {})
    fields.require_format(FORMAT, VERSION, "kernel")
    return _parse(fields, arrays)


def _check_uncompressed(path: str) -> None:
    """Raise ValueError for compressed arrays, which could take far more memory than the file."""
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if entry.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{entry.filename} is compressed")


def _parse(fields: Fields, arrays: dict[str, NDArray[Any]]) -> KernelModel:
    n_features = fields.get("n_features", is_count, "a positive integer")
    _check_vectors(fields, arrays)
    return KernelModel(
        parameters=_read_parameters(fields),
        dual_coef=arrays["dual_coef"],
        landmark_rows=arrays["landmark_rows"],
        landmarks=_read_landmarks(fields, arrays, n_features),
        n_features=n_features,
        feature_names=fields.names(n_features),
        report=fields.report(),
        scale=_read_scale(fields, arrays, n_features),
    )


def _read_parameters(fields: Fields) -> dict[str, Any]:
    parameters = fields.parameters("KernelRankSVM", KERNEL_PARAMETERS)
    try:
        if "kernel" not in parameters:
            raise ValueError("'kernel' is missing")
        _kernel_of(parameters).check()
    except (ValueError, TypeError) as error:
        raise fields.damaged(f"'parameters' are not those of a KernelRankSVM ({error})") from error
    return parameters


def _check_vectors(fields: Fields, arrays: dict[str, NDArray[Any]]) -> None:
    for name, kind in (("dual_coef", "f8"), ("landmark_rows", "i8")):
        array = arrays.get(name)
        if array is None or array.ndim != 1 or array.dtype != kind:
            raise fields.damaged(f"{name!r} is not a vector of {kind}")
    coef, rows = arrays["dual_coef"], arrays["landmark_rows"]
    if coef.size == 0 or coef.size != rows.size or not np.isfinite(coef).all() or rows.min() < 0:
        raise fields.damaged("'dual_coef' and 'landmark_rows' are not one entry a landmark")


def _read_landmarks(fields: Fields, arrays: dict[str, NDArray[Any]], n_features: int) -> Any:
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


def _read_scale(fields: Fields, arrays: dict[str, NDArray[Any]], n_features: int) -> Floats | None:
    scale = arrays.get("scale")
    if scale is None:
        return None
    if scale.shape != (n_features,) or scale.dtype != np.float64:
        raise fields.damaged(f"'scale' is not {n_features} numbers")
    if not (np.isfinite(scale) & (scale > 0)).all():
        raise fields.damaged("'scale' is not positive")
    return scale


def _no_landmarks(fields: Fields, rows: NDArray[np.int64], n_features: int) -> None:
    """Check that a precomputed kernel has the columns that the model takes."""
    parameters = fields.get("parameters", is_object, "an object")
    if parameters.get("kernel") != "precomputed" or rows.max() >= n_features:
        raise fields.damaged("the landmarks are missing")
