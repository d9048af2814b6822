"""Python libraries: onnxruntime, PyPMML and fastrank."""

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np

from marginrank._utils.optional import require
from marginrank._utils.types import Floats
from marginrank.export.engines.run import EngineDocuments, EngineRun, Files

PYPMML_ACCURACY = 1e-11  # it computes slope · x + constant, which loses digits in narrow bins
ROWS = 1_000  # documents at a time: kernels take memory for each document and landmark


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
        raise ValueError("cannot run the export: java is not on PATH; install Java.")
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
    """Score with fastrank."""
    library = require("fastrank", "verify")
    model = library.CModel.from_dict(json.loads(files[""]))
    # Columns of a matrix are numbered like indices in text, where 0 is not used.
    X = np.zeros((len(documents.X), 1 + documents.X.shape[1]), np.float32)
    X[:, 1:] = documents.filled()
    data = library.CDataset.from_numpy(X, np.zeros(len(X)), np.ones(len(X), np.int64))
    scores = np.array(model.predict_dense_scores(data), dtype=np.float64)
    return EngineRun(f"fastrank {library.__version__}", scores)
