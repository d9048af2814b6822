"""Exports as Lucene compiles them; Debian's liblucene8-java has what it takes."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from helpers.exports import (
    HOSTILE_NAMES,
    assert_scores,
    expected_scores,
    random_documents,
    random_model,
)

from marginrank.export.exporting import export_files

JARS = ("lucene-core", "lucene-expressions", "antlr4-runtime", "asm", "asm-commons")
MAIN = """\
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import org.apache.lucene.expressions.Expression;
import org.apache.lucene.expressions.js.JavascriptCompiler;
import org.apache.lucene.search.DoubleValues;

public final class Main {
    public static void main(String[] arguments) throws Exception {
        byte[] text = Files.readAllBytes(Paths.get(arguments[0]));
        Expression expression =
            JavascriptCompiler.compile(new String(text, StandardCharsets.UTF_8));
        Scanner in = new Scanner(System.in);
        Map<String, Integer> places = new HashMap<>();
        int n = in.nextInt();
        for (int k = 0; k < n; k++) places.put(decoded(in.next()), k);
        double[] row = new double[n];
        DoubleValues[] values = new DoubleValues[expression.variables.length];
        for (int k = 0; k < values.length; k++) {
            int place = places.get(name(expression.variables[k]));
            values[k] = new DoubleValues() {
                public double doubleValue() { return row[place]; }
                public boolean advanceExact(int document) { return true; }
            };
        }
        for (int rows = in.nextInt(); rows > 0; rows--) {
            for (int k = 0; k < n; k++) row[k] = Double.parseDouble(in.next());
            System.out.println(expression.evaluate(values));
        }
    }

    static String name(String variable) {
        return variable.substring(5, variable.length() - 8).replaceAll("(?s)\\\\\\\\(.)", "$1");
    }

    static String decoded(String codes) {
        StringBuilder name = new StringBuilder();
        for (String code : codes.split(",")) name.appendCodePoint(Integer.parseInt(code));
        return name.toString();
    }
}
"""


@pytest.fixture(scope="module")
def lucene(tmp_path_factory):
    """Return a function from an expression, names and documents to scores."""
    folder = Path(os.environ.get("MARGINRANK_JARS", "/usr/share/java"))
    found = [sorted(folder.glob(f"{name}-[0-9]*.jar")) for name in JARS]
    if not all(found) or shutil.which("javac") is None:
        pytest.skip(
            "javac, or liblucene8-java, libantlr4-runtime-java and libasm-java of Debian, are not "
            f"installed: {folder} has no {', '.join(JARS)}"
        )
    place = tmp_path_factory.mktemp("lucene")
    path = os.pathsep.join([*(str(jars[-1]) for jars in found), str(place)])
    (place / "Main.java").write_text(MAIN)
    subprocess.run(["javac", "-cp", path, "-d", place, place / "Main.java"], check=True)

    def lucene(expression, names, X):
        (place / "expression").write_bytes(expression)
        codes = [",".join(str(ord(c)) for c in name) for name in names]
        rows = [" ".join(map(repr, row)) for row in np.nan_to_num(X).tolist()]
        given = "\n".join([str(len(names)), *codes, str(len(rows)), *rows])
        done = subprocess.run(
            ["java", "-cp", path, "Main", place / "expression"],
            input=given, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return np.array(done.stdout.split(), dtype=np.float64)

    return lucene


def test_names_cannot_break_out(lucene):
    names = HOSTILE_NAMES
    model, X = random_model(len(names), names=names), random_documents(20, len(names))
    scores = lucene(export_files(model, "lucene", offset=2.5)[""], names, X)
    assert_scores("lucene", scores, expected_scores(model, X) + 2.5)


def test_as_many_weights_as_are_allowed(lucene):
    """An expression is one method, of 64 kB at most."""
    names = [f"f{k}" for k in range(5_000)]
    model, X = random_model(5_000, names=names), random_documents(3, 5_000)
    assert np.count_nonzero(model.coef) == 4_000
    scores = lucene(export_files(model, "lucene")[""], names, X)
    assert_scores("lucene", scores, expected_scores(model, X))
