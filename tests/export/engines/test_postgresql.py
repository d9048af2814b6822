"""Exports of fusion models in PostgreSQL with pgvector, in a server of pgserver."""

import csv
import io

import numpy as np
import pytest
from helpers.fusion import N_QUERIES, assert_same_order

from marginrank.export.fusion import fusion_files
from marginrank.models import FusionModel

pgserver = pytest.importorskip("pgserver", reason="PostgreSQL: pip install pgserver")
N_DOCUMENTS, SIZE = 150, 6
VOCABULARY = [f"word{k}" for k in range(30)]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    rng = np.random.default_rng(0)
    server = pgserver.get_server(tmp_path_factory.mktemp("postgresql"), cleanup_mode="delete")
    rows = [
        f"('d{k:03d}', to_tsvector('simple', '{' '.join(rng.choice(VOCABULARY, 20))}'), "
        f"'{rng.normal(size=SIZE).tolist()}')"
        for k in range(N_DOCUMENTS)
    ]
    server.psql(
        "CREATE EXTENSION vector; CREATE TABLE documents "
        f'(id text COLLATE "C", words tsvector, embedding vector({SIZE}));'
        f"INSERT INTO documents VALUES {', '.join(rows)}"
    )
    yield server
    server.cleanup()


def rows_of(server, statement):
    """Return the rows of a statement, without the header and the footer of psql."""
    text = server.psql(f"COPY ({statement.rstrip().rstrip(';')}) TO STDOUT WITH CSV")
    return [row for row in csv.reader(io.StringIO(text)) if len(row) == 2]


@pytest.mark.parametrize("normalizer", ["minmax", "rrf", "none"])
def test_order(server, normalizer):
    model = FusionModel(("words", "dense"), (0.3, 0.7), normalizer, rrf_constant=3, depth=20)
    statement = fusion_files(model, "postgresql")[""].decode()
    rng = np.random.default_rng(1)
    for _ in range(N_QUERIES):
        words = " | ".join(rng.choice(VOCABULARY, 4, replace=False))
        vector = rng.normal(size=SIZE).tolist()
        searches = {
            "words": f"SELECT id, ts_rank_cd(words, query) AS score FROM documents, "
            f"to_tsquery('simple', '{words}') AS query WHERE words @@ query",
            "dense": f"SELECT id, 1 - (embedding <=> '{vector}') AS score FROM documents",
        }
        runs = {name: {"q": dict(rows_of(server, sql))} for name, sql in searches.items()}
        parts = ", ".join(f'"{name}" AS ({sql})' for name, sql in searches.items())
        found = [row[0] for row in rows_of(server, f"WITH {parts}\n{statement}")]
        assert_same_order(model.fuse(runs)["q"], found)
