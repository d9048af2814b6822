"""Libraries of Python: onnxruntime, PyPMML and fastrank."""

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np

from marginrank._utils.optional import require
from marginrank._utils.types import Floats
from marginrank.export.engines.run import EngineDocuments, EngineRun, Files

PYPMML_ACCURACY = 1e-11  # it computes slope · x + constant, which loses digits in narrow bins
ROWS = 1_000  # of documents at a time, as kernels have a number for each and each landmark


def onnx(files: Files, documents: EngineDocuments) -> EngineRun:
    """Score with onnxruntime, in the precision of the graph."""
    runtime = require("onnxruntime", "verify")
    session = runtime.InferenceSession(files[""], providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    X = documents.X.astype(np.float32 if given.type == "tensor(float)" else np.float64)
    starts = range(0, len(X) or 1, ROWS)
    parts = [session.run(None, {given.name: X[first : first + ROWS]})[0] for first in starts]
    return EngineRun(f"onnxruntime {runtime.__version__}", np.concatenate(parts).astype(np.float64))


def pmml(files: Files, documents: EngineDocuments) -> EngineRun:
    """Score with PyPMML, which needs Java."""
    if shutil.which("java") is None:
        raise ValueError("java is not on PATH, and without it nothing runs the export.")
    pypmml = require("pypmml", "verify")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.pmml")
        path.write_bytes(files[""])
        try:
            model = pypmml.Model.fromFile(str(path))
            X = documents.X[:, [documents.places[name] for name in model.inputNames]]
            rows = [[None if value != value else value for value in row] for row in X.tolist()]
            scores: Floats = np.array([row[0] for row in model.predict(rows)], dtype=np.float64)
            return EngineRun("PyPMML", scores, accuracy=PYPMML_ACCURACY)
        finally:
            pypmml.PMMLContext.shutdown()  # ends the Java process


def fastrank(files: Files, documents: EngineDocuments) -> EngineRun:
    """Score with fastrank, to which a column of a matrix is what an index is in text."""
    library = require("fastrank", "verify")
    model = library.CModel.from_dict(json.loads(files[""]))
    X = np.zeros((len(documents.X), 1 + documents.X.shape[1]), np.float32)
    X[:, 1:] = documents.filled()
    data = library.CDataset.from_numpy(X, np.zeros(len(X)), np.ones(len(X), np.int64))
    scores = np.array(model.predict_dense_scores(data), dtype=np.float64)
    return EngineRun(f"fastrank {library.__version__}", scores)
