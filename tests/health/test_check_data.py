"""Planted defects are found, each by its name, and clean data have none."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.tables import each

from marginrank import RankingData, check_data, make_ranking
from marginrank.data.stored_data import open_stored
from marginrank.health import documents
from marginrank.health.duplicates import CORRELATED, find_resemblances
from marginrank.health.finding import MOST_FEATURES, SEVERITIES
from marginrank.health.summary import summarize

CLEAN = [
    {},
    {"n_queries": 30, "docs_per_query": (8, 60), "n_features": 8},
    {"n_queries": 150, "docs_per_query": 10, "n_features": 20, "correlation": 0.8},
    {"n_queries": 40, "n_features": 80, "dtype": np.float32},
    {"n_queries": 80, "n_features": 30, "density": 0.3},
    {"n_queries": 1, "docs_per_query": 500, "n_features": 6, "n_levels": None},
    {"n_queries": 60, "n_levels": 2, "heavy_tail": 0.3},
]
N_QUERIES = 60


def problem(random_state=0, **options):
    return make_ranking(
        **{"n_queries": N_QUERIES, "n_features": 8, **options}, random_state=random_state
    )


def codes(*files):
    return {finding.code for finding in check_data(*files)}


def places(code, *files):
    return [finding.place for finding in check_data(*files) if finding.code == code]


def split(X, y, qid):
    """Return a test of every third query, and training data of the others."""
    rows = qid % 3 == 0
    return RankingData(X[~rows], y[~rows], qid[~rows]), RankingData(X[rows], y[rows], qid[rows])


@pytest.mark.parametrize("shape", CLEAN, ids=repr)
def test_clean_data_have_no_finding(shape):
    for seed in range(20):
        X, y, qid = make_ranking(**shape, random_state=seed)
        whole = RankingData(X, y, qid)
        found = check_data(whole) if whole.n_queries == 1 else check_data(*split(X, y, qid))
        assert found == [], seed


def with_column(X, column):
    return np.column_stack([X, column])


def leaks():
    X, y, qid = problem()
    noise = np.random.default_rng(1).standard_normal(len(y))
    yield with_column(X, y), y, qid
    yield with_column(X, 3 - 2 * y + 0.1 * noise), y, qid
    yield with_column(X, y + 1000.0 * qid), y, qid  # a perfect order within queries only
    yield sp.csr_array(with_column(X, y)), y, qid
    binary = (y > 1).astype(float)
    yield with_column(X, np.where(binary == 1, 1.0, np.nan)), binary, qid  # known for the relevant


@each("data", list(leaks()))
def test_a_leak(data):
    data = RankingData(*data, allow_nan=True)
    assert places("label-leak", data) == ["f9"]
    assert check_data(data)[0].severity == "error"


@each("make", [np.asarray, sp.csr_array])
def test_constant_features(make):
    X, y, qid = problem()
    X[:, 2] = -0.0
    X[:, 4] = 7.5
    X[:, 5] = np.random.default_rng(0).standard_normal(N_QUERIES)[qid]
    data = RankingData(make(X), y, qid, feature_names=list("abcdefgh"))
    assert places("constant-feature", data) == ["c", "e"]
    assert places("query-constant-feature", data) == ["f"]
    messages = [one.message for one in check_data(data)]
    assert "c is 0 in all 1,200 documents." in messages
    assert "e is 7.5 in all 1,200 documents." in messages


def test_missing_values_are_one_value():
    X, y, qid = problem()
    X[:, 1] = np.nan
    X[::3, 2] = np.nan
    X[:, 3] = np.where(qid % 2, np.nan, 1.0)
    X = with_column(X, X[:, 2])
    X = with_column(X, 3 * X[:, 2] + 1)
    for layout in (np.asarray, sp.csr_array):
        data = RankingData(layout(X), y, qid, allow_nan=True)
        assert places("constant-feature", data) == ["f2"]
        assert places("query-constant-feature", data) == ["f4"]
        assert places("duplicate-feature", data) == ["f9"]
    assert places("correlated-feature", RankingData(X, y, qid, allow_nan=True)) == ["f10"]


@each("offset", [0.0, 1e6])
def test_duplicate_and_correlated_features(offset):
    X, y, qid = problem()
    X += offset
    noise = np.random.default_rng(0).standard_normal(len(y))
    X = np.column_stack(
        [X, X[:, 2], 5 - 3 * X[:, 4], X[:, 6] + 0.02 * noise, X[:, 7] + 0.1 * noise]
    )
    data = RankingData(X, y, qid)
    assert places("duplicate-feature", data) == ["f9"]
    assert places("correlated-feature", data) == ["f10", "f11"]


@each("make", [np.asarray, sp.csr_array])
def test_resembling_features_of_a_wide_matrix(make):
    """Against all correlations, with groups of more features than are compared with each one."""
    rng = np.random.default_rng(0)
    n, n_documents = 300, 150
    factors = rng.standard_normal((n_documents, 40)) * (rng.random((n_documents, 40)) < 0.5)
    X = factors[:, rng.integers(0, 40, n)] * rng.choice([1.0, -2.0], n)
    X[:, ::3] += 0.02 * rng.standard_normal(X[:, ::3].shape)
    data = RankingData(make(X), rng.integers(0, 3, n_documents), np.arange(n_documents) // 10)
    found = find_resemblances(data, summarize(data))
    r = np.corrcoef(X.T)
    for one in found:
        assert one.other < one.feature
        assert one.equal == np.array_equal(X[:, one.feature], X[:, one.other])
        assert one.correlation == pytest.approx(r[one.feature, one.other], abs=1e-9)
    equal = {j for j in range(n) if any(np.array_equal(X[:, j], X[:, k]) for k in range(j))}
    assert {one.feature for one in found if one.equal} == equal
    resembling = np.any(np.abs(r - np.eye(n)) > CORRELATED, axis=0)
    assert {j for one in found for j in one[:2]} == set(np.flatnonzero(resembling))


def test_rare_values_do_not_make_duplicates():
    X, y, qid = problem()
    X[:, :2] = 0.0
    X[7, :2] = X[300, :2] = 1.0
    assert "duplicate-feature" not in codes(RankingData(X, y, qid))


def test_scales():
    X, y, qid = problem()
    X[:, 3] *= 2000.0
    data = RankingData(X, y, qid)
    assert places("feature-scales", data) == ["f4"]
    assert any('scale="query"' in finding.advice for finding in check_data(data))
    X[:, 3] /= 20.0
    assert codes(RankingData(X, y, qid)) == set()


def test_labels():
    X, y, qid = problem()
    assert codes(RankingData(X, np.ones(len(y)), qid)) == {"one-label"}
    assert codes(RankingData(X, qid % 3, qid)) == {"no-pairs"}
    (alone,) = check_data(RankingData(X, y, np.arange(len(y))))
    assert "every query has one document" in alone.message
    rare = np.zeros(len(y))
    rare[::150] = 1.0
    found = check_data(RankingData(X, rare, qid))
    assert [(one.code, one.severity) for one in found] == [
        ("imbalanced-labels", "warning"),
        ("queries-without-pairs", "warning"),
    ]
    some = np.where(qid < 6, 0.0, y)
    (note,) = check_data(RankingData(X, some, qid))
    assert (note.code, note.severity) == ("queries-without-pairs", "note")
    assert "6 of 60 queries" in note.message
    assert "0, 1, 2, 3, 4, …" in note.message


def test_query_ids():
    X, y, qid = problem()
    apart = qid.copy()
    apart[-5:] = 3
    (found,) = check_data(RankingData(X, y, apart))
    assert found.code == "split-queries"
    assert "1 of 60 queries are not contiguous: 3." in found.message
    sizes = np.where(qid % 2, 20, 10)  # two groups of 10 documents take the rows of one of 20
    assert "group-sizes-as-qid" in codes(RankingData(X, y, sizes))
    assert "group-sizes-as-qid" in codes(RankingData(X, y, sizes.astype(str)))
    assert "group-sizes-as-qid" in codes(RankingData(X, y, np.full(len(y), 20)))


def test_a_query_in_both_files():
    X, y, qid = problem()
    both = (qid % 3 == 0) | ((qid == 4) & (np.arange(len(y)) % 2 == 0))
    rest = (qid % 3 != 0) & ~((qid == 4) & both)
    shared = [RankingData(X[rows], y[rows], qid[rows]) for rows in (rest, both)]
    assert codes(*shared) == {"shared-queries"}
    assert places("shared-queries", *shared) == ["test"]
    # Files that count their queries from 0 do not share them.
    ours, theirs = (RankingData(*problem(seed)) for seed in (0, 1))
    assert codes(ours, theirs) == set()


@each(
    ("make", "dtype"),
    [(np.asarray, np.float64), (sp.csr_array, np.float64), (np.asarray, np.float32)],
)
def test_a_document_in_both_files(make, dtype):
    X, y, qid = problem()
    train, test = split(X, y, qid)
    test.X[17] = train.X[33]
    test = RankingData(make(test.X.astype(dtype)), test.y, [f"t{q}" for q in test.qid])
    (found,) = check_data(train, test)
    assert found.code == "shared-documents"
    assert "1 of 400 test documents" in found.message
    assert f"in the queries {test.query_ids[test.qid[17]]}." in found.message


def test_documents_that_recur_by_chance_are_not_shared():
    rng = np.random.default_rng(0)
    X, y, qid = problem()
    X = (rng.random(X.shape) < 0.3).astype(float)  # 256 possible documents
    assert "shared-documents" not in codes(*split(X, y, qid))


def drifts():
    X, y, qid = problem()
    test = qid % 3 == 0
    rng = np.random.default_rng(0)
    for changed in (
        X[:, 2] + 1,
        1000 * X[:, 2],
        0 * X[:, 2],
        np.where(rng.random(len(y)) < 0.5, 3, 0),
    ):
        yield np.where(test, changed, X[:, 2])


@each("column", list(drifts()))
def test_drift(column):
    X, y, qid = problem()
    X[:, 2] = column
    assert places("feature-drift", *split(X, y, qid)) == ["f3"]


def test_drift_of_missing_values_and_labels():
    X, y, qid = problem()
    test = qid % 3 == 0
    X[test & (np.arange(len(y)) % 2 == 0), 5] = np.nan
    parts = (RankingData(X[r], y[r], qid[r], allow_nan=True) for r in (~test, test))
    assert places("feature-drift", *parts) == ["f6"]
    X, y, qid = problem()
    y[test] = np.minimum(y[test] + 1, 4)
    assert places("label-drift", *split(X, y, qid)) == ["test"]


def test_blocks_and_samples_do_not_change_findings(monkeypatch):
    X, y, qid = problem(n_queries=100, shuffle=True)
    X = np.column_stack([X, X[:, 0], y, np.ones(len(y)), qid % 7])
    whole = [check_data(RankingData(make(X), y, qid)) for make in (np.asarray, sp.csr_array)]
    assert whole[0] == whole[1]
    monkeypatch.setattr(documents, "BLOCK_ENTRIES", 100)
    monkeypatch.setattr(documents, "MOST_DOCUMENTS", 600)
    for make in (np.asarray, sp.csr_array):
        assert check_data(RankingData(make(X), y, qid)) == whole[0]


def test_many_findings_are_counted():
    X, y, qid = problem()
    X = np.hstack([X, np.zeros((len(y), MOST_FEATURES + 5))])
    found = [one for one in check_data(RankingData(X, y, qid)) if one.code == "constant-feature"]
    assert len(found) == MOST_FEATURES + 1
    assert found[-1].message == "Constant features: 5 more."


def test_findings_are_sorted_and_plain():
    X, y, qid = problem()
    X = np.column_stack([X, y, np.ones(len(y)), qid])
    found = check_data(RankingData(X, y, qid))
    severities = [SEVERITIES.index(one.severity) for one in found]
    assert severities == sorted(severities)
    assert set(found[0].to_dict()) == {"code", "severity", "place", "message", "advice"}
    assert all(one.message.endswith(".") and one.advice.endswith(".") for one in found)


def test_a_store_larger_than_memory(tmp_path):
    X, y, qid = problem()
    data = RankingData(np.column_stack([X, y]), y, qid)
    data.save(tmp_path / "s")
    assert check_data(open_stored(tmp_path / "s")) == check_data(data)


@each(
    "factor",
    [1e300, 3e306, 1e-300, np.array([1e200, 1.0, 1e-200, 1.0, 1.0, 1.0, 1.0, 1.0]), np.nan],
)
@pytest.mark.filterwarnings("error")
def test_numbers_whose_squares_overflow_and_nothing_but_missing_values(factor):
    X, y, qid = problem()
    found = codes(RankingData(X * factor, y, qid, allow_nan=True))
    assert found <= {"feature-scales", "constant-feature"}


@pytest.mark.filterwarnings("error")
def test_documents_without_any_value():
    X, y, qid = problem()
    empty = RankingData(sp.csr_array(X.shape), y, qid)
    assert codes(empty, empty) == {"constant-feature"}
    assert codes(RankingData(np.ones((1, 1)), [1.0])) == {"one-label", "constant-feature"}


def test_wrong_arguments():
    X, y, qid = problem()
    data = RankingData(X, y, qid)
    with pytest.raises(TypeError, match="train is of type tuple; pass a RankingData"):
        check_data((X, y, qid))
    with pytest.raises(ValueError, match="test has 7 features, but X has 8"):
        check_data(data, RankingData(X[:, :7], y, qid))
