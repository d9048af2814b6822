"""Exports of fusion models: engines order documents as the model does, or the export raises.

SQLite and DuckDB run here. For OpenSearch, Elasticsearch, Weaviate and Vespa, references of their
documented arithmetic do. tests/export/engines runs other engines.
"""

import json
import re
import sqlite3
from contextlib import closing

import duckdb
import numpy as np
import pytest
from helpers.exports import HOSTILE_NAMES
from helpers.fusion import (
    N_QUERIES,
    assert_engine_agrees,
    assert_same_order,
    elasticsearch,
    fusion_model,
    lists_of,
    opensearch,
    opensearch_scores,
    random_runs,
    vespa,
    weaviate,
)

from marginrank.export.exporting import export_files
from marginrank.export.fusion import fusion_files
from marginrank.export.names import sql_quoted
from marginrank.export.registry import FUSION_TARGETS
from marginrank.models import FusionModel, LinearModel
from marginrank.models.fusion_model import QueryFeature

VESPA_NAMES = {"keyword": "bm25(title)", "vector": "closeness(field, embedding)"}


@pytest.mark.parametrize(
    ("to", "engine", "normalizer"),
    [
        *(("opensearch", opensearch, name) for name in ("minmax_floor", "zscore", "l2", "rrf")),
        *(("elasticsearch", elasticsearch, name) for name in ("minmax", "l2", "none", "rrf")),
        ("weaviate", weaviate, "minmax"),
    ],
)
def test_references_give_the_order_of_the_model(to, engine, normalizer):
    model = fusion_model(normalizer, rrf_constant=7.0, depth=12)
    assert_engine_agrees(model, to, engine)


@pytest.mark.parametrize("to", ["opensearch", "elasticsearch"])
def test_more_than_two_signals(to):
    engine = {"opensearch": opensearch, "elasticsearch": elasticsearch}[to]
    assert_engine_agrees(fusion_model("rrf", (0.4, 0.3, 0.0, 0.3)), to, engine)


def test_opensearch_differs_from_minmax_by_its_lowest_score():
    model = fusion_model("minmax")
    runs = random_runs(model.signals)
    files = fusion_files(model, "opensearch")
    for query, expected in model.fuse(runs).items():
        found = opensearch_scores(files, lists_of(model, runs, query))
        assert max(abs(found[document] - expected[document]) for document in expected) < 0.00101


@pytest.mark.parametrize("normalizer", ["minmax", "rrf", "none"])
def test_vespa_gives_the_order_of_the_model(normalizer):
    """Vespa has a value of each rank feature for every document, so nothing is missing."""
    model = fusion_model(normalizer, (-0.4, 1.2), rrf_constant=2.5)
    runs = random_runs(model.signals, kept=1.0)
    assert_engine_agrees(model, "vespa", vespa, runs, names=VESPA_NAMES)
    text = fusion_files(model, "vespa", name="hybrid", names=VESPA_NAMES)[""].decode()
    assert "rank-profile hybrid inherits default {" in text
    assert "rerank-count: 200" in text


def test_vespa_needs_rank_features():
    with pytest.raises(ValueError, match=r"'keyword' is not a rank feature .*names.*bm25\(title\)"):
        fusion_files(fusion_model("rrf"), "vespa")
    for name in ("bm25(title) + x", "bm25(a)(b)", "log(x)", "bm25()", "bm25(title)\n"):
        with pytest.raises(ValueError, match="not a rank feature"):
            fusion_files(fusion_model("rrf"), "vespa", names=[name, "bm25(body)"])


def ranked(database, files, lists, signals):
    """Return the documents in the order of a statement, after relations with the results."""
    relations = [
        f"{sql_quoted(signal)}(id, score) AS (VALUES "
        + ", ".join(f"('{document}', {score:.16e})" for document, score in found)
        + ")"
        for signal, found in zip(signals, lists, strict=True)
    ]
    statement = f"WITH {', '.join(relations)}\n{files[''].decode()}"
    return [row[0] for row in database.execute(statement).fetchall()]


@pytest.fixture
def sqlite():
    with closing(sqlite3.connect(":memory:")) as database:
        yield database


@pytest.mark.parametrize("normalizer", ["minmax", "rrf", "none"])
@pytest.mark.parametrize("to", ["sqlite", "duckdb"])
def test_databases_give_the_order_of_the_model(to, normalizer):
    """The relations have all documents; the statement keeps the first `depth`."""
    model = fusion_model(normalizer, (0.5, -0.2, 0.7), depth=9, rrf_constant=2.5)
    runs = random_runs(model.signals)
    files = fusion_files(model, to)
    connect = {"sqlite": lambda: sqlite3.connect(":memory:"), "duckdb": duckdb.connect}[to]
    with closing(connect()) as database:
        for query, expected in model.fuse(runs).items():
            lists = [list(runs[signal][query].items()) for signal in model.signals]
            found = ranked(database, files, lists, model.signals)
            assert_same_order(expected, found, accuracy=1e-12)


def test_ties_and_constant_lists_in_a_database(sqlite):
    """Equal scores are 1 after minmax; ties are in descending order of ids."""
    runs = {"keyword": {"q": {"a": 2.0, "b": 2.0}}, "vector": {"q": {"c": 0.0, "b": 0.0}}}
    for normalizer in ("minmax", "rrf", "none"):
        model = fusion_model(normalizer, (0.5, 0.5))
        expected = list(model.fuse(runs)["q"])
        lists = [list(run["q"].items()) for run in runs.values()]
        assert ranked(sqlite, fusion_files(model, "sqlite"), lists, model.signals) == expected


def test_names_cannot_break_out_of_statements(sqlite):
    names = [name for name in HOSTILE_NAMES if name.isprintable()]
    for pair in zip(names[::2], names[1::2], strict=False):
        model = FusionModel(pair, [0.5, 0.5], "rrf")
        lists = [[("a", 2.0), ("b", 1.0)], [("b", 3.0)]]
        assert ranked(sqlite, fusion_files(model, "sqlite"), lists, pair) == ["b", "a"]


@pytest.mark.parametrize("to", ["milvus", "lancedb"])
def test_names_cannot_break_out_of_modules(to):
    for pair in zip(HOSTILE_NAMES[::2], HOSTILE_NAMES[1::2], strict=False):
        text = fusion_files(FusionModel(pair, [0.5, 0.5], "rrf"), to)[""].decode()
        body = "\n".join(line for line in text.splitlines() if not line.startswith("from "))
        names = {}
        exec(body.replace("RRFRanker(", "dict(k=").replace("RRFReranker(", "dict("), names)
        assert names["SIGNALS"] == list(pair)


VOCABULARY = ["wing", "flow", "heat", "shock", "plate", "jet", "drag", "lift", "mach", "layer"]


@pytest.fixture(scope="module")
def fts5():
    """Return a table of FTS5 with titles and bodies."""
    rng = np.random.default_rng(0)
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute('CREATE VIRTUAL TABLE "documents" USING fts5(title, body)')
        rows = [
            [" ".join(rng.choice(VOCABULARY, size)) for size in (rng.integers(1, 5), 30)]
            for _ in range(200)
        ]
        rows = [(title, " ".join(body.split()[: rng.integers(3, 30)])) for title, body in rows]
        database.executemany('INSERT INTO "documents" VALUES (?, ?)', rows)
        yield database


def field_runs(fts5, queries):
    """Return one run per column: bm25 with weight 1 for the column and 0 for the other.

    Ids have the order of their numbers, as ties have in the statement.
    """
    statement = (
        'SELECT printf(\'%03d\', rowid), -bm25("documents", {}) FROM "documents" '
        'WHERE "documents" MATCH ?'
    )
    return {
        name: {q: dict(fts5.execute(statement.format(unit), (q,)).fetchall()) for q in queries}
        for name, unit in {"title": "1.0, 0.0", "body": "0.0, 1.0"}.items()
    }


def random_queries():
    rng = np.random.default_rng(1)
    pairs = [sorted(rng.choice(VOCABULARY, 2, replace=False)) for _ in range(3 * N_QUERIES)]
    return list(dict.fromkeys(" OR ".join(pair) for pair in pairs))[: N_QUERIES - 10] + VOCABULARY


def test_field_boosts_in_fts5(fts5):
    queries = random_queries()
    runs = field_runs(fts5, queries)
    model = FusionModel(("title", "body"), [0.8, 0.2], "none", depth=200)
    statement = fusion_files(model, "sqlite")["fts5"].decode()
    fused = model.fuse(runs)
    assert len(fused) >= 40
    for query, expected in fused.items():
        rows = fts5.execute(statement, {"query": query}).fetchall()
        assert_same_order(expected, [f"{row[0]:03d}" for row in rows], accuracy=1e-12)


@pytest.mark.parametrize("normalizer", ["minmax", "rrf", "none"])
def test_searches_of_fts5_in_front_of_the_statement(fts5, normalizer):
    queries = random_queries()
    runs = field_runs(fts5, queries)
    model = FusionModel(("title", "body"), [0.8, 0.2], normalizer, depth=50)
    search = (
        'SELECT printf(\'%03d\', rowid) AS id, -bm25("documents", {}) AS score FROM "documents" '
        'WHERE "documents" MATCH :query'
    )
    units = {"title": "1.0, 0.0", "body": "0.0, 1.0"}
    parts = [f'"{name}" AS MATERIALIZED ({search.format(unit)})' for name, unit in units.items()]
    statement = f"WITH {', '.join(parts)}\n{fusion_files(model, 'sqlite')[''].decode()}"
    for query, expected in model.fuse(runs).items():
        found = [row[0] for row in fts5.execute(statement, {"query": query})]
        assert_same_order(expected, found, accuracy=1e-12)


ERRORS = [
    ("weaviate", fusion_model("rrf"), r"weaviate cannot run normalizer='rrf'; fit with "
     r"normalizer='minmax', or export to opensearch or elasticsearch or qdrant or vespa"),
    ("elasticsearch", fusion_model("zscore"), "cannot run normalizer='zscore'.*'minmax' or 'l2'"),
    ("qdrant", fusion_model("minmax"), "'dbsf' or 'rrf' or 'none'"),
    ("vespa", fusion_model("l2"), "'minmax' or 'rrf' or 'none'"),
    ("sqlite", fusion_model("dbsf"), "cannot run normalizer='dbsf'.*export to qdrant"),
    ("milvus", fusion_model("rrf"), "milvus runs normalizer='rrf' with equal weights only; fit with"
     " normalizer='none'"),
    ("lancedb", fusion_model("rrf"), "equal weights only"),
    ("opensearch", fusion_model("minmax", (-0.5, 1.0)), "weight of 'keyword' is -0.5.*positive=True"
     ", or export to qdrant or vespa"),
    ("elasticsearch", fusion_model("rrf", rrf_constant=0.5), "rrf_constant=0.5 must be an integer"),
    ("opensearch", fusion_model("rrf", rrf_constant=0), "integer from 1 to 10000"),
    ("weaviate", fusion_model("minmax", (0.2, 0.3, 0.5)), "3 signals, .* exactly 2"),
    ("opensearch", FusionModel("abcdef", np.full(6, 1 / 6)), "6 signals, but opensearch .* most 5"),
    ("solr", fusion_model("rrf"), "'solr' does not fuse results; export .* opensearch"),
    ("opensearch", fusion_model("rrf", query_features=(QueryFeature("n", 0, 1, (0.1, 0.1)),)),
     "query feature 'n'"),
]  # fmt: skip


@pytest.mark.parametrize(("to", "model", "message"), ERRORS)
def test_errors_name_the_choices(to, model, message):
    with pytest.raises(ValueError, match=message):
        fusion_files(model, to)


def test_other_models_are_not_exported_to_engines_that_fuse():
    with pytest.raises(ValueError, match="qdrant takes fusion models only"):
        export_files(LinearModel(np.ones(2), {}), "qdrant")


def test_bad_names():
    model = fusion_model("rrf")
    with pytest.raises(ValueError, match="'dense', which is not a signal of the model"):
        fusion_files(model, "opensearch", names={"dense": "x"})
    with pytest.raises(ValueError, match="has 1 entries and must have 2, one per signal"):
        fusion_files(model, "opensearch", names=["x"])
    with pytest.raises(ValueError, match="cannot distinguish"):
        fusion_files(model, "sqlite", names=["a", "A"])
    with pytest.raises(ValueError, match="must be letters"):
        fusion_files(model, "opensearch", name="a b")


@pytest.mark.parametrize("to", FUSION_TARGETS)
def test_every_target_runs_what_it_lists(to):
    target = FUSION_TARGETS[to]
    names = list(VESPA_NAMES.values()) if to == "vespa" else None
    for normalizer in (*target.normalizers, *target.equal):
        files = fusion_files(fusion_model(normalizer, (0.5, 0.5)), to, names=names)
        assert files[""].endswith(b"\n")
        if files[""].startswith(b"{"):
            json.loads(files[""])


def test_rank_features_of_linear_models():
    names = ["bm25(title)", "closeness(field, embedding)", "price", "log(price)", "attribute(age)"]
    files = export_files(LinearModel(np.arange(1.0, 6.0), {}, feature_names=names), "vespa")
    found = re.findall(r", 0\.0, (.+)\) \* ", files[""].decode())
    assert found == [*names[:2], "attribute(price)", "attribute(log_price_)", "attribute(age)"]
    assert json.loads(files["names.json"]) == {"log(price)": "log_price_"}
    with pytest.raises(ValueError, match=r"'age' and 'attribute\(age\)', which Vespa"):
        export_files(LinearModel(np.ones(2), {}, feature_names=["age", "attribute(age)"]), "vespa")
