"""Kernel models as plain data, and their .npz files (``docs/reference/formats.md``)."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank._utils.atomic_files import atomic_write
from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats
from marginrank.data.validation import as_matrix, check_features, check_finite
from marginrank.models.features import Reason, check_rows, reasons_by_feature, require_features
from marginrank.models.fit_report import FitReport
from marginrank.models.json_fields import (
    NOT_SAVED,
    Fields,
    format_to_json,
    parameters_to_json,
    training_to_json,
)

if TYPE_CHECKING:
    from marginrank.models.kernels import Kernel, Landmarks

FORMAT = "marginrank-kernel-model"
HEADER = "marginrank"  # name of the array by which .npz files with a kernel model are recognized

KERNEL_OPTIONS = frozenset(["gamma", "degree", "coef0"])
KERNEL_PARAMETERS = KERNEL_OPTIONS | {"kernel", "n_components"}

# Errors of NumPy and zipfile for damaged files; a huge shape raises MemoryError.
UNREADABLE = (
    ValueError,
    KeyError,
    EOFError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    OSError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True)
class KernelModel:
    """A fitted kernel model as plain data: training documents, their weights, and parameters.

    Attributes
    ----------
    parameters : dict
        The parameters of the estimator.
    dual_coef : ndarray of shape (n_landmarks,)
        Weights β of the landmarks z_i, training documents: a score is Σ_i β_i k(x, z_i).
    landmark_rows : ndarray of int64, shape (n_landmarks,)
        Rows of the landmarks in the training data.
    landmarks : ndarray or CSR of shape (n_landmarks, n_features), or None
        The unscaled landmarks; None if the kernel is precomputed.
    n_features : int
        Number of features.
    feature_names : list of str or None
        Names of the features.
    report : FitReport or None
        How the fit ended.
    scale : ndarray of shape (n_features,), or None
        Divisors of the features before the kernel is evaluated.
    """

    parameters: dict[str, Any]
    dual_coef: Floats
    landmark_rows: NDArray[np.int64]
    landmarks: Any
    n_features: int
    feature_names: list[str] | None
    report: FitReport | None
    scale: Floats | None = None
    kind: ClassVar[str] = "marginrank KernelRankSVM"  # library and estimator

    def __repr__(self) -> str:
        """Return the class name with the numbers of landmarks and features."""
        return f"KernelModel({self.dual_coef.size} landmarks, {self.n_features} features)"

    def kernel(self) -> Kernel:
        """Return the kernel function of the model, with its parameters."""
        return _kernel_of(self.parameters)

    def scores(self, X: Any) -> Floats:
        """Return the score of each document, bitwise equal to ``predict`` of the estimator."""
        X = check_features(X)
        require_features(X, self.n_features)
        threads = effective_threads(self.parameters.get("n_jobs"))
        check_finite(X, as_matrix(X), threads)
        return self.compared().product(X, self.dual_coef, threads)

    def explain(self, preferred: Any, other: Any) -> list[Reason]:
        """Return the contribution of each feature to the difference of two documents' scores.

        The largest contribution is first. Only the kernels "linear" and "precomputed" have such
        contributions. For a precomputed kernel, feature j is the kernel value with training
        document j.
        """
        X = check_rows(preferred, other, self.n_features, self.feature_names, missing=False)
        weights = self.weights()
        if weights is None:
            raise ValueError(
                f"kernel={self.parameters['kernel']!r} has no exact contributions by feature; use "
                "a linear kernel, RankSVM or AdditiveRankSVM to explain scores."
            )
        first, second = X.astype(np.float64)
        return reasons_by_feature(X, ((first - second) * weights).tolist(), self.feature_names)

    def weights(self) -> Floats | None:
        """Return one weight per feature; None if the kernel is neither linear nor precomputed."""
        function = self.parameters["kernel"]
        if function == "precomputed":
            weights = np.zeros(self.n_features)
            np.add.at(weights, self.landmark_rows, self.dual_coef)
            return weights
        if function != "linear":
            return None
        weights = np.ravel(self.dual_coef @ self.landmarks)
        return weights if self.scale is None else weights / self.scale**2

    def compared(self) -> Landmarks:
        """Return the Landmarks, which compute kernels with the stored training documents."""
        from marginrank.models.kernels import Landmarks  # late: it imports scikit-learn

        return Landmarks(self.kernel(), self.landmark_rows, self.landmarks, self.scale)


def _kernel_of(parameters: dict[str, Any]) -> Kernel:
    from marginrank.models.kernels import Kernel  # late: it imports scikit-learn

    options = {name: parameters[name] for name in KERNEL_OPTIONS & parameters.keys()}
    return Kernel(parameters["kernel"], **options)


def write(model: KernelModel, path: str | os.PathLike[str]) -> None:
    """Write a kernel model to an .npz file.

    Raise TypeError if the kernel is a Python function, and ValueError if the model is invalid.
    """
    if not isinstance(model.parameters["kernel"], str):
        raise TypeError(
            "a callable kernel cannot be saved; use the name of a kernel, or kernel='precomputed'."
        )
    header = {
        **format_to_json(FORMAT),
        "parameters": parameters_to_json(model.parameters),
        "n_features": model.n_features,
        "feature_names": model.feature_names,
        "training": training_to_json(model.report),
    }
    arrays: dict[str, Any] = {
        HEADER: np.frombuffer(json.dumps(header, allow_nan=False).encode("ascii"), np.uint8),
        "dual_coef": model.dual_coef,
        "landmark_rows": model.landmark_rows,
    }
    if sp.issparse(model.landmarks):
        arrays |= {name: getattr(model.landmarks, name) for name in ("data", "indices", "indptr")}
    elif model.landmarks is not None:
        arrays["landmarks"] = model.landmarks
    if model.scale is not None:
        arrays["scale"] = model.scale
    _parse(Fields("", header, NOT_SAVED), arrays)
    with atomic_write(path) as file:
        np.savez(file, **arrays)


def is_kernel_model(path: str) -> bool:
    """Return whether a file is an .npz file with a kernel model."""
    try:
        with zipfile.ZipFile(path) as archive:
            return f"{HEADER}.npy" in archive.namelist()
    except UNREADABLE as error:
        if getattr(error, "filename", None) is not None:  # the file cannot be opened
            raise
        return False


def read(path: str) -> KernelModel:
    """Read a kernel model from an .npz file, without pickle."""
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                # Compressed arrays could take far more memory than the file.
                if entry.compress_type != zipfile.ZIP_STORED:
                    raise ValueError(f"{entry.filename} is compressed")
        with np.load(path, allow_pickle=False) as loaded:
            arrays = {name: loaded[name] for name in loaded.files}
        text = arrays[HEADER].tobytes()
    except UNREADABLE as error:
        if getattr(error, "filename", None) is not None:  # the file cannot be opened
            raise
        raise Fields(path, {}).damaged(str(error)) from error
    return _parse(Fields.parsed(path, text, FORMAT, "kernel"), arrays)


def _parse(fields: Fields, arrays: dict[str, NDArray[Any]]) -> KernelModel:
    n_features = fields.get("n_features", "a positive integer")
    for name, kind in (("dual_coef", "f8"), ("landmark_rows", "i8")):
        array = arrays.get(name)
        if array is None or array.ndim != 1 or array.dtype != kind:
            raise fields.damaged(f"{name!r} is not a vector of {kind}")
    coef, rows = arrays["dual_coef"], arrays["landmark_rows"]
    if coef.size == 0 or coef.size != rows.size or not np.isfinite(coef).all() or rows.min() < 0:
        raise fields.damaged("'dual_coef' or 'landmark_rows' lacks a valid entry per landmark")
    parameters = fields.parameters("KernelRankSVM", KERNEL_PARAMETERS)
    try:
        if "kernel" not in parameters:
            raise ValueError("'kernel' is missing")
        _kernel_of(parameters).check()
    except (ValueError, TypeError) as error:
        raise fields.damaged(f"'parameters' are invalid for KernelRankSVM ({error})") from error
    scale = arrays.get("scale")
    if scale is not None:
        if scale.shape != (n_features,) or scale.dtype != np.float64:
            raise fields.damaged(f"'scale' is not a vector of {n_features} numbers")
        if not (np.isfinite(scale) & (scale > 0)).all():
            raise fields.damaged("'scale' is not positive and finite")
    landmarks = _read_landmarks(fields, arrays, (coef.size, n_features))
    if landmarks is None and (parameters["kernel"] != "precomputed" or rows.max() >= n_features):
        raise fields.damaged("the landmarks are missing")
    return KernelModel(
        parameters=parameters,
        dual_coef=coef,
        landmark_rows=rows,
        landmarks=landmarks,
        n_features=n_features,
        feature_names=fields.names(n_features),
        report=fields.report(),
        scale=scale,
    )


def _read_landmarks(fields: Fields, arrays: dict[str, NDArray[Any]], shape: tuple[int, int]) -> Any:
    landmarks: Any = arrays.get("landmarks")
    if "indptr" in arrays:
        try:
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            if any(part.dtype.kind not in "iu" for part in parts[1:]):
                raise ValueError("indices are not integers")
            landmarks = sp.csr_array(parts, shape=shape)
            landmarks.check_format(full_check=True)
        except (KeyError, ValueError) as error:
            raise fields.damaged(f"the landmarks are not a CSR matrix ({error})") from error
    if landmarks is None:
        return None
    values = landmarks.data if sp.issparse(landmarks) else landmarks
    if landmarks.shape != shape or landmarks.dtype != np.float64 or not np.isfinite(values).all():
        raise fields.damaged(
            f"the landmarks are not a matrix of {shape[0]} × {shape[1]} finite numbers"
        )
    return landmarks
