"""Programs: compiled or interpreted with the tools on PATH."""

import ctypes
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from marginrank._utils.types import Floats
from marginrank.export.engines.run import EngineDocuments, EngineRun, Files

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


def c(files: Files, documents: EngineDocuments) -> EngineRun:
    """Compile the function and call it."""
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
    """Compile the class and run it."""
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
    """Run the function in node."""
    node = _find("node", "node")
    with tempfile.TemporaryDirectory() as folder:
        model, main = Path(folder, "model.js"), Path(folder, "main.js")
        model.write_bytes(files[""])
        main.write_text(NODE_MAIN)
        given = documents.X.astype("<f8").tobytes()
        out = _run(node, str(main), str(model), str(documents.X.shape[1]), given=given)
    return EngineRun("node", np.frombuffer(out, "<f8"))


def python(files: Files, documents: EngineDocuments) -> EngineRun:
    """Run the function of the module, in a namespace of its own."""
    namespace: dict[str, object] = {}
    exec(compile(files[""], "model.py", "exec"), namespace)
    score = namespace["score"]
    assert callable(score)
    scores: Floats = np.array([score(row) for row in documents.X.tolist()], dtype=np.float64)
    return EngineRun("Python", scores)


def _find(program: str, what: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise ValueError(f"cannot run the export: {program} is not on PATH; install {what}.")
    return found


def _run(*command: str, given: bytes | None = None) -> bytes:
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    if done.returncode:
        message = done.stderr.decode("utf-8", "replace").strip()[:500]
        raise ValueError(f"{Path(command[0]).name} failed on the export: {message}")
    return done.stdout
