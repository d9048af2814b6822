"""The export targets: systems that can run an exported model, and what each of them supports.

The modules that write and run the files of a target are imported when it is first used.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal, NamedTuple

CURVES_TOO = ("linear", "additive")
KERNELS_TOO = ("linear", "additive", "kernel")
LARGEST_INTEGER = 2**31 - 1


class Limit(NamedTuple):
    """The largest number of features that an export target supports, and the reason."""

    features: int
    reason: str


class Target(NamedTuple):
    """An export target: a system that models can be exported to, and the models it supports."""

    write: str  # function in targets/ that converts a Sum (see sums.py) to files
    run: str  # function in engines.py that scores documents with the files
    precision: Literal["float64", "float32"] = "float64"  # precision of features and scores
    missing: str = "NaN"  # how the target represents missing values; linear models count them as 0
    takes: tuple[str, ...] = ("linear",)  # kinds of models that the target supports; see KINDS
    by_name: bool = True  # whether features are found by name rather than by position
    has_offset: bool = True  # whether the target can add a constant to scores
    has_dialects: bool = False  # whether the name ends with a dialect, as in "sql:mysql"
    limit: Limit | None = None  # limit on the number of features
    lucene_scores: bool = False  # whether Lucene stores the scores, in float32 and non-negative

    @property
    def scores_in_float32(self) -> bool:
        """Whether the target ranks documents by scores that are rounded to float32."""
        return self.lucene_scores or self.precision == "float32"

    def writer(self) -> Any:
        module, _, function = self.write.partition(":")
        return getattr(import_module(f"marginrank.export.targets.{module}"), function)

    def runner(self) -> Any:
        return getattr(import_module("marginrank.export.engines"), self.run)


class FusionTarget(NamedTuple):
    """A search engine that combines several searches, and the fusion models that it supports."""

    write: str  # function in targets/fusion.py that turns WeightedSignals into files
    normalizers: tuple[str, ...]  # normalizers that the engine supports with any weights
    equal: tuple[str, ...] = ()  # normalizers that the engine supports with equal weights only
    negative: bool = False  # whether weights may be negative
    signals: tuple[int, int] = (1, LARGEST_INTEGER)  # smallest and largest number of signals
    constants: tuple[int, int] | None = None  # range of rrf_constant, if it must be an integer


_PLUGIN = Target(
    "search_engines:write_ltr_plugin",
    "ltr_plugin",
    precision="float32",
    missing="a query without a match",
    limit=Limit(10_000, "a feature set of the LTR plugin has at most 10,000 features"),
    lucene_scores=True,
)
_BY_INDEX: Any = {
    "precision": "float32",
    "missing": "an absent index",
    "by_name": False,
    "has_offset": False,
}

TARGETS: Mapping[str, Target] = {
    "elasticsearch": _PLUGIN,
    "opensearch": _PLUGIN,
    "solr": Target(
        "search_engines:write_solr", "solr", precision="float32", missing="a field without a value"
    ),
    "vespa": Target("search_engines:write_vespa", "vespa", missing="an unset attribute (NaN)"),
    "ranklib": Target("search_engines:write_ranklib", "ranklib", **_BY_INDEX),
    "fastrank": Target("search_engines:write_fastrank", "fastrank", **_BY_INDEX),
    "onnx": Target("onnx_graph:write_float64", "onnx", takes=KERNELS_TOO),
    "onnx-float32": Target(
        "onnx_graph:write_float32", "onnx", precision="float32", takes=KERNELS_TOO
    ),
    "pmml": Target("pmml:write", "pmml", takes=CURVES_TOO, missing="an absent field, or NaN"),
    "lucene": Target(
        "search_engines:write_lucene",
        "lucene",
        missing="a document without the field",
        limit=Limit(4_000, "Lucene compiles an expression into one method of at most 64 kB"),
        lucene_scores=True,
    ),
    "sqlite": Target(
        "sql:write_sqlite",
        "sqlite",
        takes=CURVES_TOO,
        missing="NULL",
        limit=Limit(1_999, "a result of SQLite has at most 2,000 columns"),
    ),
    "duckdb": Target("sql:write_duckdb", "duckdb", takes=CURVES_TOO, missing="NULL"),
    "postgresql": Target(
        "sql:write_postgresql",
        "postgresql",
        takes=CURVES_TOO,
        missing="NULL",
        limit=Limit(1_600, "a table of PostgreSQL has at most 1,600 columns"),
    ),
    "sql": Target("sql:write_dialect", "dialect", missing="NULL", has_dialects=True),
    "c": Target("c:write", "c", takes=CURVES_TOO),
    "java": Target("java:write", "java", takes=CURVES_TOO),
    "javascript": Target(
        "javascript:write",
        "javascript",
        takes=CURVES_TOO,
        missing="NaN, null, undefined, or a feature that is not in the object",
    ),
    "python": Target(
        "python:write",
        "python",
        takes=CURVES_TOO,
        missing="NaN, None, or a feature that is not in the dict",
    ),
}

_SQL = FusionTarget("", ("minmax", "rrf", "none"), negative=True)

FUSION_TARGETS: Mapping[str, FusionTarget] = {
    "opensearch": FusionTarget(
        "write_opensearch",
        ("minmax", "minmax_floor", "zscore", "l2", "rrf"),
        signals=(1, 5),
        constants=(1, 10_000),
    ),
    "elasticsearch": FusionTarget(
        "write_elasticsearch", ("minmax", "l2", "rrf", "none"), constants=(1, LARGEST_INTEGER)
    ),
    "qdrant": FusionTarget(
        "write_qdrant", ("dbsf", "rrf", "none"), negative=True, constants=(0, LARGEST_INTEGER - 1)
    ),
    "weaviate": FusionTarget("write_weaviate", ("minmax",), signals=(2, 2)),
    "milvus": FusionTarget("write_milvus", ("none",), equal=("rrf",), constants=(1, 16_383)),
    "lancedb": FusionTarget(
        "write_lancedb",
        ("minmax",),
        equal=("rrf",),
        signals=(2, 2),
        constants=(1, LARGEST_INTEGER),
    ),
    "vespa": FusionTarget("write_vespa", ("minmax", "rrf", "none"), negative=True),
    "postgresql": _SQL._replace(write="write_postgresql"),
    "sqlite": _SQL._replace(write="write_sqlite"),
    "duckdb": _SQL._replace(write="write_duckdb"),
}


def find_target(name: str) -> tuple[Target, str | None]:
    """Return the export target with this name, and its SQL dialect ("mysql" for "sql:mysql")."""
    base, colon, dialect = name.partition(":")
    target = TARGETS.get(base)
    if target is None and name in FUSION_TARGETS:
        raise ValueError(f"{name} takes fusion models only; use one of {', '.join(TARGETS)}.")
    if target is None:
        raise ValueError(f"unknown target {name!r}; use one of {', '.join(TARGETS)}.")
    if target.has_dialects and not dialect:
        raise ValueError(f"target {name!r} needs a dialect, as in '{base}:mysql'.")
    if colon and not target.has_dialects:
        raise ValueError(f"target {base!r} has no dialects, but got {name!r}; pass {base!r}.")
    return target, dialect or None


def find_fusion_target(to: str) -> FusionTarget:
    """Return the target with this name for fusion models; raise ValueError if there is none."""
    if to not in FUSION_TARGETS:
        raise ValueError(
            f"{to!r} does not fuse results; export the model to one of {', '.join(FUSION_TARGETS)}."
        )
    return FUSION_TARGETS[to]
