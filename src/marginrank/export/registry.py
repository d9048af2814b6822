"""The targets of an export. Nothing is imported before a target is used."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal, NamedTuple

TARGETS_FOLDER = "marginrank.export.targets"
ENGINES_FOLDER = "marginrank.export.engines"
WRITER_ENDINGS = {"linear": "", "additive": "_curves", "kernel": "_kernel"}
CURVES_TOO = ("linear", "additive")
KERNELS_TOO = ("linear", "additive", "kernel")


class Limit(NamedTuple):
    """How many features a model may use at most, and why."""

    features: int
    reason: str


class Target(NamedTuple):
    """A system that models can be written for.

    Attributes
    ----------
    writes : str
        What the files are.
    ending : str
        How the name of the main file usually ends.
    write : str
        Module and function, in ``targets/``, that turn a weighted sum into files. Of a target that
        takes additive models, the function of the same name with ``_curves`` takes their sums, and
        that with ``_kernel`` those of kernel models.
    run : str
        Module and function, in ``engines/``, that score documents with the files.
    precision : {"float64", "float32"}
        What features and scores are there; how far scores may be from those of `predict`.
    missing : str
        What counts as missing: as the curve says in additive models, as 0 in others.
    takes : tuple of str
        Kinds of models: "linear", "additive", "kernel".
    by_name : bool
        Whether it finds features by their names, and not by their places.
    has_offset : bool
        Whether a constant can be added to scores.
    has_dialects : bool
        Whether it is asked for with a dialect, as in "sql:mysql".
    limit : Limit or None
        The most features it takes.
    lucene_scores : bool
        Whether scores become scores of Lucene, which are float32 and not negative.
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

    def writer(self, kind: str = "linear") -> Any:
        """Return the function that writes models of a kind that the target takes."""
        return _load(TARGETS_FOLDER, self.write + WRITER_ENDINGS[kind])

    def runner(self) -> Any:
        """Return the function that scores documents."""
        return _load(ENGINES_FOLDER, self.run)


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
        "letor:write_ranklib",
        "references:ranklib",
        precision="float32",
        missing="an absent index",
        by_name=False,
        has_offset=False,
    ),
    "fastrank": Target(
        "linear model of fastrank",
        ".json",
        "letor:write_fastrank",
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
    """Return a target by its name, and the dialect that the name asks for."""
    base, colon, dialect = name.partition(":")
    target = TARGETS.get(base)
    if target is None:
        raise ValueError(f"there is no target {name!r}; there are {', '.join(TARGETS)}.")
    if target.has_dialects and not dialect:
        raise ValueError(f"the target {name!r} needs a dialect, as in '{base}:mysql'.")
    if colon and not target.has_dialects:
        raise ValueError(f"the target {base!r} has no dialects; write {base!r} alone.")
    return target, dialect or None


def _load(folder: str, place: str) -> Any:
    module, _, function = place.partition(":")
    return getattr(import_module(f"{folder}.{module}"), function)
