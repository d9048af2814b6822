"""Models as graphs and documents: ONNX and PMML."""

import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from marginrank._base.optional import require
from marginrank._base.types import Floats
from marginrank.export.engines._documents import Documents, Files, Run

PMML = "{http://www.dmg.org/PMML-4_4}"


def onnx(files: Files, documents: Documents) -> Run:
    """Score with onnxruntime, in the precision of the graph."""
    runtime = require("onnxruntime", "verify")
    session = runtime.InferenceSession(files[""], providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    X = documents.X.astype(np.float32 if given.type == "tensor(float)" else np.float64)
    (scores,) = session.run(None, {given.name: X})
    return Run(f"onnxruntime {runtime.__version__}", scores.astype(np.float64))


def pmml(files: Files, documents: Documents) -> Run:
    """Score with PyPMML where it and Java are there, else as PMML says."""
    if find_spec("pypmml") is not None and shutil.which("java") is not None:
        return Run("PyPMML", _in_pypmml(files[""], documents))
    return Run("reference of PMML", _regression(files[""], documents))


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


def _regression(content: bytes, documents: Documents) -> Floats:
    """Add up a RegressionTable, with replacements for what is missing."""
    root = ElementTree.fromstring(content)
    fields = {field.get("name"): field for field in root.iter(f"{PMML}MiningField")}
    (table,) = root.iter(f"{PMML}RegressionTable")
    total = np.full(len(documents.X), float(table.attrib["intercept"]))
    for predictor in table.iter(f"{PMML}NumericPredictor"):
        name = predictor.attrib["name"]
        instead = float(fields[name].attrib["missingValueReplacement"])
        values = documents.X[:, documents.places[name]]
        values = np.where(np.isnan(values), instead, values)
        total += float(predictor.attrib["coefficient"]) * values
    return total
