"""Scaling inside queries, against a loop over queries with other libraries' scalers."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.tables import each
from scipy.stats import rankdata
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from marginrank import RankingData
from marginrank.data import query_scaling
from marginrank.data.queries import group_rows
from marginrank.data.query_scaling import METHODS, scale_by_query, scale_queries


def of_one_query(X, method):
    """Return one query scaled."""
    if method == "minmax":
        return MinMaxScaler().fit_transform(X)
    if method == "standard":
        scaled = StandardScaler().fit_transform(X)
        return np.where(X.min(axis=0) == X.max(axis=0), 0.0, scaled)
    if len(X) == 1:
        return np.full(X.shape, 0.5)
    return (rankdata(X, axis=0) - 1) / (len(X) - 1)


def by_loop(X, qid, method):
    result = np.empty(X.shape)
    for q in np.unique(qid):
        result[qid == q] = of_one_query(X[qid == q].astype(np.float64), method)
    return result


def by_loop_with_zeros_kept(X, qid, method):
    """Return what a sparse matrix becomes: values less what zero becomes, where there is one."""
    result = by_loop(X, qid, method)
    for q in np.unique(qid):
        for j in range(X.shape[1]):
            rows = np.flatnonzero(qid == q)
            zeros = rows[X[rows, j] == 0]
            if zeros.size:
                result[rows, j] -= result[zeros[0], j]
    return result


def make_documents(seed=0, dtype=np.float64):
    """Return integers with ties, zeros of either sign and constants, in queries of any size."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, size=30)
    qid = rng.permutation(np.repeat(np.arange(30), sizes))
    X = rng.integers(-3, 4, size=(qid.size, 7)).astype(dtype)
    X[:, 1] = 0.1 + qid  # constant inside queries
    X[:, 2] = np.abs(X[:, 2])
    X[:, 3] = np.where(X[:, 3] == 0, 1, np.abs(X[:, 3]))  # no zeros
    X[:, 4] = rng.normal(size=qid.size) + 1e6
    X[:, 5] = np.where(X[:, 5] == 0, -0.0, X[:, 5])
    X[:, 6] = np.where(rng.random(qid.size) < 0.8, 0, X[:, 6])
    return X, qid


@pytest.fixture(params=[1, 40, 2**20], ids=lambda n: f"blocks of {n} entries")
def _block(request, monkeypatch):
    monkeypatch.setattr(query_scaling, "BLOCK", request.param)


@pytest.mark.usefixtures("_block")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", METHODS)
def test_dense_features(method, dtype):
    X, qid = make_documents(dtype=dtype)
    for rows in (slice(None), np.argsort(qid, kind="stable")):
        documents = group_rows(len(qid), qid[rows], None).documents
        before = X[rows].copy()
        scaled = scale_by_query(X[rows], documents, method)
        assert scaled.dtype == dtype
        tolerance = 1e-6 if dtype == np.float32 else 1e-9
        expected = by_loop(X[rows], qid[rows], method)
        np.testing.assert_allclose(scaled, expected, rtol=tolerance, atol=tolerance)
        np.testing.assert_array_equal(X[rows], before)


@pytest.mark.usefixtures("_block")
@each("make", [sp.csr_array, sp.csr_matrix])
@each("dtype", [np.float32, np.float64])
@each("method", METHODS)
def test_sparse_features(method, dtype, make):
    dense, qid = make_documents(dtype=dtype)
    X = make(dense)
    X.data[::11] = 0.0  # zeros that are stored
    dense = X.toarray()
    before = X.copy()
    for rows in (slice(None), np.argsort(qid, kind="stable")):
        documents = group_rows(len(qid), qid[rows], None).documents
        scaled = scale_by_query(X[rows], documents, method)
        assert type(scaled) is make
        assert scaled.dtype == dtype
        np.testing.assert_array_equal(scaled.indices, X[rows].indices)
        tolerance = 1e-6 if dtype == np.float32 else 1e-9
        expected = by_loop_with_zeros_kept(dense[rows], qid[rows], method)
        np.testing.assert_allclose(scaled.toarray(), expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(X.data, before.data)


def test_sparse_features_that_are_never_negative_are_scaled_as_dense_ones():
    dense, qid = make_documents()
    dense = np.abs(dense)
    documents = group_rows(len(qid), qid, None).documents
    scaled = scale_by_query(sp.csr_array(dense), documents, "minmax")
    np.testing.assert_array_equal(scaled.toarray(), scale_by_query(dense, documents, "minmax"))


@pytest.mark.parametrize("method", METHODS)
def test_differences_inside_a_query_are_the_same_for_sparse_and_dense(method):
    dense, qid = make_documents(1)
    documents = group_rows(len(qid), qid, None).documents
    sparse = scale_by_query(sp.csr_array(dense), documents, method).toarray()
    full = scale_by_query(dense, documents, method)
    for q in np.unique(qid):
        rows = np.flatnonzero(qid == q)
        np.testing.assert_allclose(
            sparse[rows] - sparse[rows[0]], full[rows] - full[rows[0]], atol=1e-9
        )


def test_a_sparse_matrix_without_entries_and_one_with_many_columns():
    documents = group_rows(4, [0, 0, 1, 1], None).documents
    assert scale_by_query(sp.csr_array((4, 3)), documents, "rank").nnz == 0
    wide = sp.csr_array(([2.0, 4.0], ([0, 1], [0, 10**9])), shape=(4, 10**9 + 1))
    np.testing.assert_array_equal(scale_by_query(wide, documents, "minmax").data, [1.0, 1.0])


def test_equal_values_are_equal_however_they_round():
    X = np.full((7, 1), 0.1)
    documents = group_rows(7, None, None).documents
    assert (scale_by_query(X, documents, "standard") == 0).all()
    assert (scale_by_query(sp.csr_array(X), documents, "standard").data == 0).all()


@pytest.mark.parametrize("make", [np.array, sp.csr_array])
@pytest.mark.parametrize("method", ["minmax", "standard"])
def test_values_too_far_apart_are_refused(method, make):
    documents = group_rows(2, None, None).documents
    with pytest.raises(ValueError, match="overflows float64"):
        scale_by_query(make([[1.5e308], [-1.5e308]]), documents, method)
    ranks = scale_by_query(np.array([[1.5e308], [-1.5e308]]), documents, "rank")
    np.testing.assert_array_equal(ranks, [[1.0], [0.0]])
    large = scale_by_query(make([[1e200], [-1e200]]), documents, method)
    np.testing.assert_allclose(
        np.ptp(large.toarray() if sp.issparse(large) else large), 1 + (method == "standard")
    )


def test_unknown_methods_are_refused():
    documents = group_rows(2, None, None).documents
    with pytest.raises(ValueError, match="method='z-score' must be one of 'minmax'"):
        scale_by_query(np.zeros((2, 1)), documents, "z-score")


def test_data_keep_all_that_belongs_to_them():
    X, qid = make_documents()
    names, comments = list("abcdefg"), [f"document {k}" for k in range(len(qid))]
    weight = np.arange(len(qid)) + 1.0
    data = RankingData(
        X, qid % 3, qid, sample_weight=weight, feature_names=names, comments=comments
    )
    scaled = scale_queries(data, "rank")
    np.testing.assert_array_equal(scaled.X, by_loop(X, qid, "rank"))
    np.testing.assert_array_equal(data.X, X)
    assert scaled.feature_names == names
    assert list(scaled.comments) == comments
    np.testing.assert_array_equal(scaled.sample_weight, weight)
    np.testing.assert_array_equal(scaled.qid, data.qid)
