"""The export targets. A target's modules are imported when it is first used."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal, NamedTuple

CURVES_TOO = ("linear", "additive")
KERNELS_TOO = ("linear", "additive", "kernel")


class Limit(NamedTuple):
    """The largest number of features that a model may use, and the reason."""

    features: int
    reason: str


class Target(NamedTuple):
    """A system that models can be exported to.

    Attributes
    ----------
    writes : str
        Description of the files.
    ending : str
        Usual ending of the main file's name.
    write : str
        Module and function, in ``targets/``, that turn a :class:`~marginrank.export.sums.Sum` into
        files.
    run : str
        Module and function, in ``engines/``, that score documents with the files.
    precision : {"float64", "float32"}
        Precision of features and scores, which bounds the difference from `predict`.
    missing : str
        Values that count as missing: 0, except that curves have a value for them.
    takes : tuple of str
        Supported kinds of models: "linear", "additive", "kernel".
    by_name : bool
        Whether features are found by name rather than by position.
    has_offset : bool
        Whether a constant can be added to scores.
    has_dialects : bool
        Whether the target's name ends with a dialect, as in "sql:mysql".
    limit : Limit or None
        Largest number of features.
    lucene_scores : bool
        Whether scores become Lucene's, which are float32 and not negative.
    """

    writes: str
    ending: str
    write: str
    run: str
    precision: Literal["float64", "float32"] = "float64"
    missing: str = "NaN"
    takes: tuple[str, ...] = ("linear",)
    by_name: bool = True
    has_offset: bool = True
    has_dialects: bool = False
    limit: Limit | None = None
    lucene_scores: bool = False

    @property
    def scores_in_float32(self) -> bool:
        """Whether documents are ranked by scores in float32."""
        return self.lucene_scores or self.precision == "float32"

    def writer(self) -> Any:
        """Return the function that writes the files."""
        return _load("targets", self.write)

    def runner(self) -> Any:
        """Return the function that scores documents."""
        return _load("engines", self.run)


_PLUGIN: Any = {
    "write": "search_engines:write_ltr_plugin",
    "run": "references:ltr_plugin",
    "precision": "float32",
    "missing": "a query without a match",
    "limit": Limit(10_000, "a feature set of the plugin has at most 10,000 features"),
    "lucene_scores": True,
}

TARGETS: Mapping[str, Target] = {
    "elasticsearch": Target(
        "model, feature set and rescore body of the Elasticsearch LTR plugin", ".json", **_PLUGIN
    ),
    "opensearch": Target(
        "model, feature set and rescore body of OpenSearch LTR", ".json", **_PLUGIN
    ),
    "solr": Target(
        "model and features of Solr's LTR module",
        ".json",
        "search_engines:write_solr",
        "references:solr",
        precision="float32",
        missing="a field without a value",
    ),
    "vespa": Target(
        "rank profile of Vespa",
        ".profile",
        "search_engines:write_vespa",
        "references:vespa",
        missing="an unset attribute (NaN)",
    ),
    "ranklib": Target(
        "Coordinate Ascent model of RankLib",
        ".txt",
        "search_engines:write_ranklib",
        "references:ranklib",
        precision="float32",
        missing="an absent index",
        by_name=False,
        has_offset=False,
    ),
    "fastrank": Target(
        "linear model of fastrank",
        ".json",
        "search_engines:write_fastrank",
        "libraries:fastrank",
        precision="float32",
        missing="an absent index",
        by_name=False,
        has_offset=False,
    ),
    "onnx": Target(
        "ONNX graph in float64",
        ".onnx",
        "onnx_graph:write_float64",
        "libraries:onnx",
        takes=KERNELS_TOO,
    ),
    "onnx-float32": Target(
        "ONNX graph with features and scores in float32",
        ".onnx",
        "onnx_graph:write_float32",
        "libraries:onnx",
        precision="float32",
        takes=KERNELS_TOO,
    ),
    "pmml": Target(
        "PMML 4.4 RegressionModel",
        ".pmml",
        "pmml:write",
        "libraries:pmml",
        takes=CURVES_TOO,
        missing="an absent field, or NaN",
    ),
    "lucene": Target(
        "Lucene expression, also a script of Elasticsearch",
        ".txt",
        "search_engines:write_lucene",
        "references:lucene",
        missing="a document without the field",
        limit=Limit(4_000, "Lucene compiles an expression into one method, of 64 kB at most"),
        lucene_scores=True,
    ),
    "sqlite": Target(
        "SELECT statement of SQLite",
        ".sql",
        "sql:write_sqlite",
        "databases:sqlite",
        takes=CURVES_TOO,
        missing="NULL",
        limit=Limit(1_999, "a result of SQLite has at most 2,000 columns"),
    ),
    "duckdb": Target(
        "SELECT statement of DuckDB",
        ".sql",
        "sql:write_duckdb",
        "databases:duckdb",
        takes=CURVES_TOO,
        missing="NULL",
    ),
    "postgresql": Target(
        "SELECT statement of PostgreSQL",
        ".sql",
        "sql:write_postgresql",
        "databases:postgresql",
        takes=CURVES_TOO,
        missing="NULL",
        limit=Limit(1_600, "a table of PostgreSQL has at most 1,600 columns"),
    ),
    "sql": Target(
        "SELECT statement of any dialect that sqlglot writes, as sql:mysql",
        ".sql",
        "sql:write_dialect",
        "databases:dialect",
        missing="NULL",
        has_dialects=True,
    ),
    "c": Target("C function", ".c", "c:write", "programs:c", takes=CURVES_TOO),
    "java": Target("Java class", ".java", "java:write", "programs:java", takes=CURVES_TOO),
    "javascript": Target(
        "JavaScript function, for node and browsers",
        ".js",
        "javascript:write",
        "programs:javascript",
        takes=CURVES_TOO,
        missing="NaN, null, undefined, or an absent name",
    ),
    "python": Target(
        "Python module without dependencies",
        ".py",
        "python:write",
        "programs:python",
        takes=CURVES_TOO,
        missing="NaN, None, or an absent name",
    ),
}


def find_target(name: str) -> tuple[Target, str | None]:
    """Return a target and the dialect in its name, such as "sql:mysql"."""
    base, colon, dialect = name.partition(":")
    target = TARGETS.get(base)
    if target is None:
        raise ValueError(f"unknown target {name!r}; use one of {', '.join(TARGETS)}.")
    if target.has_dialects and not dialect:
        raise ValueError(f"target {name!r} needs a dialect, as in '{base}:mysql'.")
    if colon and not target.has_dialects:
        raise ValueError(f"target {base!r} has no dialects, but got {name!r}; pass {base!r}.")
    return target, dialect or None


def _load(folder: str, place: str) -> Any:
    module, _, function = place.partition(":")
    return getattr(import_module(f"marginrank.export.{folder}.{module}"), function)
