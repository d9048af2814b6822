"""LinearScorer: scores as of predict and the order of rank; arrays, dicts and Arrow batches."""

import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from marginrank import LinearScorer, RankSVM, make_ranking
from marginrank.models import LinearModel
from marginrank.models.serving import BLOCK, FEW, vectors_of

NAMES = ["bm25", "the year", "größe", 'q"uote']
COEF = np.array([0.5, -2.0, 0.0, 1e-3])


@pytest.fixture
def scorer():
    return LinearScorer(LinearModel(COEF, {}, feature_names=NAMES))


def documents(n=50, dtype=np.float64):
    return np.random.default_rng(n).normal(size=(n, len(NAMES))).astype(dtype)


def columns_of(X):
    return {name: X[:, k].copy() for k, name in enumerate(NAMES)}


@pytest.mark.parametrize("kind", ["float32", "float64", "Fortran", "integers", "csr", "lists"])
def test_scores_of_arrays_are_bitwise_those_of_predict(kind):
    X, y, qid = make_ranking(30, 20, 17, random_state=0)
    model = RankSVM().fit(X, y, qid=qid)
    X = {
        "float32": lambda: X.astype(np.float32),
        "float64": lambda: X,
        "Fortran": lambda: np.asfortranarray(X),
        "integers": lambda: (10 * X).astype(int),
        "csr": lambda: sp.csr_array(X),
        "lists": lambda: X.tolist(),
    }[kind]()
    np.testing.assert_array_equal(LinearScorer(model.to_linear_model()).scores(X), model.predict(X))


def test_an_estimator_gives_its_weights_once():
    X, y, qid = make_ranking(random_state=0)
    model = RankSVM().fit(X, y, qid=qid)
    before = LinearScorer(model)
    expected = model.predict(X)
    model.coef_ *= -1
    np.testing.assert_array_equal(before.scores(X), expected)
    with pytest.raises(TypeError, match=r"LinearModel.*got dict"):
        LinearScorer({})


def test_order_is_that_of_rank(scorer):
    X = np.round(documents(300), 0)  # with ties
    model = RankSVM.from_linear_model(LinearModel(COEF, {}))
    ranked = scorer.rank_one(X)
    np.testing.assert_array_equal(model.rank(X)[ranked.documents], np.arange(1, 301))
    np.testing.assert_array_equal(ranked.scores, model.predict(X)[ranked.documents])


@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=40),
    st.integers(1, 60),
    st.sampled_from([1, 10]),
)
def test_top_k_begins_as_rank_one_does(values, k, times):
    X = np.array(values * times, dtype=float)[:, None]
    one = LinearScorer(LinearModel(np.array([1.5]), {}))
    best, all_of_them = one.top_k(X, k), one.rank_one(X)
    np.testing.assert_array_equal(best.documents, all_of_them.documents[:k])
    np.testing.assert_array_equal(best.scores, all_of_them.scores[:k])


@pytest.mark.parametrize("n", [FEW, FEW + 1, 5000])
@pytest.mark.parametrize("k", [1, 7, 10_000])
def test_top_k_of_many(scorer, n, k):
    X = documents(n)
    best = scorer.top_k(X, k)
    np.testing.assert_array_equal(best.documents, np.argsort(-(X @ COEF), kind="stable")[:k])


@pytest.mark.parametrize("k", [0, -1, 2.5, True])
def test_k_is_a_positive_integer(scorer, k):
    with pytest.raises(ValueError, match="k="):
        scorer.top_k(documents(), k)


def test_columns_by_name(scorer):
    X = documents()
    columns = columns_of(X) | {"title": ["not looked at"] * len(X)}
    del columns["größe"]  # its weight is zero
    np.testing.assert_allclose(scorer.scores(columns), X @ COEF, rtol=1e-12, atol=1e-12)


def test_a_number_stands_for_all_documents(scorer):
    X = documents()
    X[:, 1] = 7
    columns = columns_of(X) | {"the year": 7}
    np.testing.assert_allclose(scorer.scores(columns), X @ COEF, rtol=1e-12, atol=1e-12)
    one = {name: 1.0 for name in NAMES}
    np.testing.assert_allclose(scorer.scores(one), [COEF.sum()])


def test_columns_that_are_not_there_are_named(scorer):
    columns = columns_of(documents())
    del columns["bm25"], columns["the year"]
    with pytest.raises(ValueError, match="'bm25' and 1 more"):
        scorer.rank_one(columns)


def test_columns_of_several_lengths_are_named(scorer):
    columns = columns_of(documents()) | {"the year": np.zeros(3)}
    with pytest.raises(ValueError, match=r"'the year' has shape \(3,\), but there are 50"):
        scorer.rank_one(columns)


def test_names_are_needed_for_columns():
    with pytest.raises(ValueError, match="the model has no feature names"):
        LinearScorer(LinearModel(COEF, {})).rank_one(columns_of(documents()))


def test_other_numbers_of_features_are_refused(scorer):
    with pytest.raises(ValueError, match="the data has 3 features, but the model has 4"):
        scorer.rank_one(documents()[:, :3].copy())


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_missing_values_are_refused(scorer, value):
    X = documents()
    X[7, 1] = value
    for features in (X, columns_of(X), pa.RecordBatch.from_pydict(columns_of(X))):
        with pytest.raises(ValueError, match="the score of document 7 is"):
            scorer.rank_one(features)


def test_a_model_without_weights_ranks_in_order():
    nothing = LinearScorer(LinearModel(np.zeros(4), {}, feature_names=NAMES))
    X = documents()
    for features in (X, columns_of(X), pa.RecordBatch.from_pydict(columns_of(X))):
        np.testing.assert_array_equal(nothing.rank_one(features).documents, np.arange(50))


@pytest.mark.parametrize("n", [1, 50, BLOCK, 2 * BLOCK + 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrow_batches(scorer, n, dtype):
    X = documents(n, dtype)
    batch = pa.RecordBatch.from_pydict({"id": [str(k) for k in range(n)], **columns_of(X)})
    np.testing.assert_allclose(scorer.scores(batch), X @ COEF, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        scorer.scores(batch.slice(n // 2)), X[n // 2 :] @ COEF, rtol=1e-12, atol=1e-12
    )


def test_arrow_tables_of_several_chunks(scorer):
    X = documents(30)
    table = pa.table({name: pa.chunked_array([c[:7], c[7:]]) for name, c in columns_of(X).items()})
    np.testing.assert_allclose(scorer.scores(table), X @ COEF, rtol=1e-12, atol=1e-12)
    assert scorer.scores(table.slice(0, 0)).size == 0


def test_arrow_columns_of_several_types(scorer):
    X = np.arange(12.0).reshape(3, 4)
    types = [pa.int64(), pa.float32(), pa.uint8(), pa.float64()]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(X[:, k]).cast(kind) for k, kind in enumerate(types)], names=NAMES
    )
    np.testing.assert_allclose(scorer.scores(batch), X @ COEF, rtol=1e-12)


def test_an_arrow_batch_is_not_copied(scorer):
    X = documents(40 * BLOCK)
    batch = pa.RecordBatch.from_pydict(columns_of(X))
    before = pa.total_allocated_bytes()
    pool = pa.default_memory_pool()
    peak_before = pool.max_memory()
    assert peak_before is not None
    scorer.scores(batch)
    assert pa.total_allocated_bytes() == before
    assert pool.max_memory() - max(peak_before, before) <= 4 * BLOCK * X.itemsize * X.shape[1]


def test_arrow_vectors_share_their_memory(scorer):
    X = documents(20, np.float32)
    array = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
    assert np.shares_memory(vectors_of(array), array.flatten().to_numpy())
    np.testing.assert_array_equal(scorer.scores(array), scorer.scores(X))
    np.testing.assert_array_equal(scorer.scores(array.slice(5)), scorer.scores(X)[5:])
    chunks = pa.chunked_array([array.slice(0, 5), array.slice(5)])
    np.testing.assert_array_equal(scorer.scores(chunks), scorer.scores(X))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"bm25": ["a", "b"]}, "column 'bm25' has type string; cast it"),
        ({"bm25": [1.0, None]}, "column 'bm25' has nulls"),
        ({"bm25": [True, False]}, "column 'bm25' has type bool; cast it"),
    ],
)
def test_columns_without_numbers_are_named(scorer, change, sentence):
    batch = pa.RecordBatch.from_pydict(columns_of(documents(2)) | change)
    with pytest.raises(ValueError, match=sentence):
        scorer.scores(batch)


def test_two_columns_of_one_name_are_refused(scorer):
    columns = [pa.array([1.0])] * 5
    batch = pa.RecordBatch.from_arrays(columns, names=[*NAMES, "bm25"])
    with pytest.raises(ValueError, match="two columns 'bm25'; rename one"):
        scorer.scores(batch)
    other = pa.RecordBatch.from_arrays(columns, names=[*NAMES, "größe"])
    assert scorer.scores(other).size == 1  # nobody asks for it


def test_arrow_arrays_of_numbers_are_refused(scorer):
    with pytest.raises(ValueError, match="Arrow array of double"):
        scorer.scores(pa.array([1.0]))
    nulls = pa.array([[1.0, 2.0, 3.0, 4.0], None], pa.list_(pa.float64(), 4))
    with pytest.raises(ValueError, match="the Arrow array has nulls"):
        scorer.scores(nulls)


@pytest.mark.parametrize("format", ["json", "liblinear", "svmrank"])
def test_files_are_loaded_without_scikit_learn(tmp_path, format):
    X, y, qid = make_ranking(random_state=0)
    model = RankSVM().fit(X, y, qid=qid)
    model.save(tmp_path / "model", format=format)
    code = (
        "import sys\nimport numpy as np\nfrom marginrank import LinearScorer\n"
        f"scorer = LinearScorer.load({str(tmp_path / 'model')!r})\n"
        f"print(scorer.rank_one(np.eye({X.shape[1]})).documents.tolist())\n"
        "print('sklearn' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    order = np.argsort(-model.coef_, kind="stable").tolist()
    assert done.stdout.splitlines() == [str(order), "False"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"bm25": np.ones((2, 2))}, "the feature 'bm25' has shape (2, 2), but there are 2"),
        ({"bm25": [1.0]}, "the feature 'bm25' has shape (1,), but there are 2 documents"),
        ({"bm25": ["1", "2"]}, "columns['bm25'] must hold real numbers: '1' is a string"),
        ({"bm25": [None, 1.0]}, "columns['bm25'][0] is missing (None)"),
        ({"bm25": np.ma.array([1.0, 2.0], mask=[0, 1])}, "columns['bm25'][1] is masked"),
    ],
)
def test_columns_that_are_no_numbers_a_document_are_named(scorer, change, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        scorer.scores(columns_of(documents(2)) | change)


def test_matrices_in_the_place_of_columns_are_refused(scorer):
    """All of one shape, they would look like more documents."""
    with pytest.raises(ValueError, match="has shape"):
        scorer.scores({name: np.ones((2, 2)) for name in NAMES})


def test_data_frames_are_read_by_name(scorer):
    pandas = pytest.importorskip("pandas")
    X = documents()
    frame = pandas.DataFrame(X, columns=NAMES)
    np.testing.assert_array_equal(scorer.scores(frame[NAMES[::-1]]), scorer.scores(columns_of(X)))
    with pytest.raises(ValueError, match="missing features: 'bm25'"):
        scorer.scores(frame.rename(columns={"bm25": "other"}))
    nameless = LinearScorer(LinearModel(COEF, {}))
    np.testing.assert_array_equal(nameless.scores(frame), nameless.scores(X))


def test_a_query_that_found_nothing_has_an_empty_ranking(scorer):
    X = documents()[:0]
    for nothing in (
        X,
        sp.csr_array(X),
        columns_of(X),
        columns_of(X) | {"bm25": 3.0},
        pa.RecordBatch.from_pydict(columns_of(X)),
        pa.array([], pa.list_(pa.float64(), len(NAMES))),
    ):
        for ranked in (scorer.rank_one(nothing), scorer.top_k(nothing, 3)):
            assert ranked.documents.size == ranked.scores.size == 0


def test_two_features_of_one_name_cannot_be_told_apart_in_columns():
    twice = LinearScorer(LinearModel(np.ones(2), {}, feature_names=["a", "a"]))
    with pytest.raises(ValueError, match="two features of the model have the same name"):
        twice.scores({"a": [1.0]})
    assert twice.scores([[1.0, 2.0]]) == 3.0


@pytest.mark.parametrize(
    "types",
    [
        (pa.int64(), pa.int64()),
        (pa.uint64(), pa.int64()),
        (pa.int8(), pa.uint16()),
        (pa.float16(), pa.float16()),
    ],
)
def test_arrow_columns_of_integers_and_of_half_precision(types):
    scorer = LinearScorer(LinearModel(np.array([1.0, 2.0]), {}, feature_names=["a", "b"]))
    first = 2**63 if types[0] == pa.uint64() else 7
    values = [np.array([first, 2], types[0].to_pandas_dtype()), np.array([5, 3])]
    arrays = [
        pa.array(v.astype(t.to_pandas_dtype()), t) for v, t in zip(values, types, strict=True)
    ]
    batch = pa.RecordBatch.from_arrays(arrays, names=["a", "b"])
    np.testing.assert_array_equal(scorer.scores(batch), [float(first) + 10, 8])


@pytest.mark.parametrize("kind", [pa.bool_(), pa.string(), pa.decimal128(5, 2)])
def test_arrow_lists_without_numbers_are_refused(scorer, kind):
    with pytest.raises(ValueError, match=r"has lists of .*; cast it to float32 or float64"):
        scorer.scores(pa.array([], pa.list_(kind, len(NAMES))))


def test_what_arrow_has_beside_batches_is_refused_by_name(scorer):
    table = pa.table(columns_of(documents()))
    for other in (table.schema, table.to_reader()):
        with pytest.raises(TypeError, match=r"pyarrow.*is not supported; pass a RecordBatch"):
            scorer.scores(other)
