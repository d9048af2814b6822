"""Exports in a PostgreSQL server of their own, which ends with the tests."""

import numpy as np
import pytest
from helpers.exports import (
    HOSTILE_NAMES,
    assert_scores,
    documents_around,
    expected_scores,
    random_curves,
    random_documents,
    random_grids,
    random_model,
)
from helpers.postgresql import running_postgresql

from marginrank.export.exporting import export_files
from marginrank.export.names import sql_quoted
from marginrank.models import AdditiveModel, LinearModel
from marginrank.models.additive_model import Curve, Interaction


@pytest.fixture(scope="module")
def psql():
    with running_postgresql() as psql:
        yield psql


def scores_in(psql, model, X, column_type="double precision"):
    """Return the scores of documents, NULL where a feature is missing."""
    columns = [sql_quoted(name) for name in model.feature_names]
    table = ", ".join(f"{column} {column_type}" for column in columns)
    rows = [",".join("NULL" if v != v else repr(v) for v in row) for row in X.tolist()]
    values = ",\n".join(f"({row})" for row in rows)
    statement = export_files(model, "postgresql")[""].decode()
    found = psql(
        f'DROP TABLE IF EXISTS "documents"; CREATE TABLE "documents" ({table});\n'
        f'INSERT INTO "documents" VALUES {values};\n{statement}'
    )
    return np.array([row[-1] for row in found], dtype=np.float64)


def test_names_cannot_break_out(psql):
    names = HOSTILE_NAMES
    model, X = random_model(len(names), names=names), random_documents(40, len(names))
    assert_scores("postgresql", scores_in(psql, model, X), expected_scores(model, X))


def test_as_many_features_as_a_table_has(psql):
    names = [f"f{k}" for k in range(1_600)]
    model, X = random_model(1_600, names=names), random_documents(5, 1_600)
    X = X.astype(np.float32).astype(np.float64)  # a row has 8 kB at most
    assert_scores("postgresql", scores_in(psql, model, X, "real"), expected_scores(model, X))


def test_decimals_and_integers_are_added_as_doubles(psql):
    model = LinearModel(np.array([0.1, 1e-9]), {}, feature_names=["a", "b"])
    statement = export_files(model, "postgresql")[""].decode()
    psql(
        'DROP TABLE IF EXISTS "documents"; CREATE TABLE "documents" (a numeric, b bigint);'
        "INSERT INTO documents VALUES (0.3, 7), (NULL, 9000000000)"
    )
    found = [float(row[-1]) for row in psql(statement)]
    np.testing.assert_allclose(found, [0.1 * 0.3 + 7e-9, 9.0], rtol=1e-15)


@pytest.mark.parametrize("seed", range(3))
def test_curves(psql, seed):
    """Hostile names, missing values, categories, constants, values beyond the outer knots."""
    names = HOSTILE_NAMES
    model = random_curves(len(names), seed=seed, names=names)
    X = 2 * random_documents(60, len(names), seed=seed)
    X[:, ::4] = np.round(X[:, ::4])
    assert_scores("postgresql", scores_in(psql, model, X), model.scores(X))


def test_pairs_of_features(psql):
    """With categories, constants, and every two features missing."""
    model = random_grids(8, 6, names=list("abcdefgh"))
    X = 2 * random_documents(60, 8)
    X[:, ::4] = np.round(X[:, ::4])
    X = np.vstack([X, *(documents_around(model, pair) for pair in model.interactions)])
    assert_scores("postgresql", scores_in(psql, model, X), model.scores(X))


def test_pairs_of_features_take_nan_as_missing_and_give_doubles(psql):
    """Even where all that is added is constant, which PostgreSQL would take for decimals."""
    knots, values = np.array([0.0, 1.0]), np.arange(9.0).reshape(3, 3)
    nothing = [Curve(np.zeros(1), np.zeros(1), 0.0, categorical=False)] * 2
    for categorical in ((False, False), (False, True), (True, True)):
        pairs = [Interaction((0, 1), (knots, knots), values, categorical)]
        model = AdditiveModel(nothing, {}, feature_names=["a", "b"], interactions=pairs)
        statement = export_files(model, "postgresql")[""].decode().rstrip().rstrip(";")
        psql(
            'DROP TABLE IF EXISTS "documents"; CREATE TABLE "documents" (a real, b numeric);'
            "INSERT INTO documents VALUES ('NaN', 'NaN'), (NULL, 1), (1, 'NaN'), (1, 0)"
        )
        found = psql(f"SELECT score, pg_typeof(score) FROM ({statement}) AS scored")
        assert [float(score) for score, _ in found] == [0.0, 2.0, 6.0, 7.0]
        assert {kind for _, kind in found} == {"double precision"}


def test_five_hundred_curves_of_32_bins(psql):
    names = [f"f{k}" for k in range(500)]
    model, X = random_curves(500, names=names, bins=32), random_documents(5, 500)
    assert_scores("postgresql", scores_in(psql, model, X), model.scores(X))


def test_curves_take_nan_as_missing_and_give_doubles(psql):
    """Even where all that is added is constant, which PostgreSQL would take for decimals."""
    curves = [
        Curve(np.array([0.0, 1.0]), np.array([3.0, 4.0]), 0.5, categorical=False),
        Curve(np.array([0.0, 1.0]), np.array([30.0, 40.0]), 0.25, categorical=True),
    ]
    for used, expected in ((curves, [0.75, 0.75, 34.0]), (curves[1:], [0.25, 0.25, 30.0])):
        names = ["a", "b"][-len(used) :]
        model = AdditiveModel(used, {}, feature_names=names)
        statement = export_files(model, "postgresql")[""].decode().rstrip().rstrip(";")
        psql(
            'DROP TABLE IF EXISTS "documents"; CREATE TABLE "documents" (a real, b numeric);'
            "INSERT INTO documents VALUES ('NaN', 'NaN'), (NULL, NULL), (1, 0)"
        )
        found = psql(f"SELECT score, pg_typeof(score) FROM ({statement}) AS scored")
        assert [float(score) for score, _ in found] == expected
        assert {kind for _, kind in found} == {"double precision"}


def test_names_that_would_be_cut_are_refused():
    model = LinearModel(np.ones(1), {}, feature_names=["ä" * 32])
    with pytest.raises(ValueError, match="PostgreSQL have at most 63 bytes"):
        export_files(model, "postgresql")
