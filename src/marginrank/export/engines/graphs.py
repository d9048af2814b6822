"""Models as graphs and documents: ONNX and PMML."""

import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from marginrank._utils.optional import require
from marginrank._utils.types import Floats
from marginrank.export.engines._documents import Documents, Files, Run
from marginrank.export.engines._pmml import regression

PYPMML_ACCURACY = 1e-11  # it computes slope · x + constant, which loses digits in narrow bins
ROWS = 1_000  # of documents at a time, as kernels have a number for each and each landmark


def onnx(files: Files, documents: Documents) -> Run:
    """Score with onnxruntime, in the precision of the graph."""
    runtime = require("onnxruntime", "verify")
    session = runtime.InferenceSession(files[""], providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    X = documents.X.astype(np.float32 if given.type == "tensor(float)" else np.float64)
    starts = range(0, len(X) or 1, ROWS)
    parts = [session.run(None, {given.name: X[first : first + ROWS]})[0] for first in starts]
    return Run(f"onnxruntime {runtime.__version__}", np.concatenate(parts).astype(np.float64))


def pmml(files: Files, documents: Documents) -> Run:
    """Score with PyPMML where it and Java are there, else as PMML says."""
    if find_spec("pypmml") is not None and shutil.which("java") is not None:
        return Run("PyPMML", _in_pypmml(files[""], documents), accuracy=PYPMML_ACCURACY)
    return Run("reference of PMML", regression(files[""], documents), is_reference=True)


def _in_pypmml(content: bytes, documents: Documents) -> Floats:
    pypmml = require("pypmml", "verify")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.pmml")
        path.write_bytes(content)
        try:
            model = pypmml.Model.fromFile(str(path))
            X = documents.X[:, [documents.places[name] for name in model.inputNames]]
            rows = [[None if value != value else value for value in row] for row in X.tolist()]
            return np.array([row[0] for row in model.predict(rows)], dtype=np.float64)
        finally:
            pypmml.PMMLContext.shutdown()  # ends the Java process
