"""How much features vary, to the last digits, however X comes."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.tables import each
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from marginrank import RankingData
from marginrank.fit import feature_scales
from marginrank.fit.feature_scales import QueryScale, RangeScale, StandardScale

LAYOUTS = {"float64": np.asarray, "float32": lambda X: X.astype(np.float32), "csr": sp.csr_array}
N = 3000


@pytest.fixture(params=[1 << 17, 200], ids=["one block", "many blocks"], autouse=True)
def block_entries(request, monkeypatch):
    """With small blocks, queries are cut into parts."""
    monkeypatch.setattr(feature_scales, "BLOCK_ENTRIES", request.param)


def features(offset=1e6):
    """Return features of many kinds, exact in float32, and queries of 1 to 900 documents."""
    rng = np.random.default_rng(0)
    qid = np.concatenate([np.full(900, 500), rng.integers(0, 400, N - 900)])
    rng.shuffle(qid)
    normal = rng.normal(size=(N, 8))
    columns = [
        offset + normal[:, 0],
        1e-3 * normal[:, 1],
        1e6 * normal[:, 2],
        np.where(rng.random(N) < 0.03, normal[:, 3], 0.0),
        np.full(N, 3.1),
        normal[:501, 5][qid],  # constant inside queries
        np.where(rng.random(N) < 0.5, 1e6 + normal[:, 6], 0.0),
        np.zeros(N),
        np.where(np.arange(N) == 0, 1e6, normal[:, 7]),  # the first is far out
    ]
    X = np.column_stack(columns).astype(np.float32).astype(np.float64)
    return X, qid


def found(kind, X, qid):
    result = kind()
    result.add(RankingData(X, np.zeros(N), qid))
    return result.values()


def inside_queries(X, qid):
    X = X.astype(np.longdouble)
    squares = sum(((X[qid == q] - X[qid == q].mean(0)) ** 2).sum(axis=0) for q in np.unique(qid))
    return np.sqrt(squares / len(X)).astype(np.float64)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_standard_deviation(layout):
    X, qid = features()
    values = found(StandardScale, layout(X), qid)
    exact = X.astype(np.longdouble)
    expected = np.sqrt(((exact - exact.mean(0)) ** 2).mean(0)).astype(np.float64)
    expected[[4, 7]] = 0.0
    np.testing.assert_allclose(values, expected, rtol=1e-13)
    scaler = StandardScaler().fit(X)
    varies = values > 0
    np.testing.assert_allclose(values[varies], scaler.scale_[varies], rtol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_range(layout):
    X, qid = features()
    values = found(RangeScale, layout(X), qid)
    np.testing.assert_array_equal(values, MinMaxScaler().fit(X).data_range_)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_spread_inside_queries(layout):
    X, qid = features()
    values = found(QueryScale, layout(X), qid)
    expected = inside_queries(X, qid)
    expected[[4, 5, 7]] = 0.0  # exactly
    np.testing.assert_allclose(values, expected, rtol=1e-13)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@each("kind", [StandardScale, RangeScale, QueryScale])
def test_data_in_parts_is_the_same_as_all_at_once(kind, layout):
    X, qid = features()
    order = np.argsort(qid, kind="stable")
    X, qid = X[order], qid[order]
    parts = kind()
    for first, last in ((0, 150), (150, 399), (399, 501)):
        rows = (qid >= first) & (qid < last)
        parts.add(RankingData(layout(X[rows]), np.zeros(rows.sum()), qid[rows]))
    np.testing.assert_allclose(parts.values(), found(kind, X, qid), rtol=1e-13)


def test_one_query_varies_as_all_documents():
    X, _ = features()
    one = np.zeros(N)
    np.testing.assert_array_equal(found(QueryScale, X, one), found(StandardScale, X, one))


@pytest.mark.parametrize("kind", [StandardScale, RangeScale, QueryScale])
def test_X_is_not_changed(kind):
    X, qid = features()
    for layout in LAYOUTS.values():
        given = layout(X)
        before = given.copy()
        found(kind, given, qid)
        assert abs(given - before).max() == 0


@each("kind", [StandardScale, RangeScale, QueryScale])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_parts_are_merged(kind, layout):
    """Each part has seen whole queries, and begins with another document."""
    X, qid = features()
    merged = kind()
    for part in range(3):
        rows = qid % 3 == part
        other = kind()
        other.add(RankingData(layout(X[rows]), np.zeros(rows.sum()), qid[rows]))
        merged.merge(other)
    together = found(kind, layout(X), qid)
    np.testing.assert_allclose(merged.values(), together, rtol=1e-9)
    np.testing.assert_array_equal(merged.values() == 0, together == 0)
