"""Frames of pandas, polars and pyarrow: equal to arrays, not copied, and refused by name."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers.tables import each

from marginrank import RankingData, RankSVM, make_ranking
from marginrank.data import frames

pa = pytest.importorskip("pyarrow")


def pandas_arrow(columns):
    return pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow")


def chunked(columns):
    half = len(next(iter(columns.values()))) // 2
    parts = [{k: v[s] for k, v in columns.items()} for s in (slice(half), slice(half, None))]
    return pa.concat_tables([pa.table(part) for part in parts])


MAKERS = {
    "pandas": pd.DataFrame,
    "pandas of pyarrow": pandas_arrow,
    "pandas nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "polars": pl.DataFrame,
    "polars lazy": pl.LazyFrame,
    "polars chunked": lambda columns: pl.concat(
        [pl.DataFrame(columns).slice(0, 2), pl.DataFrame(columns).slice(2)], rechunk=False
    ),
    "pyarrow": pa.table,
    "pyarrow chunked": chunked,
    "pyarrow batch": pa.record_batch,
}
LIBRARIES = {name: MAKERS[name] for name in ("pandas", "polars", "pyarrow")}

every_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
every_library = pytest.mark.parametrize("make", LIBRARIES.values(), ids=LIBRARIES)


def columns(**more):
    return {
        "qid": ["b", "a", "b", "a", "b"],
        "a": np.array([0.5, 1.5, -2.0, 0.25, 1e300]),
        "label": [2, 0, 1, 1, 0],
        "b": np.array([1.0, 2.0, 3.0, 4.0, 5.0]),
        "c": np.array([9.0, 8.0, 7.0, 6.0, 5.0]),
    } | more


@every_maker
def test_a_frame_equals_its_arrays(make):
    data = RankingData.from_frame(make(columns()))
    X = np.column_stack([columns()[name] for name in "abc"])
    expected = RankingData(X, columns()["label"], columns()["qid"])
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, expected.y)
    np.testing.assert_array_equal(data.qid, expected.qid)
    assert data.query_ids.tolist() == ["b", "a"]
    assert data.feature_names == ["a", "b", "c"]
    assert data.n_pairs == expected.n_pairs


@every_maker
def test_columns_by_name_and_in_order(make):
    frame = make(columns(w=[1.0, 2.0, 3.0, 4.0, 5.0], v=[2.0, 3.0, 2.0, 3.0, 2.0]))
    data = RankingData.from_frame(
        frame, label="b", qid=None, features=["c", "a"], sample_weight="w"
    )
    np.testing.assert_array_equal(data.X, np.column_stack([columns()["c"], columns()["a"]]))
    np.testing.assert_array_equal(data.y, columns()["b"])
    np.testing.assert_array_equal(data.sample_weight, [1, 2, 3, 4, 5])
    assert data.n_queries == 1
    assert data.feature_names == ["c", "a"]
    data = RankingData.from_frame(frame, query_weight="v", sample_weight="w")
    np.testing.assert_array_equal(data.query_weight, [2, 3])
    np.testing.assert_array_equal(data.sample_weight, [1, 2, 3, 4, 5])
    assert data.feature_names == ["a", "b", "c"]


@every_library
def test_comments_come_from_a_column(make):
    data = RankingData.from_frame(make(columns(url=list("vwxyz"))), comments="url")
    assert data.comments == list("vwxyz")
    assert data.feature_names == ["a", "b", "c"]


@every_library
def test_a_model_of_a_frame_is_that_of_its_arrays(make):
    X, y, qid = make_ranking(n_queries=20, docs_per_query=10, n_features=7, random_state=1)
    frame = make({f"f{k}": X[:, k] for k in range(7)} | {"label": y, "qid": qid})
    data = RankingData.from_frame(frame)
    of_frame = RankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_array_equal(of_frame.coef_, RankSVM(C=0.1).fit(X, y, qid=qid).coef_)


@pytest.mark.parametrize("block", [1, 2000, 1 << 20])
@every_library
def test_blocks_of_rows_do_not_change_the_features(make, block, monkeypatch):
    monkeypatch.setattr(frames, "BLOCK", block)
    X = np.random.default_rng(0).normal(size=(1001, 5)).astype(np.float32)
    frame = make({f"f{k}": X[:, k] for k in range(5)} | {"label": np.arange(1001)})
    np.testing.assert_array_equal(RankingData.from_frame(frame, qid=None).X, X)


DTYPES = {
    "float32": (["float32"], np.float32),
    "float64": (["float64"], np.float64),
    "float16": (["float16"], np.float32),
    "both": (["float32", "float64"], np.float64),
    "small integers": (["int8", "uint16", "bool"], np.float32),
    "float32 and small integers": (["float32", "int16", "bool"], np.float32),
    "large integers": (["int32"], np.float64),
    "float32 and large integers": (["float32", "int64"], np.float64),
}


@each(("dtypes", "expected"), DTYPES.values())
@every_library
def test_the_smallest_exact_type(make, dtypes, expected):
    features = {t: np.array([1, 0, 1]).astype(t) for t in dtypes}
    data = RankingData.from_frame(make(features | {"label": [0, 1, 2]}), qid=None)
    assert data.X.dtype == expected
    np.testing.assert_array_equal(data.X, np.array([[1, 0, 1]] * len(dtypes)).T)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_pandas_frame_in_row_order_is_not_copied(dtype):
    X = np.arange(12, dtype=dtype).reshape(4, 3)
    frame = pd.DataFrame(X, columns=list("abc"), copy=False)
    frame["label"], frame["qid"] = [0, 1, 0, 1], [7, 7, 8, 8]
    data = RankingData.from_frame(frame)
    assert np.shares_memory(data.X, X)
    np.testing.assert_array_equal(data.X, X)


def test_pandas_blocks_that_are_not_in_row_order():
    X = np.arange(12.0).reshape(4, 3)
    frame = pd.DataFrame(X, columns=list("abc"), copy=False)
    frame.insert(1, "label", [0, 1, 0, 1])
    data = RankingData.from_frame(frame, qid=None)
    np.testing.assert_array_equal(data.X, X)
    swapped = RankingData.from_frame(frame, qid=None, features=["c", "b", "a"])
    np.testing.assert_array_equal(swapped.X, X[:, ::-1])
    frame["d"] = [1.0, 2.0, 3.0, 4.0]
    data = RankingData.from_frame(frame, qid=None)
    np.testing.assert_array_equal(data.X, np.column_stack([X, [1, 2, 3, 4]]))


def test_columns_without_string_names():
    frame = pd.DataFrame({0: [1.0, 2.0], 1: [3.0, 4.0], "label": [0, 1]})
    assert RankingData.from_frame(frame, qid=None).feature_names == ["0", "1"]
    assert RankingData.from_frame(frame, qid=None, label=1, features=[0]).n_pairs == 1


@pytest.mark.parametrize(
    "ids",
    [
        np.array([2**63 - 1, 5, 2**63 - 1, 5, -1]),
        np.array([2**64 - 1, 5, 2**64 - 1, 5, 1], dtype=np.uint64),
        ["x", "yé", "x", "yé", "z"],
        [True, False, True, False, True],
        [0.5, 1.5, 0.5, 1.5, 2.5],
    ],
    ids=["int64", "uint64", "strings", "booleans", "floats"],
)
@every_library
def test_query_ids_keep_their_type(make, ids):
    data = RankingData.from_frame(make(columns(qid=ids)))
    expected = RankingData(np.zeros((5, 1)), np.zeros(5), ids)
    assert data.query_ids.tolist() == expected.query_ids.tolist()
    assert [type(i) for i in data.query_ids.tolist()] == [
        type(i) for i in expected.query_ids.tolist()
    ]


def test_categories_as_query_ids():
    ids = columns()["qid"]
    for frame in (
        pd.DataFrame(columns(qid=pd.Categorical(ids))),
        pl.DataFrame(columns()).with_columns(pl.col("qid").cast(pl.Categorical)),
        pa.table(columns(qid=pa.array(ids).dictionary_encode())),
    ):
        assert RankingData.from_frame(frame).query_ids.tolist() == ["b", "a"]


REFUSED = {
    "NaN": ({"b": [1.0, 2.0, 3.0, np.nan, 5.0]}, {}, r"column 'b', row 3 is (NaN|null)"),
    "infinity": ({"b": [1.0, np.inf, 3.0, 4.0, 5.0]}, {}, r"column 'b', row 1 is infinity"),
    "null": ({"c": [1.0, 2.0, None, 4.0, 5.0]}, {}, r"column 'c', row 2 is (NaN|null)"),
    "null label": ({"label": [1.0, None, 0.0, 1.0, 0.0]}, {}, r"column 'label', row 1 is"),
    "null qid": ({"qid": ["a", "b", "a", "b", None]}, {}, r"column 'qid', row 4 is null"),
    "null weight": (
        {"w": [None, 1.0, 1.0, 1.0, 1.0]},
        {"sample_weight": "w"},
        r"column 'w', row 0 is",
    ),
    "strings": ({"title": list("vwxyz")}, {}, r"column 'title' holds .*([Ss]tr|object).*features="),
    "label of strings": ({"label": list("01010")}, {}, r"column 'label' holds .*not numbers"),
    "dates": (
        {"day": np.array(["2020-01-01"] * 5, dtype="M8[ms]")},
        {},
        r"column 'day' holds .*not numbers",
    ),
    "missing label": ({}, {"label": "Lable"}, r"no column 'Lable' for label.* 'label'.*label="),
    "missing qid": ({}, {"qid": "query"}, r"no column 'query' for qid.*'qid'.*qid=None"),
    "missing feature": ({"bm25": [1.0] * 5}, {"features": ["BM2"]}, r"no column 'BM2'.*'bm25'"),
    "nothing near": ({}, {"label": "zzzzzzz"}, r"its columns are 'qid', 'a', 'label', 'b', 'c'"),
    "no label": ({}, {"label": None}, r"label=None"),
    "features as a string": ({}, {"features": "a"}, r"features='a' must be a list"),
    "no features": ({}, {"features": []}, r"no column left"),
    "label as feature": ({}, {"features": ["a", "label"]}, r"'label' is the label"),
    "feature twice": ({}, {"features": ["a", "b", "a"]}, r"features lists 'a' twice"),
    "id as feature": (
        {"docid": np.array([1, 2, 2**53 + 1, 3, 4])},
        {},
        r"column 'docid', row 2 is 9007199254740993",
    ),
    "negative id": ({"docid": np.array([1, 2, 3, 3, -(2**62)])}, {}, r"column 'docid', row 4"),
}


@each(("more", "options", "message"), REFUSED.values())
@every_library
def test_a_bad_column_is_named(make, more, options, message):
    with pytest.raises(ValueError, match=message):
        RankingData.from_frame(make(columns(**more)), **options)


@pytest.mark.parametrize("make", [MAKERS["pandas nullable"], pandas_arrow], ids=["own", "pyarrow"])
@pytest.mark.parametrize("values", [[1, None, 0, 1, 1], [True, None, False, True, True]])
def test_nulls_of_pandas_types_are_named(make, values):
    with pytest.raises(ValueError, match=r"column 'n', row 1 is null"):
        RankingData.from_frame(make(columns(n=values)))


def test_integers_with_nulls_are_named():
    frame = pl.DataFrame(columns(n=[1, None, 0, 1, 1]))
    for one in (frame, frame.to_arrow()):
        with pytest.raises(ValueError, match=r"column 'n', row 1 is null"):
            RankingData.from_frame(one)


@pytest.mark.parametrize("values", [pl.Array(pl.Float32, 2), pl.Int128])
def test_types_that_are_no_column_of_numbers_are_named(values):
    frame = pl.DataFrame(columns()).with_columns(n=pl.lit(None).cast(values))
    with pytest.raises(ValueError, match="column 'n' holds"):
        RankingData.from_frame(frame)


def test_a_name_that_occurs_twice_is_refused():
    frame = pd.DataFrame([[1.0, 2.0, 0], [3.0, 4.0, 1]], columns=["a", "a", "label"])
    with pytest.raises(ValueError, match="has 2 columns 'a'"):
        RankingData.from_frame(frame, qid=None)


@pytest.mark.parametrize("frame", [np.zeros((3, 2)), {"a": [1.0]}, None, "train.csv"])
def test_other_objects_are_refused(frame):
    with pytest.raises(TypeError, match="pandas or polars DataFrame or a pyarrow Table"):
        RankingData.from_frame(frame)


def test_a_frame_without_rows_is_refused():
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        RankingData.from_frame(pl.DataFrame(columns()).clear())


def test_frames_are_not_modified():
    for make in LIBRARIES.values():
        frame = make(columns())
        RankingData.from_frame(frame)
        expected = make(columns())
        assert frame.equals(expected)


def test_no_library_is_imported_to_tell_frames_apart():
    script = (
        "import sys; import marginrank.data.frames as f\n"
        "try: f.from_frame(dict, 3)\n"
        "except TypeError: pass\n"
        "print([m for m in ('pandas', 'polars', 'pyarrow') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
