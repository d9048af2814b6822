"""Exports of fusion models in DuckDB, with the scores of its full-text search."""

import numpy as np
import pytest
from helpers.fusion import N_QUERIES, assert_same_order

from marginrank.export.fusion import fusion_files
from marginrank.models import FusionModel

duckdb = pytest.importorskip("duckdb", reason="DuckDB: pip install duckdb")
VOCABULARY = [f"word{k}" for k in range(30)]
SIGNALS = ("title", "body")


@pytest.fixture(scope="module")
def database():
    rng = np.random.default_rng(0)
    with duckdb.connect() as database:
        try:
            database.execute("LOAD fts")
        except duckdb.Error:
            pytest.skip("DuckDB's extension fts is not installed: INSTALL fts downloads it")
        database.execute("CREATE TABLE documents (id TEXT, title TEXT, body TEXT)")
        rows = [
            (f"d{k:03d}", *(" ".join(rng.choice(VOCABULARY, size)) for size in (4, 30)))
            for k in range(150)
        ]
        database.executemany("INSERT INTO documents VALUES (?, ?, ?)", rows)
        database.execute("PRAGMA create_fts_index('documents', 'id', 'title', 'body')")
        yield database


@pytest.mark.parametrize("normalizer", ["minmax", "rrf", "none"])
def test_order(database, normalizer):
    model = FusionModel(SIGNALS, (0.3, 0.7), normalizer, rrf_constant=3, depth=20)
    statement = fusion_files(model, "duckdb")[""].decode()
    rng = np.random.default_rng(1)
    for _ in range(N_QUERIES):
        words = " ".join(rng.choice(VOCABULARY, 3, replace=False))
        searches = {
            field: "SELECT id, score FROM (SELECT id, fts_main_documents.match_bm25(id, "
            f"'{words}', fields := '{field}') AS score FROM documents) WHERE score IS NOT NULL"
            for field in SIGNALS
        }
        runs = {
            name: {"q": dict(database.execute(sql).fetchall())} for name, sql in searches.items()
        }
        parts = ", ".join(f'"{name}" AS ({sql})' for name, sql in searches.items())
        found = database.execute(f"WITH {parts}\n{statement}").fetchall()
        assert_same_order(model.fuse(runs)["q"], [row[0] for row in found])
