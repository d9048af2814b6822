"""Export of fusion models (hybrid search) to settings, requests and SQL for search engines.

A fusion model combines several searches, its *signals*. Requests have a placeholder for the text or
vector of each search, because the model knows only the names of the signals.
"""

from typing import Any

from marginrank._utils.parameters import Mention, ParameterError
from marginrank.export.fusion import WeightedSignals
from marginrank.export.names import (
    check_distinct,
    check_longest,
    check_no_reordering,
    shown,
    sql_quoted,
)
from marginrank.export.targets.search_engines import check_vespa_profile, is_rank_feature
from marginrank.export.targets.sql import TABLE
from marginrank.export.text import WRITTEN_BY, entry_lines, exact, json_file, scientific

PLACEHOLDER = "QUERY"  # placeholder in requests for the text or vector of a search
RESULTS = 10  # number of documents that requests ask for
OPENSEARCH = {"minmax": "min_max", "minmax_floor": "min_max", "zscore": "z_score", "l2": "l2"}
ELASTICSEARCH = {"minmax": "minmax", "l2": "l2_norm", "none": "none"}
# Qdrant normalizes scores only as a part of a fusion. A fusion of a single search normalizes the
# scores of that search.
QDRANT = {"dbsf": {"fusion": "dbsf"}, "none": None}
VESPA = {"minmax": "normalize_linear({})", "rrf": "reciprocal_rank({}, {})", "none": "{}"}
SQL = {
    "minmax": "COALESCE((score - MIN(score) OVER ())"
    " / NULLIF(MAX(score) OVER () - MIN(score) OVER (), 0e0), 1e0)",
    "rrf": "1e0 / ({constant} + place)",
    "none": "score",
}
SQL_SEARCH = """\
  SELECT id, {weight} * {value} AS score
  FROM (
    SELECT id, CAST(score AS {number}) AS score,
      ROW_NUMBER() OVER (ORDER BY score DESC, id DESC) AS place
    FROM {signal}
  ) AS found
  WHERE place <= {depth}"""
SQL_FUSION = """\
-- {written_by}
-- Each relation in quotes is the result of one search, with the columns id and score.
SELECT id, SUM(score) AS score
FROM (
{searches}
) AS signals
GROUP BY id
ORDER BY score DESC, id DESC;
"""
FTS5 = """\
-- {written_by}
-- The columns of the table are in the order of the signals.
SELECT rowid AS id, {terms} AS score
FROM "{table}"
WHERE "{table}" MATCH :query
ORDER BY score DESC, id DESC;
"""
PYTHON = '''\
"""{written_by}

{usage}
"""

from {module} import {factory}

SIGNALS = [  # the order of the searches
{signals}
]
DEPTH = {depth}  # the limit of each search
{variable} = {factory}({arguments})
'''


def write_opensearch(model: WeightedSignals) -> dict[str, bytes]:
    """Return two request bodies for OpenSearch: a search pipeline, and a search that uses it."""
    combination: dict[str, Any] = {"parameters": {"weights": list(model.weights)}}
    if model.normalizer == "rrf":
        combination |= {"technique": "rrf", "rank_constant": int(model.rrf_constant)}
        processor: dict[str, Any] = {"score-ranker-processor": {"combination": combination}}
    else:
        combination["technique"] = "arithmetic_mean"
        processor = {
            "normalization-processor": {
                "normalization": {"technique": OPENSEARCH[model.normalizer]},
                "combination": combination,
            }
        }
    queries = [_match(signal) for signal in model.signals]
    hybrid = {"queries": queries, "pagination_depth": model.depth}
    return {
        "": json_file({"description": WRITTEN_BY, "phase_results_processors": [processor]}),
        "search": json_file({"size": RESULTS, "query": {"hybrid": hybrid}}),
    }


def _match(signal: str) -> dict[str, Any]:
    return {"match": {signal: PLACEHOLDER}}


def write_elasticsearch(model: WeightedSignals) -> dict[str, bytes]:
    """Return the body of an Elasticsearch request with a linear or an rrf retriever."""
    retrievers: list[dict[str, Any]] = [
        {"retriever": {"standard": {"query": _match(signal)}}, "weight": weight}
        for signal, weight in zip(model.signals, model.weights, strict=True)
    ]
    fused: dict[str, Any] = {"retrievers": retrievers, "rank_window_size": model.depth}
    if model.normalizer == "rrf":
        retriever = {"rrf": {**fused, "rank_constant": int(model.rrf_constant)}}
    else:
        for one in retrievers:
            one["normalizer"] = ELASTICSEARCH[model.normalizer]
        retriever = {"linear": fused}
    return {"": json_file({"size": RESULTS, "retriever": retriever})}


def write_qdrant(model: WeightedSignals) -> dict[str, bytes]:
    """Return the body of a Qdrant query in which a formula adds the scores of named vectors.

    The weighted RRF of Qdrant is not used: its score is w / (rank + w (k - 1)), so a weight w would
    change the constant k too. Instead, the formula weights one unweighted RRF per signal.
    """
    searches: list[dict[str, Any]] = [
        {"query": PLACEHOLDER, "using": signal, "limit": model.depth} for signal in model.signals
    ]
    rrf = {"rrf": {"k": int(model.rrf_constant) + 1}}  # 1 / (rank + k - 1)
    fusion = rrf if model.normalizer == "rrf" else QDRANT[model.normalizer]
    if fusion is not None:
        searches = [
            {"prefetch": [search], "query": fusion, "limit": model.depth} for search in searches
        ]
    terms = [{"mult": [weight, f"$score[{k}]"]} for k, weight in enumerate(model.weights)]
    query = {"formula": {"sum": terms}}
    return {"": json_file({"prefetch": searches, "query": query, "limit": RESULTS})}


def write_weaviate(model: WeightedSignals) -> dict[str, bytes]:
    """Return the arguments of a hybrid search in Weaviate; alpha is the vector search's weight."""
    return {"": json_file({"alpha": model.weights[1], "fusionType": "relativeScoreFusion"})}


def write_milvus(model: WeightedSignals) -> dict[str, bytes]:
    """Return a Python module that defines a ranker for a hybrid search in Milvus."""
    factory, arguments = "RRFRanker", str(int(model.rrf_constant))
    if model.normalizer == "none":
        weights = ", ".join(map(exact, model.weights))
        factory, arguments = "WeightedRanker", f"{weights}, norm_score=False"
    return _python(
        model,
        "pymilvus",
        factory,
        arguments,
        variable="RANKER",
        usage="Pass RANKER to MilvusClient.hybrid_search, with one request per signal.",
    )


def write_lancedb(model: WeightedSignals) -> dict[str, bytes]:
    """Return a Python module that defines a reranker for a hybrid query in LanceDB."""
    factory, arguments = "RRFReranker", f"K={int(model.rrf_constant)}"
    if model.normalizer == "minmax":
        factory, arguments = "LinearCombinationReranker", f"weight={exact(model.weights[1])}"
    return _python(
        model,
        "lancedb.rerankers",
        factory,
        arguments,
        variable="RERANKER",
        usage="Pass RERANKER to rerank of a hybrid query with limit(DEPTH); the first signal is "
        "the\nfull-text search, the second the vector search.",
    )


def _python(
    model: WeightedSignals, module: str, factory: str, arguments: str, *, variable: str, usage: str
) -> dict[str, bytes]:
    text = PYTHON.format(
        written_by=WRITTEN_BY,
        usage=usage,
        module=module,
        factory=factory,
        signals=entry_lines(map(ascii, model.signals)),
        depth=model.depth,
        variable=variable,
        arguments=arguments,
    )
    return {"": text.encode("ascii")}


def write_vespa(model: WeightedSignals) -> dict[str, bytes]:
    """Return a rank profile of Vespa that combines the scores of several searches.

    The searches (signals) must have the names of rank features, such as bm25(title). Their scores
    are normalized and added in Vespa's global phase.
    """
    check_vespa_profile(model.name)
    for signal in model.signals:
        if not is_rank_feature(signal):
            raise ParameterError(
                f"the signal {shown(signal)} is not a rank feature of Vespa; rename it with ",
                Mention("names"),
                ", for example to 'bm25(title)' or 'closeness(field, embedding)'.",
            )
    constant = exact(model.rrf_constant)
    values = [VESPA[model.normalizer].format(signal, constant) for signal in model.signals]
    terms = [
        f"{value} * {exact(weight)}" for value, weight in zip(values, model.weights, strict=True)
    ]
    lines = "\n            + ".join(terms)
    text = (
        f"# {WRITTEN_BY}\n"
        f"rank-profile {model.name} inherits default {{\n"
        f"    first-phase {{\n        expression: {' + '.join(model.signals)}\n    }}\n"
        "    global-phase {\n"
        f"        rerank-count: {model.depth * len(model.signals)}\n"
        f"        expression {{\n            {lines}\n        }}\n"
        "    }\n"
        "}\n"
    )
    return {"": text.encode("ascii")}


def write_postgresql(model: WeightedSignals) -> dict[str, bytes]:
    """Return an SQL statement for PostgreSQL that fuses the results of the searches.

    Raise ParameterError for long names of signals, which PostgreSQL would silently truncate.
    """
    check_longest(model.signals, 63, "PostgreSQL")
    return _sql(model, "DOUBLE PRECISION")


def write_duckdb(model: WeightedSignals) -> dict[str, bytes]:
    """Return an SQL statement for DuckDB that fuses the results of the searches.

    Raise ParameterError if names of signals differ only in case, which DuckDB ignores.
    """
    check_distinct(model.signals, str.lower, "DuckDB")
    return _sql(model, "DOUBLE")


def write_sqlite(model: WeightedSignals) -> dict[str, bytes]:
    """Return an SQL statement for SQLite and, if scores are not normalized, one for FTS5 tables.

    FTS5's function bm25(t, w1, w2) weights the term frequencies of two columns before they
    saturate, so its value is not a weighted sum of two scores. The statement therefore adds
    w1 * bm25(t, 1, 0) and w2 * bm25(t, 0, 1).
    """
    check_distinct(model.signals, str.lower, "SQLite")
    files = _sql(model, "REAL")
    if model.normalizer == "none":
        files["fts5"] = _fts5(model)
    return files


def _sql(model: WeightedSignals, number: str) -> dict[str, bytes]:
    check_no_reordering(model.signals)
    value = SQL[model.normalizer].format(constant=scientific(model.rrf_constant))
    searches = [
        SQL_SEARCH.format(
            weight=scientific(weight),
            value=value,
            number=number,
            signal=sql_quoted(signal),
            depth=model.depth,
        )
        for signal, weight in zip(model.signals, model.weights, strict=True)
    ]
    text = SQL_FUSION.format(written_by=WRITTEN_BY, searches="\n  UNION ALL\n".join(searches))
    return {"": text.encode()}


def _fts5(model: WeightedSignals) -> bytes:
    n = len(model.signals)
    units = [", ".join("1.0" if column == k else "0.0" for column in range(n)) for k in range(n)]
    terms = " ".join(  # bm25 is lower for better documents
        f'- ({exact(weight)}) * bm25("{TABLE}", {unit})'
        for unit, weight in zip(units, model.weights, strict=True)
    )
    return FTS5.format(written_by=WRITTEN_BY, terms=terms, table=TABLE).encode("ascii")
