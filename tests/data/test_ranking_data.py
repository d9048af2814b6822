"""RankingData: grouping, pair counts, what is copied and what is refused."""

import copy
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.tables import each

from marginrank import AdditiveRankSVM, KernelRankSVM, RankingData, RankSVM, make_ranking
from marginrank.data.queries import exact_sum

X3 = np.arange(6.0).reshape(3, 2)
Y3 = [0, 1, 2]


def queries_as_rows(data):
    """The rows of each query, in the order of the documents."""
    rows = np.arange(data.n_documents) if data.queries.rows is None else data.queries.rows
    return [part.tolist() for part in np.split(rows, data.queries.offsets[1:-1])]


def grouped(qid=None, group=None, n=6):
    return RankingData(np.zeros((n, 1)), np.arange(n), qid, group)


@pytest.mark.parametrize(
    ("qid", "ids", "expected"),
    [
        ([7, 7, 3, 3, 3, 9], [7, 3, 9], [[0, 1], [2, 3, 4], [5]]),
        ([7, 3, 7, 9, 3, 7], [7, 3, 9], [[0, 2, 5], [1, 4], [3]]),
        (["b", "a", "b", "c", "a", "a"], ["b", "a", "c"], [[0, 2], [1, 4, 5], [3]]),
        ([b"b", b"b", b"a", b"a", b"a", b"b"], [b"b", b"a"], [[0, 1, 5], [2, 3, 4]]),
        ([0.5, -1.0, 0.5, 0.5, -1.0, 2.0], [0.5, -1.0, 2.0], [[0, 2, 3], [1, 4], [5]]),
        ([True, False, False, True, True, True], [True, False], [[0, 3, 4, 5], [1, 2]]),
        (
            np.array([2**63 - 1, 2**63 - 2, 2**53, 2**53 + 1, 2**53, 2**63 - 1]),
            [2**63 - 1, 2**63 - 2, 2**53, 2**53 + 1],
            [[0, 5], [1], [2, 4], [3]],
        ),
        (
            np.array([2**64 - 1, 2**64 - 2, 2**64 - 1, 1, 1, 1], dtype=np.uint64),
            [2**64 - 1, 2**64 - 2, 1],
            [[0, 2], [1], [3, 4, 5]],
        ),
        (
            np.array(["x", 1, "x", (2, 3), 1, (2, 3)], dtype=object),
            ["x", 1, (2, 3)],
            [[0, 2], [1, 4], [3, 5]],
        ),
        (
            np.array(["2020-01-02", "2020-01-01"] * 3, dtype="M8[D]"),
            np.array(["2020-01-02", "2020-01-01"], dtype="M8[D]").tolist(),
            [[0, 2, 4], [1, 3, 5]],
        ),
        ([[1], [2], [1], [2], [2], [2]], [1, 2], [[0, 2], [1, 3, 4, 5]]),
    ],
    ids=[
        "contiguous", "unsorted", "strings", "bytes", "floats", "booleans", "int64", "uint64",
        "objects", "dates", "column",
    ],
)  # fmt: skip
def test_grouping_by_id(qid, ids, expected):
    data = grouped(qid)
    assert queries_as_rows(data) == expected
    assert data.query_ids.tolist() == ids
    number = {row: q for q, rows in enumerate(expected) for row in rows}
    assert data.qid.tolist() == [number[row] for row in range(6)]


def test_grouping_by_sizes():
    assert queries_as_rows(grouped(group=[1, 3, 2])) == [[0], [1, 2, 3], [4, 5]]


def test_without_queries_all_is_one_query():
    assert queries_as_rows(grouped()) == [[0, 1, 2, 3, 4, 5]]


def test_one_document():
    data = RankingData([[1.0]], [5])
    assert (data.n_documents, data.n_queries, data.n_pairs) == (1, 1, 0)


def test_contiguous_queries_are_not_reordered():
    assert grouped([2, 2, 1, 1, 0, 0]).queries.rows is None
    assert grouped([2, 1, 2, 1, 0, 0]).queries.rows is not None


def test_levels_are_dense_ranks_inside_a_query():
    data = RankingData(np.zeros((6, 1)), [5, -1.5, 1e300, 3, 3, 7], [0, 1, 0, 1, 1, 0])
    assert data.queries.level.tolist() == [0, 2, 1, 0, 1, 1]
    assert data.queries.n_levels.tolist() == [3, 2]
    assert data.queries.n_pairs.tolist() == [3, 2]
    assert data.queries.n_adjacent_pairs.tolist() == [2, 2]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, object])
@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_large_integer_labels_keep_their_order_and_their_values(dtype, shape):
    y = np.array([2**60 + 1, 2**60, 2**60 + 1], dtype=dtype)
    data = RankingData(np.zeros((3, 1)), y.reshape(shape))
    assert data.n_pairs == 2
    assert data.y.tolist() == y.tolist()
    assert data.y.dtype.kind in "iu"
    assert RankingData(*data).n_pairs == 2


@pytest.mark.parametrize("y", [[2**63 + 1, 2**63, -1], [2**80 + 1, 2**80, 0]])
def test_lists_of_integers_that_no_type_holds_stay_apart(y):
    data = RankingData(np.zeros((3, 1)), y)
    assert data.n_pairs == 3
    assert data.y.tolist() == y


def test_labels_of_other_types_are_floats():
    for y in ([True, False, True], np.array([1, 0, 1], np.float16), pd.array([1, 0, 1], "Int64")):
        data = RankingData(np.zeros((3, 1)), y)
        assert data.y.dtype == np.float64
        assert data.y.tolist() == [1.0, 0.0, 1.0]


def test_unpacking_and_printing():
    data = RankingData(X3, Y3, ["a", "b", "a"])
    X, y, qid = data
    np.testing.assert_array_equal(X, X3)
    np.testing.assert_array_equal(y, [0, 1, 2])
    np.testing.assert_array_equal(qid, [0, 1, 0])
    assert repr(data) == "RankingData(3 documents, 2 queries, 2 features, 1 pairs)"


def test_pairs_of_one_query_of_ten_million_documents():
    n = 10_000_000
    y = np.arange(n, dtype=np.float64)
    data = RankingData(np.zeros((n, 1), dtype=np.float32), y)
    assert data.n_pairs == n * (n - 1) // 2
    assert data.queries.n_adjacent_pairs[0] == n - 1


def test_exact_sum_beyond_64_bits():
    counts = np.full(1000, 2**63 - 1)
    assert exact_sum(counts) == 1000 * (2**63 - 1)
    assert exact_sum(np.array([2**53, 1, 2**32 - 1])) == 2**53 + 2**32
    assert exact_sum(np.array([], dtype=np.int64)) == 0


def test_pair_counts_beyond_what_floats_hold():
    sizes = np.full(3, 100_000)
    y = np.concatenate([np.arange(size) for size in sizes])
    data = RankingData(np.zeros((y.size, 1), dtype=np.float32), y, group=sizes)
    object.__setattr__(data.queries, "n_pairs", np.array([2**62 + 1, 2**62 + 1, 2**62 + 1]))
    assert data.n_pairs == 3 * 2**62 + 3


DENSE = {
    "float64": np.ones((4, 3)),
    "float32": np.ones((4, 3), dtype=np.float32),
    "rows of a wider matrix": np.ones((4, 9))[:, 2:5],
    "every second row": np.ones((8, 3), dtype=np.float32)[::2],
    "rows backwards": np.arange(12.0).reshape(4, 3)[::-1],
    "one row repeated": np.broadcast_to(np.arange(3.0), (4, 3)),
}


@pytest.mark.parametrize("X", DENSE.values(), ids=DENSE)
def test_dense_features_are_not_copied(X):
    data = RankingData(X, [0, 1, 2, 3], qid=[1, 0, 1, 0])
    assert np.shares_memory(data.X, X)
    assert data.X.dtype == X.dtype
    np.testing.assert_array_equal(data.matrix.dot(np.array([1.0, 10, 100])), X @ [1, 10, 100])


def test_a_memory_map_is_not_copied(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((4, 3), dtype=np.float32))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert np.shares_memory(RankingData(X, [0, 1, 2, 3]).X, X)


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_csr_is_not_copied(container, index, dtype):
    X = container(np.eye(4, 3, dtype=dtype))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    data = RankingData(X, [0, 1, 2, 3])
    for name in ("data", "indices", "indptr"):
        assert np.shares_memory(getattr(data.X, name), getattr(X, name))


CONVERTED = {
    "integers": np.array([[1, 2], [3, 4], [5, 6]]),
    "float16": np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float16),
    "booleans": np.array([[True, False], [True, True], [False, True]]),
    "list": [[1, 2.5], [3, 4], [5, 6]],
    "Fortran order": np.asfortranarray(np.arange(6.0).reshape(3, 2)),
    "every second column": np.arange(12.0).reshape(3, 4)[:, ::2],
    "Python's numbers": np.array([[1, 2.5], [Fraction(3), True], [5, 6]], dtype=object),
    "masked, but nothing is": np.ma.MaskedArray(np.arange(6.0).reshape(3, 2)),
    "other byte order": np.arange(6.0).reshape(3, 2).astype(">f4"),
    "not aligned": np.frombuffer(b"\0" * 49, dtype=np.uint8)[1:].view(np.float64).reshape(3, 2),
    "csc": sp.csc_array(np.arange(6.0).reshape(3, 2)),
    "coo": sp.coo_array(np.arange(6.0).reshape(3, 2)),
    "integer csr": sp.csr_array(np.arange(6).reshape(3, 2)),
}


def strided_csr(part):
    """CSR of which one array is every second entry of a longer one."""
    X = sp.csr_array(np.arange(6.0).reshape(3, 2))
    setattr(X, part, np.repeat(getattr(X, part), 2)[::2])
    return X


@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
def test_strided_csr_is_read(part):
    X = strided_csr(part)
    assert not getattr(X, part).flags.c_contiguous
    data = RankingData(X, Y3)
    np.testing.assert_array_equal(data.matrix.dot(np.array([1.0, 10.0])), [10.0, 32.0, 54.0])
    assert not getattr(X, part).flags.c_contiguous  # as it was given


@pytest.mark.parametrize("X", CONVERTED.values(), ids=CONVERTED)
def test_other_layouts_are_converted(X):
    data = RankingData(X, Y3)
    assert data.X.dtype in (np.float32, np.float64)
    assert (data.X.data if sp.issparse(X) else data.X).flags.aligned
    dense = X.toarray() if sp.issparse(X) else np.asarray(X)
    expected = dense.astype(float) @ [1.0, 10.0]
    np.testing.assert_array_equal(data.matrix.dot(np.array([1.0, 10.0])), expected)


def test_csr_with_unsorted_and_repeated_indices_is_made_canonical():
    X = sp.csr_array(([1.0, 2.0, 3.0, 4.0], [2, 0, 1, 1], [0, 2, 4, 4]), shape=(3, 3))
    data = RankingData(X, Y3)
    v = np.array([1.0, 10.0, 100.0])
    np.testing.assert_array_equal(data.matrix.dot(v), [102.0, 70.0, 0.0])
    assert X.indices.tolist() == [2, 0, 1, 1]  # as it was given


@pytest.mark.parametrize("learner", [RankSVM, AdditiveRankSVM, KernelRankSVM])
def test_csr_that_claims_to_be_canonical_is_not_believed(learner):
    X, y, qid = make_ranking(20, 8, 4, random_state=0)
    halves = np.stack([X, X], axis=2)[:, ::-1].reshape(len(X), -1) / 2
    columns = np.tile(np.repeat([3, 2, 1, 0], 2), len(X))
    claimed = sp.csr_array((halves.ravel(), columns, 8 * np.arange(len(X) + 1)), shape=X.shape)
    claimed.has_sorted_indices = claimed.has_canonical_format = True
    expected = learner().fit(sp.csr_array(X), y, qid=qid)
    found = learner().fit(claimed, y, qid=qid)
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-9)
    np.testing.assert_allclose(found.predict(claimed), expected.predict(X), rtol=1e-9)
    assert claimed.nnz == 2 * X.size  # as it was given


def test_inputs_are_not_modified():
    X, y, weight = np.ones((3, 2)), np.array([2.0, 0.0, 1.0]), np.array([1.0, 2.0, 3.0])
    before = [a.copy() for a in (X, y, weight)]
    RankingData(X, y, [1, 0, 1], sample_weight=weight, query_weight=[1.0, 2.0])
    for now, then in zip((X, y, weight), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_query_weight_by_query_and_by_document():
    qid = ["b", "a", "b"]
    by_query = RankingData(X3, Y3, qid, query_weight=[2.0, 3.0])
    by_document = RankingData(X3, Y3, qid, query_weight=[2.0, 3.0, 2.0])
    np.testing.assert_array_equal(by_query.query_weight, [2.0, 3.0])
    np.testing.assert_array_equal(by_document.query_weight, [2.0, 3.0])


def with_entry(value, where, layout=np.asarray, dtype=np.float64):
    X = np.ones((3, 2), dtype=dtype)
    X[where] = value
    return layout(X)


FEATURES = {
    "NaN": (with_entry(np.nan, (2, 1)), r"X\[2, 1\] is NaN"),
    "infinity": (with_entry(np.inf, (1, 0), dtype=np.float32), r"X\[1, 0\] is infinity"),
    "both infinities": (np.array([[1, 2], [np.inf, -np.inf], [1, 2]]), r"X\[1, 0\] is inf"),
    "NaN in CSR": (with_entry(np.nan, (2, 1), sp.csr_array), r"X\[2, 1\] is NaN"),
    "infinity in CSR": (with_entry(-np.inf, (0, 1), sp.csr_matrix), r"X\[0, 1\] is infinity"),
    "no rows": (np.empty((0, 2)), r"X has 0 sample\(s\)"),
    "no columns": (np.empty((3, 0)), r"X has 0 feature\(s\)"),
    "no rows in CSR": (sp.csr_array((0, 2)), r"X has 0 sample\(s\)"),
    "one dimension": (np.ones(3), r"X has 1 dimension\(s\) and needs 2"),
    "three dimensions": (np.ones((3, 2, 2)), r"X has 3 dimension\(s\) and needs 2"),
    "one sparse dimension": (sp.coo_array(np.ones(3)), r"X has 1 dimension\(s\) and needs 2"),
    "strings": ([["a", "b"]] * 3, r"X must hold real numbers"),
    "complex": (np.ones((3, 2), dtype=complex), r"X must hold real numbers"),
    "complex CSR": (sp.csr_array(np.ones((3, 2), dtype=complex)), r"X must hold real numbers"),
    "ragged": ([[1.0], [1.0, 2.0], [3.0]], r"X must hold real numbers"),
    "numbers as strings": ([["1", "2"]] * 3, r"X must hold real numbers: '1' is a string"),
    "strings among objects": (np.array([[1, "2"]] * 3, dtype=object), r"'2' is a string"),
    "bytes": (np.array([[b"1"]] * 3), r"b'1' is a string"),
    "strings in a column": (
        np.array([[1, "de"]] * 3, dtype=object),
        r"'de' is a string, in column 1; .* OrdinalEncoder",
    ),
    "strings in a frame": (
        pd.DataFrame({"age": [1, 2, 3], "country": ["de", "fr", "de"]}),
        r"'de' is a string, in the column 'country'; .*OrdinalEncoder",
    ),
    "None": (np.array([[1, 2], [3, None], [5, 6]], dtype=object), r"X\[1, 1\] is missing \(None\)"),
    "pandas.NA": (
        pd.DataFrame({"a": [0.5, 1.5, 2.5], "b": pd.array([1, 2, None], dtype="Int64")}),
        r"X\[2, 1\] is (missing|NaN)",
    ),
    "pandas.NA among objects": (
        np.array([[1, 2], [3, pd.NA], [5, 6]], dtype=object),
        r"X\[1, 1\] is missing \(<NA>\)",
    ),
    "dates": (np.zeros((3, 2), dtype="M8[D]"), r"it holds datetime64\[D\]; convert dates"),
    "NaT": (np.full((3, 2), "NaT", dtype="m8[s]"), r"it holds timedelta64\[s\]; convert dates"),
    "a date among objects": (
        np.array([[1, np.datetime64("2020-01-01")]] * 3, dtype=object),
        r"X must hold real numbers: 2020-01-01 is a date .*, in column 1; convert it",
    ),
    "a masked entry": (
        np.ma.MaskedArray(np.ones((3, 2)), mask=[[0, 0], [0, 1], [0, 0]]),
        r"X\[1, 1\] is masked",
    ),
    "large integers": (
        np.array([[1, 2], [3, 2**53 + 1], [5, 6]]),
        r"X\[1, 1\] is 9007199254740993",
    ),
    "large unsigned integers": (
        np.array([[2**64 - 1], [2], [3]], dtype=np.uint64),
        r"X\[0, 0\] is 18446744073709551615, an integer too large",
    ),
    "large negative integers": (
        np.array([[1], [-(2**60)], [3]]),
        r"X\[1, 0\] is -1152921504606846976",
    ),
    "huge integers": ([[1, 2.5], [10**30, 1], [1, 1]], r"X\[1, 0\] is 1000000000000000"),
    "large integers in CSR": (
        sp.csr_array(np.array([[0], [2**60], [1]])),
        r"X\[1, 0\] is 1152921504606846976",
    ),
}


@each(("X", "message"), FEATURES.values())
def test_bad_features_are_named(X, message):
    with pytest.raises(ValueError, match=message):
        RankingData(X, Y3)


def test_huge_but_finite_features_are_fine():
    assert RankingData(np.full((3, 2), 1.7e308), Y3).n_pairs == 3
    assert RankingData(sp.csr_array(np.full((3, 2), 1.7e308)), Y3).n_pairs == 3


ARGUMENTS = {
    "NaN in y": ({"y": [0, np.nan, 1]}, r"y\[1\] is NaN"),
    "infinity in y": ({"y": [0, 1, -np.inf]}, r"y\[2\] is infinity"),
    "no y": ({"y": None}, "y is None"),
    "short y": ({"y": [0, 1]}, r"y has 2 entries and needs 3"),
    "square y": ({"y": np.zeros((3, 2))}, r"y has shape \(3, 2\)"),
    "scalar y": ({"y": 1.0}, r"y has shape \(\)"),
    "words as y": ({"y": ["good", "bad", "good"]}, r"y must hold real numbers.*good"),
    "numbers as strings in y": ({"y": ["1", "2", "3"]}, r"y must hold real numbers"),
    "complex y": ({"y": [1j, 2, 3]}, r"y must hold real numbers: Complex"),
    "None in y": ({"y": [1, None, 2]}, r"y must hold real numbers: y\[1\] is missing \(None\)"),
    "pandas.NA in y": ({"y": pd.array([1, 2, None], dtype="Int64")}, r"y\[2\] is (missing|NaN)"),
    "NaT in y": ({"y": np.array([1, "NaT", 2], "m8[s]")}, r"y must hold .* timedelta64\[s\]"),
    "dates as y": ({"y": np.array([1, 2, 3], "M8[D]")}, r"y must hold .* datetime64\[D\]"),
    "Timestamps as y": ({"y": pd.to_datetime(["2020", "2021", "2022"])}, r"y must hold .* dates"),
    "masked y": ({"y": np.ma.MaskedArray([1, 2, 3], mask=[0, 1, 0])}, r"y\[1\] is masked"),
    "masked qid": ({"qid": np.ma.MaskedArray([1, 2, 3], mask=[0, 1, 0])}, r"qid\[1\] is missing"),
    "durations as weights": (
        {"sample_weight": np.array([1, 2, 3], "m8[s]")},
        r"sample_weight must hold real numbers",
    ),
    "objects in y": ({"y": [{}, 1, 2]}, r"y must hold real numbers: .*dict"),
    "long qid": ({"qid": [1, 2, 3, 4]}, r"qid has 4 entries but X has 3 rows"),
    "qid that looks like group": ({"qid": [2, 1]}, r"qid has 2 entries.*group="),
    "two-dimensional qid": ({"qid": np.zeros((3, 2))}, r"qid has shape \(3, 2\)"),
    "scalar qid": ({"qid": 3}, r"qid has shape \(\)"),
    "NaN in qid": ({"qid": [1.0, np.nan, 1.0]}, r"qid\[1\] is missing"),
    "None in qid": ({"qid": ["a", "b", None]}, r"qid\[2\] is missing"),
    "NaT in qid": (
        {"qid": np.array(["2020-01-01", "NaT", "2020-01-01"], "M8[ns]")},
        r"qid\[1\] is missing",
    ),
    "short group": ({"group": [1, 1]}, r"group sums to 2 but X has 3 rows"),
    "group that looks like qid": ({"group": [1, 2, 2]}, r"group sums to 5.*qid="),
    "group of ids from zero": ({"group": [0, 0, 1]}, r"group sums to 1 .*one entry per doc.*qid="),
    "empty query in group": ({"group": [3, 0]}, r"group\[1\] is 0"),
    "negative group": ({"group": [4, -1]}, r"group\[1\] is -1"),
    "group of floats": ({"group": [1.5, 1.5]}, r"group must be .* integer"),
    "group of strings": ({"group": ["a", "b"]}, r"group must be .* integer"),
    "empty group": ({"group": []}, r"group"),
    "huge group": ({"group": [2**62, 2**62, 3]}, r"group sums to 9223372036854775811"),
    "qid and group": ({"qid": [1, 1, 2], "group": [2, 1]}, r"qid and group"),
    "NaN weight": ({"sample_weight": [1, 1, np.nan]}, r"sample_weight\[2\] is NaN"),
    "infinite weight": ({"sample_weight": [np.inf, 1, 1]}, r"sample_weight\[0\] is infinity"),
    "negative weight": ({"sample_weight": [1, -2, 1]}, r"sample_weight\[1\] is -2"),
    "short weights": ({"sample_weight": [1, 1]}, r"sample_weight has 2 entries and needs 3"),
    "words as weights": ({"sample_weight": list("abc")}, r"sample_weight must hold real"),
    "negative query weight": (
        {"qid": [1, 1, 2], "query_weight": [1, -1]},
        r"query_weight\[1\] is -1",
    ),
    "NaN query weight": ({"qid": [1, 1, 2], "query_weight": [np.nan, 1]}, r"query_weight\[0\]"),
    "long query weight": ({"query_weight": [1, 1]}, r"query_weight has 2 entries and needs 1"),
    "mixed query weight": (
        {"qid": [1, 2, 1], "query_weight": [1.0, 5.0, 2.0]},
        r"query_weight\[2\] differs",
    ),
    "n_jobs": ({"n_jobs": 0}, r"n_jobs=0"),
    "n_jobs of floats": ({"n_jobs": 1.5}, r"n_jobs=1.5"),
}


@each(("arguments", "message"), ARGUMENTS.values())
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        RankingData(**({"X": X3, "y": Y3} | arguments))


# Indices and indptr of a 3 × 2 matrix with three entries.
BROKEN_CSR = {
    "index too large": ([0, 1, 7], [0, 1, 2, 3]),
    "index negative": ([0, -1, 1], [0, 1, 2, 3]),
    "indptr falls": ([0, 1, 1], [0, 3, 1, 3]),
    "indptr too large": ([0, 1, 1], [0, 1, 2, 900]),
    "indptr negative": ([0, 1, 1], [0, -5, 2, 3]),
    "indptr overshoots": ([0, 1, 1], [0, 2**27, 1, 3]),
    "indptr starts late": ([0, 1, 1], [1, 1, 2, 3]),
}
READ_BROKEN_CSR = """
import numpy as np, scipy.sparse as sp
from marginrank import AdditiveRankSVM, KernelRankSVM, RankingData, RankSVM, make_ranking
for name, parts in {cases}.items():
    for canonical in (None, True):
        X = sp.csr_array((3, 2))
        X.data = np.ones(3)
        X.indices, X.indptr = (np.array(part, dtype=np.int32) for part in parts)
        if canonical:
            X.has_canonical_format = X.has_sorted_indices = True
        try:
            RankingData(X, [0, 1, 2])
            outcome = "accepted"
        except Exception as error:
            outcome = f"{{type(error).__name__}}: {{error}}"
        print(name, canonical, outcome, sep="|", flush=True)
"""


@pytest.fixture(scope="module")
def broken_csr_outcomes():
    """Read in a process of its own, as broken indices may end it."""
    script = READ_BROKEN_CSR.format(cases=BROKEN_CSR)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    lines = [line.split("|") for line in run.stdout.splitlines()]
    return {(name, canonical): outcome for name, canonical, outcome in lines}


@pytest.mark.parametrize("canonical", ["None", "True"], ids=["honest", "claimed canonical"])
@pytest.mark.parametrize("name", BROKEN_CSR)
def test_broken_csr_is_refused(broken_csr_outcomes, name, canonical):
    outcome = broken_csr_outcomes[name, canonical]
    assert outcome.startswith("ValueError: ")
    assert "X" in outcome


def test_many_threads_are_no_crash():
    """In a process of its own, as running out of threads may end it."""
    script = "import marginrank; marginrank.RankingData([[1.0], [2.0]], [0, 1], n_jobs=100_000)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode in (0, 1), run.stderr


def test_pickles_and_deep_copies():
    data = RankingData(np.eye(3), [0, 1, 2], ["a", "a", "b"])
    for again in (pickle.loads(pickle.dumps(data)), copy.deepcopy(data)):
        np.testing.assert_array_equal(again.X, data.X)
        assert again.n_pairs == data.n_pairs
        assert again.matrix.n_rows == 3


def test_lists_of_large_integer_ids_stay_apart():
    data = RankingData(np.eye(3), [0, 1, 2], [2**63 + 1, 2**63, -1])
    assert data.n_queries == 3


@pytest.mark.parametrize(
    "ids",
    [
        [1, "1", 1],
        [b"a", "a", b"a"],
        ["a", "a\0", "a"],
        [b"a", b"a\0", b"a"],
        [(1, 2), (1, 3), (1, 2)],
        ["x", (1, 2), "x"],
        [2**53, 2**53 + 1.5, 2**53],
        (2**70, 2**70 + 1, 2**70),
    ],
    ids=str,
)
def test_lists_of_ids_are_told_apart_as_python_does(ids):
    data = RankingData(np.eye(3), [0, 1, 2], ids)
    assert data.qid.tolist() == [0, 1, 0]
    assert data.query_ids.tolist() == list(ids[:2])


def test_ids_that_cannot_be_hashed_are_refused():
    ids = np.empty(2, dtype=object)
    ids[:] = [[1], [2]]
    with pytest.raises(ValueError, match="qid must hold hashable"):
        RankingData(np.eye(2), [0, 1], ids)


ORDERS = {"contiguous": ["a", "a", "b", "b", "c"], "mixed": ["a", "c", "b", "a", "b"]}


@pytest.mark.parametrize("qid", ORDERS.values(), ids=ORDERS)
def test_everything_is_in_the_order_of_the_rows(qid):
    X, y = np.arange(10.0).reshape(5, 2), np.array([3.0, 1.0, 2.0, 5.0, 4.0])
    weight = np.array([0.5, 1.5, 2.5, 3.5, 4.5])
    data = RankingData(X, y, qid, sample_weight=weight, comments=list("vwxyz"))
    assert data.X is X
    assert data.y is y
    assert data.sample_weight is weight
    assert [data.query_ids[q] for q in data.qid] == qid
    assert data.comments == list("vwxyz")


@pytest.mark.parametrize("qid", ORDERS.values(), ids=ORDERS)
def test_query_weights_are_in_the_order_of_the_query_ids(qid):
    weight_of = {"a": 1.0, "b": 2.0, "c": 3.0}
    by_document = [weight_of[q] for q in qid]
    data = RankingData(np.zeros((5, 1)), np.arange(5), qid, query_weight=by_document)
    assert data.query_weight.tolist() == [weight_of[q] for q in data.query_ids]
    again = RankingData(np.zeros((5, 1)), np.arange(5), qid, query_weight=data.query_weight)
    assert again.query_weight.tolist() == data.query_weight.tolist()


def test_other_features_of_the_same_documents():
    weights = {"sample_weight": np.arange(5.0), "query_weight": [1.0, 2.0, 3.0]}
    X = np.zeros((5, 2))
    data = RankingData(X, np.arange(5), ORDERS["mixed"], feature_names=["a", "b"], **weights)
    other = data.with_features(sp.coo_array(np.eye(5)))
    assert other.queries is data.queries
    assert other.y is data.y
    assert other.sample_weight is data.sample_weight
    assert other.query_weight is data.query_weight
    assert other.feature_names is None
    np.testing.assert_array_equal(other.X.toarray(), np.eye(5))
    assert other.matrix.n_columns == 5
    assert data.X is X
    assert data.feature_names == ["a", "b"]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((4, 2)), r"X has 4 rows and needs 5, one per document"),
        (np.full((5, 2), np.nan), r"X\[0, 0\] is NaN"),
        (np.zeros(5), r"X has 1 dimension"),
    ],
)
def test_other_features_are_checked(X, message):
    data = RankingData(np.zeros((5, 2)), np.arange(5))
    with pytest.raises(ValueError, match=message):
        data.with_features(X)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([1, "b"], r"feature_names\[0\] is 1, not a string"),
        (["a", None], r"feature_names\[1\] is None, not a string"),
        (np.arange(2), r"feature_names\[0\] is .*0.*, not a string"),
        ("ab", r"feature_names='ab' must be a list of strings, one name per feature"),
        ({"a": 0, "b": 1}.keys(), r"must be a list of strings"),
        (["a"], r"feature_names has 1 entries and needs 2, one name per feature"),
    ],
)
def test_names_that_are_no_strings_are_refused(names, message):
    with pytest.raises(ValueError, match=message):
        RankingData(X3, Y3, feature_names=names)


def test_comments_that_are_no_strings_are_refused():
    with pytest.raises(ValueError, match=r"comments\[2\] is None, not a string"):
        RankingData(X3, Y3, comments=["u", "v", None])


@pytest.mark.parametrize("names", [np.array(["a", "b"]), pd.Index(["a", "b"]), ("a", "b")])
def test_names_of_any_sequence_become_a_list(names):
    found = RankingData(X3, Y3, feature_names=names).feature_names
    assert found == ["a", "b"]
    assert all(type(name) is str for name in found)
