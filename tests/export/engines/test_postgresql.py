"""Exports of fusion models in PostgreSQL with pgvector, with the programs of pgserver.

pgserver's own server would add a user to the system if it is started by root.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from helpers.fusion import N_QUERIES, assert_same_order
from helpers.postgresql import running_postgresql

from marginrank.export.fusion import fusion_files
from marginrank.models import FusionModel

PGSERVER = find_spec("pgserver")
if PGSERVER is None:
    pytest.skip("PostgreSQL: pip install pgserver", allow_module_level=True)
N_DOCUMENTS, SIZE = 150, 6
VOCABULARY = [f"word{k}" for k in range(30)]


@pytest.fixture(scope="module")
def psql():
    rng = np.random.default_rng(0)
    rows = [
        f"('d{k:03d}', to_tsvector('simple', '{' '.join(rng.choice(VOCABULARY, 20))}'), "
        f"'{rng.normal(size=SIZE).tolist()}')"
        for k in range(N_DOCUMENTS)
    ]
    with running_postgresql(Path(PGSERVER.origin).parent / "pginstall" / "bin") as psql:
        psql(
            "CREATE EXTENSION vector; CREATE TABLE documents "
            f'(id text COLLATE "C", words tsvector, embedding vector({SIZE}));'
            f"INSERT INTO documents VALUES {', '.join(rows)}"
        )
        yield psql


@pytest.mark.parametrize("normalizer", ["minmax", "rrf", "none"])
def test_order(psql, normalizer):
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
        runs = {name: {"q": dict(psql(sql))} for name, sql in searches.items()}
        parts = ", ".join(f'"{name}" AS ({sql})' for name, sql in searches.items())
        found = [row[0] for row in psql(f"WITH {parts}\n{statement}")]
        assert_same_order(model.fuse(runs)["q"], found)
