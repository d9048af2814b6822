"""Functions that score documents with exported models, to verify exports; one per target.

A *target* is the system that a model is exported to. Most functions run its *engine*, the program
that reads the exported files. For search engines that cannot easily be run, the function is a
*reference*: it parses the files itself and follows the engine's documented arithmetic.
"""

import ctypes
import json
import re
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from marginrank._utils.optional import require
from marginrank._utils.types import Floats
from marginrank.export.names import check_distinct, sql_quoted
from marginrank.export.registry import Target
from marginrank.export.text import FLOAT64_ACCURACY

Files = dict[str, bytes]

# Tolerance for PyPMML, which computes a curve as slope · x + constant: inexact if knots are close.
PYPMML_ACCURACY = 1e-11
ROWS = 1_000  # documents per batch, because memory is documents × landmarks
TABLE = "documents"
# Dialects whose FLOAT has 64 bits, although sqlglot assumes 32.
FLOAT_IS_DOUBLE = {"tsql", "fabric"}
NUMBER = r"(-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)"
VESPA_TERM = re.compile(rf", 0\.0, (.+)\) \* {NUMBER}$|^(?:\+ )?{NUMBER}$", re.MULTILINE)
LUCENE_TERM = re.compile(rf"{NUMBER}(?:\*doc\['((?:[^'\\]|\\.)*)'\]\.value)?", re.DOTALL)
JAVA_MAIN = """\
import java.io.*;

public final class MarginrankRun_ {
    public static void main(String[] arguments) throws IOException {
        int n = Integer.parseInt(arguments[0]);
        double[] x = new double[n];
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
             DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out))) {
            for (long left = Long.parseLong(arguments[1]); left > 0; left--) {
                for (int k = 0; k < n; k++) x[k] = in.readDouble();
                out.writeDouble(%s.score(x));
            }
        }
    }
}
"""
NODE_MAIN = """\
const fs = require("fs");
const n = Number(process.argv[3]);
const bytes = fs.readFileSync(0);
const x = new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
const model = require(process.argv[2]);
const scores = new Float64Array(x.length / n);
for (let i = 0; i < scores.length; i++) scores[i] = model.score(x.subarray(i * n, (i + 1) * n));
fs.writeSync(1, new Uint8Array(scores.buffer));
"""


@dataclass(frozen=True)
class EngineDocuments:
    """Documents to score with an exported model: a feature matrix and the feature names."""

    X: Floats  # documents × features, NaN where a feature is missing
    names: tuple[str, ...]  # names of the features
    used: tuple[int, ...]  # column numbers of the features that the model uses, at least one

    @cached_property
    def places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def column(self, name: str) -> Floats:
        """Return the column of X with this feature name, with 0 for missing values."""
        values = self.X[:, self.places[name]]
        return np.where(np.isnan(values), 0.0, values)

    def filled(self) -> Floats:
        """Return the features with 0 for missing values."""
        return np.where(np.isnan(self.X), 0.0, self.X)


@dataclass(frozen=True)
class EngineRun:
    """Scores that an engine computed with an exported model, and their expected accuracy."""

    engine: str  # name and version of the engine, or name of the reference
    scores: Floats
    is_reference: bool = False  # whether a reference computed the scores instead of the engine
    accuracy: float = FLOAT64_ACCURACY  # relative difference from predict due to rounding
    target: Target | None = None
    # The largest sum of the absolute terms of a score, or 0 if unknown. If positive and negative
    # terms cancel, rounding errors are relative to this sum, not to the score.
    largest_sum: float = 0.0


def c(files: Files, documents: EngineDocuments) -> EngineRun:
    """Compile the exported C function and return its scores."""
    compiler = _find("cc", "a C compiler")
    (name,) = re.findall(r"^double (\w+)_score\(", files[""].decode(), re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "model.c"), Path(folder, "model.so")
        source.write_bytes(files[""])
        _run(compiler, "-O1", "-shared", "-fPIC", str(source), "-o", str(library))
        score = ctypes.CDLL(str(library))[f"{name}_score"]
    score.restype = ctypes.c_double
    X = np.ascontiguousarray(documents.X, np.float64)
    at = X.ctypes.data
    scores = [score(ctypes.c_void_p(at + k * X.strides[0])) for k in range(len(X))]
    return EngineRun("C compiler", np.array(scores))


def java(files: Files, documents: EngineDocuments) -> EngineRun:
    """Compile the exported Java class and return its scores."""
    compiler, machine = _find("javac", "a JDK"), _find("java", "a JDK")
    (name,) = re.findall(r"^public final class (\w+) ", files[""].decode(), re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        model, main = Path(folder, f"{name}.java"), Path(folder, "MarginrankRun_.java")
        model.write_bytes(files[""])
        main.write_text(JAVA_MAIN % name)
        _run(compiler, "-encoding", "ascii", "-d", folder, str(model), str(main))
        shape = map(str, reversed(documents.X.shape))
        given = documents.X.astype(">f8").tobytes()
        out = _run(machine, "-cp", folder, "MarginrankRun_", *shape, given=given)
    return EngineRun("Java", np.frombuffer(out, ">f8").astype(np.float64))


def javascript(files: Files, documents: EngineDocuments) -> EngineRun:
    """Run the exported JavaScript function in Node.js and return its scores."""
    node = _find("node", "node")
    with tempfile.TemporaryDirectory() as folder:
        model, main = Path(folder, "model.js"), Path(folder, "main.js")
        model.write_bytes(files[""])
        main.write_text(NODE_MAIN)
        given = documents.X.astype("<f8").tobytes()
        out = _run(node, str(main), str(model), str(documents.X.shape[1]), given=given)
    return EngineRun("node", np.frombuffer(out, "<f8"))


def python(files: Files, documents: EngineDocuments) -> EngineRun:
    """Run the exported Python function, in a separate namespace, and return its scores."""
    namespace: dict[str, object] = {}
    exec(compile(files[""], "model.py", "exec"), namespace)
    score = namespace["score"]
    assert callable(score)
    scores: Floats = np.array([score(row) for row in documents.X.tolist()], dtype=np.float64)
    return EngineRun("Python", scores)


def _find(program: str, package: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise ValueError(f"cannot run the export: {program} is not on PATH; install {package}.")
    return found


def _run(*command: str, given: bytes | None = None) -> bytes:
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    if done.returncode:
        message = done.stderr.decode("utf-8", "replace").strip()[:500]
        raise ValueError(f"{Path(command[0]).name} failed on the export: {message}")
    return done.stdout


def sqlite(files: Files, documents: EngineDocuments) -> EngineRun:
    """Run the exported SQL statement in SQLite and return its scores."""
    columns = [sql_quoted(documents.names[place]) for place in documents.used]
    rows = documents.X[:, documents.used].tolist()  # SQLite stores NaN as NULL
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f'CREATE TABLE "{TABLE}" ({", ".join(columns)})')
        marks = ", ".join("?" * len(columns))
        database.executemany(f'INSERT INTO "{TABLE}" VALUES ({marks})', rows)
        found = database.execute(files[""].decode()).fetchall()
    return EngineRun(f"SQLite {sqlite3.sqlite_version}", _last_column(found))


def duckdb(files: Files, documents: EngineDocuments) -> EngineRun:
    """Run the exported SQL statement in DuckDB and return its scores."""
    return _in_duckdb(files[""].decode(), documents)


def postgresql(files: Files, documents: EngineDocuments) -> EngineRun:
    """Run an SQL statement that was exported for PostgreSQL in DuckDB, and return its scores."""
    return _in_duckdb(files[""].decode(), documents, instead_of="PostgreSQL")


def dialect(files: Files, documents: EngineDocuments) -> EngineRun:
    """Translate exported SQL to DuckDB's dialect with sqlglot, run it, and return its scores."""
    sqlglot = require("sqlglot", "sql")
    written_for = files["dialect"].decode()
    tree = sqlglot.parse_one(files[""].decode(), read=written_for)
    if written_for in FLOAT_IS_DOUBLE:
        for kind in tree.find_all(sqlglot.exp.DataType):
            kind.replace(sqlglot.exp.DataType.build("DOUBLE"))
    return _in_duckdb(tree.sql("duckdb"), documents, instead_of=written_for)


def _in_duckdb(
    statement: str, documents: EngineDocuments, instead_of: str | None = None
) -> EngineRun:
    duckdb = require("duckdb", "verify")
    label = f"DuckDB {duckdb.__version__}"
    if instead_of is not None:
        label = f"{label} in place of {instead_of}"
        check_distinct(documents.names, str.lower, label)
    columns = {documents.names[place]: documents.X[:, place].copy() for place in documents.used}
    with duckdb.connect() as database:
        database.register("columns", columns)
        database.execute(f'CREATE TABLE "{TABLE}" AS SELECT * FROM columns')  # NaN becomes NULL
        database.execute(statement)
        return EngineRun(label, _last_column(database.fetchall()))


def _last_column(rows: list[Any]) -> Floats:
    return np.array([row[-1] for row in rows], dtype=np.float64)


def onnx(files: Files, documents: EngineDocuments) -> EngineRun:
    """Run the exported ONNX graph in onnxruntime, in its own precision, and return its scores."""
    runtime = require("onnxruntime", "verify")
    session = runtime.InferenceSession(files[""], providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    X = documents.X.astype(np.float32 if given.type == "tensor(float)" else np.float64)
    starts = range(0, len(X) or 1, ROWS)
    parts = [session.run(None, {given.name: X[first : first + ROWS]})[0] for first in starts]
    return EngineRun(f"onnxruntime {runtime.__version__}", np.concatenate(parts).astype(np.float64))


def pmml(files: Files, documents: EngineDocuments) -> EngineRun:
    """Run the exported PMML document in PyPMML, which needs Java, and return its scores."""
    _find("java", "Java")
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
    """Run the exported model in fastrank and return its scores."""
    library = require("fastrank", "verify")
    model = library.CModel.from_dict(json.loads(files[""]))
    # Column k of the matrix is feature k in LETOR text, where features are numbered from 1.
    X = np.zeros((len(documents.X), 1 + documents.X.shape[1]), np.float32)
    X[:, 1:] = documents.filled()
    data = library.CDataset.from_numpy(X, np.zeros(len(X)), np.ones(len(X), np.int64))
    scores = np.array(model.predict_dense_scores(data), dtype=np.float64)
    return EngineRun(f"fastrank {library.__version__}", scores)


def ltr_plugin(files: Files, documents: EngineDocuments) -> EngineRun:
    """Return scores computed like the LTR plugins of Elasticsearch and OpenSearch, in float32.

    Terms are added in the order of the exported feature set, which matters for rounding.
    """
    model = json.loads(files[""])["model"]["model"]
    features = json.loads(files["features"])["featureset"]["features"]
    normalizers = model.get("feature_normalizers", {})
    means = {name: norm["standard"]["mean"] for name, norm in normalizers.items()}
    weights = {feature["name"]: model["definition"][feature["name"]] for feature in features}
    return _in_float32("the LTR plugin", weights, means, documents)


def solr(files: Files, documents: EngineDocuments) -> EngineRun:
    """Return scores computed like Solr's LinearModel, in float32.

    Terms are added in the order of the exported model, which matters for rounding.
    """
    model = json.loads(files[""])
    features = model["features"]
    means = {f["name"]: float(f["norm"]["params"]["avg"]) for f in features if "norm" in f}
    weights = {f["name"]: model["params"]["weights"][f["name"]] for f in features}
    return _in_float32("Solr", weights, means, documents)


def _in_float32(
    system: str, weights: dict[str, float], means: dict[str, float], documents: EngineDocuments
) -> EngineRun:
    total = np.zeros(len(documents.X), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for name, weight in weights.items():
            value = documents.column(name).astype(np.float32)
            total += np.float32(weight) * (value - np.float32(means.get(name, 0.0)))
    return EngineRun(f"reference of {system}", total.astype(np.float64), is_reference=True)


def vespa(files: Files, documents: EngineDocuments) -> EngineRun:
    """Return scores computed like the exported rank expression of Vespa, in float64."""
    renamed = json.loads(files.get("names.json", b"{}"))
    features = {f"attribute({renamed.get(name, name)})": name for name in documents.names}
    features |= {name: name for name in documents.names}  # names of rank features are not quoted
    lines = "\n".join(line.strip() for line in files[""].decode().splitlines())
    terms = [
        (documents.column(features[value]), weight) if value else (1.0, constant)
        for value, weight, constant in VESPA_TERM.findall(lines)
    ]
    return _in_float64("Vespa", terms, documents)


def lucene(files: Files, documents: EngineDocuments) -> EngineRun:
    """Return scores computed like the exported Lucene expression, in float64."""
    found = LUCENE_TERM.findall(files[""].decode())
    names = [re.sub(r"\\(.)", r"\1", field, flags=re.DOTALL) for _, field in found]
    values = [documents.column(name) if name else 1.0 for name in names]
    weights = [weight for weight, _ in found]
    return _in_float64("Lucene", zip(values, weights, strict=True), documents)


def ranklib(files: Files, documents: EngineDocuments) -> EngineRun:
    """Return scores computed like RankLib, with features in float32 and sums in float64."""
    X = documents.filled().astype(np.float32).astype(np.float64)
    entries = re.findall(rf"(?<!\S)(\d+):{NUMBER}", files[""].decode())
    return _in_float64("RankLib", [(X[:, int(k) - 1], weight) for k, weight in entries], documents)


def _in_float64(
    system: str, terms: Iterable[tuple[Floats | float, str]], documents: EngineDocuments
) -> EngineRun:
    total = np.zeros(len(documents.X))
    for value, weight in terms:
        total += float(weight) * value
    return EngineRun(f"reference of {system}", total, is_reference=True)
