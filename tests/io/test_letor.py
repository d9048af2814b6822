"""LETOR text: what is read, what is refused and where, and what is written."""

import bz2
import gzip
import io
import lzma
import re
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.tables import each
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from marginrank import RankingData, dump_letor, iter_letor, load_letor, make_ranking
from marginrank._utils import memory
from marginrank.io.text_sources import decompressed


def read(text, **options):
    if isinstance(text, str):
        text = text.encode()
    return load_letor(io.BytesIO(text), **options)


def dense(data):
    return data.X.toarray() if sp.issparse(data.X) else data.X


def test_reads_labels_queries_and_features():
    data = read("2 qid:7 1:0.5 3:-1e2 # docid = a\n-0.25 qid:9 2:.5\n1e1 qid:7 1:3.\n")
    np.testing.assert_array_equal(dense(data), [[0.5, 0, -100], [0, 0.5, 0], [3, 0, 0]])
    np.testing.assert_array_equal(data.y, [2, -0.25, 10])
    np.testing.assert_array_equal(data.query_ids, [7, 9])
    np.testing.assert_array_equal(data.qid, [0, 1, 0])
    assert data.X.dtype == np.float32


@pytest.mark.parametrize(
    "text",
    [
        "1 qid:1 1:2\n0 qid:1 1:3\n",
        "1 qid:1 1:2\r\n0 qid:1 1:3\r\n",
        "\ufeff1 qid:1 1:2\n0 qid:1 1:3",
        "\n# a comment line\n  1\tqid:1\t1:2  \n\n0 qid:1 1:3#no space\n   \n",
        "+1 qid:1 1:+2\n-0 qid:1 1:3e0 # tail",
    ],
    ids=["plain", "crlf", "bom, no last line end", "blank lines and tabs", "signs"],
)
def test_variants_of_the_same_text(text):
    data = read(text)
    np.testing.assert_array_equal(dense(data), [[2], [3]])
    np.testing.assert_array_equal(data.y, [1, 0])


@each(
    ("text", "line", "column", "what"),
    [
        ("1 qid:1 1:2\n0 qid:1 1:x\n", 2, 11, "'x' is not a finite number"),
        ("1 qid:1 1:2\n0 qid:1 1:\n", 2, 11, "not a finite number"),
        ("1 qid:1 1:2\n\n# c\n0 qid:1 1\n", 4, 9, "expected index:value"),
        ("1 qid:1 1:2\n0 1:3\n", 2, 1, "no qid"),
        ("1 1:2\n0 qid:1 1:3\n", 2, 1, "has a qid"),
        ("1 qid: 1:2\n", 1, 3, "query id after qid: is empty"),
        ("1 qid:1 qid:2\n", 1, 9, "once, right after the label"),
        ("1 qid:1 2:1 2:1\n", 1, 13, "index 2 appears twice"),
        ("1 qid:1 2:1 1:1\n", 1, 13, "index 1 after 2"),
        ("1 qid:1 0:1\n", 1, 9, "zero_based=True"),
        ("1 qid:1 -1:1\n", 1, 9, "expected index:value"),
        ("1 qid:1 99999999999999999999:1\n", 1, 9, "larger than 2147483647"),
        ("1 qid:1 1:1e400\n", 1, 11, "too large for float32"),
        ("1 qid:1 1:1e39\n", 1, 11, "too large for float32"),
        ("1 qid:1 1:inf\n", 1, 11, "not a finite number"),
        ("1 qid:1 1:nan\n", 1, 11, "missing="),
        ("1 qid:1 1:NULL\n", 1, 11, "missing="),
        ("1 qid:1 1:0x10\n", 1, 11, "not a finite number"),
        ("nan qid:1 1:1\n", 1, 1, "label 'nan'"),
        ("1e999 qid:1 1:1\n", 1, 1, "too large"),
        ("relevant qid:1 1:1\n", 1, 1, "label 'relevant'"),
        ("1 qid:1 1:" + "7" * 100 + "x\n", 1, 11, "7..."),
    ],
)
def test_malformed_lines_are_located(text, line, column, what):
    with pytest.raises(ValueError, match=re.escape(what)) as error:
        read(text)
    assert f":{line}:{column}: " in str(error.value)


def test_first_error_is_reported_whatever_the_threads(tmp_path):
    lines = [f"{i % 3} qid:{i // 10} 1:{i} 2:0.5" for i in range(50_000)]
    lines[31_234] += " 2:1"
    lines[40_000] = "broken"
    path = tmp_path / "data.txt"
    path.write_text("\n".join(lines))
    for threads in (1, 2, 8):
        with pytest.raises(ValueError, match=r"data\.txt:31235:\d+: index 2 appears twice"):
            load_letor(path, n_jobs=threads)


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_text_without_documents_is_refused(text):
    with pytest.raises(ValueError, match="no documents"):
        read(text)


def test_missing_values_take_what_is_asked_for():
    data = read("1 qid:1 1:NULL 2:nan 3:4\n0 qid:1 3:1\n", missing=-1)
    np.testing.assert_array_equal(dense(data), [[-1, -1, 4], [0, 0, 1]])


def test_n_features_aligns_and_bounds():
    assert read("1 qid:1 2:1\n", n_features=5).n_features == 5
    with pytest.raises(ValueError, match=":1:9: index 2 is beyond n_features=1"):
        read("1 qid:1 2:1\n", n_features=1)


def test_zero_based_indices():
    np.testing.assert_array_equal(dense(read("1 qid:1 0:5 1:6\n", zero_based=True)), [[5, 6]])


@pytest.mark.parametrize(
    ("ids", "dtype"),
    [
        (["1", "22", "-3"], np.int64),
        (["9223372036854775807", "1", "2"], np.int64),
        (["18446744073709551616", "1", "2"], object),
        (["01", "1", "2"], object),
        (["GX-1", "q:2", "ü"], object),
    ],
)
def test_query_ids_keep_their_identity(ids, dtype):
    data = read("".join(f"1 qid:{i} 1:1\n0 qid:{i} 1:2\n" for i in ids))
    assert [str(i) for i in data.query_ids] == ids
    assert data.query_ids.dtype == dtype


def test_comments_are_kept_even_if_not_utf8():
    data = read(b"1 qid:1 1:1 #docid = x \xff\n0 qid:1 1:2\n", comments=True)
    assert data.comments == ["docid = x �", ""]
    assert read("1 qid:1 1:1 # c\n").comments is None


def test_groups_for_text_without_qid(tmp_path):
    sizes = tmp_path / "data.group"
    sizes.write_text("2\n1\n")
    text = "1 1:1\n0 1:2\n2 1:3\n"
    for group in ([2, 1], sizes):
        assert read(text, group=group).n_queries == 2
    assert read(text).n_queries == 1
    sizes.write_text("2\nx\n")
    with pytest.raises(ValueError, match=r"data\.group:2:1: 'x' is not a group size"):
        read(text, group=sizes)
    with pytest.raises(ValueError, match="qid already"):
        read("1 qid:1 1:1\n", group=[1])


def test_layout_is_the_smaller_or_as_asked():
    wide = "1 qid:1 1000:1\n0 qid:1 3:2\n"
    assert sp.issparse(read(wide).X)
    assert not sp.issparse(read(wide, layout="dense").X)
    assert sp.issparse(read("1 qid:1 1:1\n", layout="csr").X)
    np.testing.assert_array_equal(dense(read(wide)), read(wide, layout="dense").X)


def test_mixed_parts_are_joined(tmp_path):
    rng = np.random.default_rng(0)
    full = [f"1 qid:1 {' '.join(f'{j}:{rng.random():.4f}' for j in range(1, 40))}"] * 3000
    thin = [f"0 qid:2 {1 + i % 500}:1.5" for i in range(60_000)]
    path = tmp_path / "mixed.txt"
    path.write_text("\n".join(full + thin))
    X, y, _ = load_svmlight_file(str(path), query_id=True, n_features=500, dtype=np.float32)
    for layout in ("dense", "csr"):
        data = load_letor(path, layout=layout, n_jobs=2)
        assert (sp.csr_array(data.X) != X).nnz == 0
        np.testing.assert_array_equal(data.y, y)


@pytest.mark.parametrize(
    ("ending", "opener"), [(".gz", gzip.open), (".bz2", bz2.open), (".xz", lzma.open)]
)
def test_compressed_files(tmp_path, ending, opener):
    path = tmp_path / f"data.txt{ending}"
    with opener(path, "wb") as file:
        file.write(b"1 qid:1 1:2\n0 qid:1 1:3\n" * 1000)
    assert load_letor(path).n_documents == 2000
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="damaged or truncated"):
        load_letor(path)


STREAMS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("ending", [*STREAMS, ".zst"])
def test_no_stream_of_several_is_lost(tmp_path, ending):
    zstandard = pytest.importorskip("zstandard")
    compress = STREAMS.get(ending, zstandard.ZstdCompressor().compress)
    one = compress(b"1 qid:1 1:2\n0 qid:1 1:3\n" * 2000)
    path = tmp_path / f"data.txt{ending}"
    for end in (b"", b"\0" * 4, b"\0" * 100_000):
        path.write_bytes(one + end + one + end)
        assert load_letor(path).n_documents == 8000
    for damage in (bytes([one[0] ^ 1]) + one[1:], b"no stream", one[:2], one[:-1]):
        path.write_bytes(one + damage)
        with pytest.raises(ValueError, match=f"data.txt{ending}: the compressed file is damaged"):
            load_letor(path)


@pytest.mark.parametrize("ending", [*STREAMS, ".zst"])
def test_an_empty_file_is_empty_though_its_name_says_compressed(tmp_path, ending):
    pytest.importorskip("zstandard")
    (tmp_path / f"data{ending}").touch()
    with pytest.raises(ValueError, match="has no documents"):
        load_letor(tmp_path / f"data{ending}")


@pytest.mark.parametrize("ending", [".bz2", ".xz"])
def test_text_that_expands_a_thousandfold_is_decompressed_bit_by_bit(tmp_path, ending):
    path = tmp_path / f"data{ending}"
    path.write_bytes(STREAMS[ending](b"1 qid:1 1:2\n" + b"#" * 50_000_000 + b"\n0 qid:1 1:3\n"))
    with path.open("rb") as file:
        stream = decompressed(str(path), file)
        assert len(stream.read(1000)) == 1000
    assert load_letor(path).n_documents == 2


def test_zstandard_files(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "data.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(b"1 qid:1 1:2\n0 qid:1 1:3\n"))
    assert load_letor(path).n_pairs == 1


def test_several_sources_are_one(tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:1 1:2\n0 qid:1 3:3")
    (tmp_path / "b.txt").write_text("2 qid:1 2:2\n0 qid:2 oops\n")
    with pytest.raises(ValueError, match=r"b\.txt:2:9"):
        load_letor([tmp_path / "a.txt", tmp_path / "b.txt"])
    (tmp_path / "b.txt").write_text("2 qid:1 2:2\n")
    data = load_letor([tmp_path / "a.txt", tmp_path / "b.txt"])
    assert (data.n_documents, data.n_queries, data.n_features) == (3, 1, 3)


def test_text_file_objects_are_refused():
    with pytest.raises(ValueError, match="mode 'rb'"):
        load_letor(io.StringIO("1 qid:1 1:1\n"))


def test_a_line_of_a_hundred_megabytes(tmp_path):
    path = tmp_path / "long.txt"
    with open(path, "wb") as file:
        file.write(b"1 qid:1 1:2 # " + b"x" * 100_000_000 + b"\n0 qid:1 1:3\n")
    assert load_letor(path).n_pairs == 1


def test_numbers_are_rounded_correctly():
    texts = ["0.1", "16777217", "0.30000001192092896", "1.1754943508222875e-38", "1e-46", "7e-46",
             "3.4028234663852886e38", "123456789.123456789", "0.000000059604644775390625001",
             "8388609.5", "2.00000011920928966"]  # fmt: skip
    line = "1 qid:1 " + " ".join(f"{j}:{t}" for j, t in enumerate(texts, 1))
    for dtype in (np.float32, np.float64):
        row = read(line, dtype=dtype, layout="dense").X[0]
        np.testing.assert_array_equal(row, np.array([correctly_rounded(t, dtype) for t in texts]))


def correctly_rounded(text, dtype):
    """Round a decimal once, by exact rational arithmetic."""
    from fractions import Fraction

    exact = Fraction(text)
    guess = dtype(float(text))
    with np.errstate(over="ignore"):
        candidates = [np.nextafter(guess, dtype(sign * np.inf)) for sign in (-1, 1)]
    finite = [c for c in (*candidates, guess) if np.isfinite(c)]
    even = {c: int(np.asarray(c).view(f"u{c.itemsize}")) & 1 for c in finite}
    return min(finite, key=lambda c: (abs(Fraction(float(c)) - exact), even[c]))


finite32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
finite64 = st.floats(allow_nan=False, allow_infinity=False)


@given(
    rows=st.lists(
        st.tuples(finite64, st.integers(0, 3), st.lists(finite32, min_size=4, max_size=4)),
        min_size=1,
        max_size=20,
    ),
    sparse=st.booleans(),
    zero_based=st.booleans(),
)
def test_round_trip_is_exact(tmp_path_factory, rows, sparse, zero_based):
    X = np.array([r[2] for r in rows], dtype=np.float32)
    y = np.array([r[0] for r in rows])
    qid = np.array([f"q{r[1]}" for r in rows], dtype=object)
    data = RankingData(sp.csr_array(X) if sparse else X, y, qid)
    path = tmp_path_factory.mktemp("letor") / "data.txt"
    dump_letor(data, path, zero_based=zero_based)
    again = load_letor(path, zero_based=zero_based, layout="csr" if sparse else "dense")
    np.testing.assert_array_equal(dense(again), X)
    np.testing.assert_array_equal(again.y, y)
    np.testing.assert_array_equal(again.query_ids[again.qid], qid)


def test_float64_round_trip_and_comments(tmp_path):
    X, y, qid = make_ranking(5, 6, 3, n_levels=None, shuffle=True, random_state=0)
    comments = [f"doc {i}" for i in range(len(y))]
    data = RankingData(X, y, qid, comments=comments)
    dump_letor(data, tmp_path / "data.txt.gz")
    again = load_letor(tmp_path / "data.txt.gz", dtype=np.float64, comments=True)
    np.testing.assert_array_equal(again.X, X)
    np.testing.assert_array_equal(again.y, y)
    assert again.comments == comments


def test_query_ids_that_text_cannot_hold_are_refused(tmp_path):
    data = RankingData([[1.0], [2.0]], [0, 1], ["a b", "a b"])
    with pytest.raises(ValueError, match="'a b' is empty or has white space"):
        dump_letor(data, tmp_path / "data.txt")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["sample_weight", "query_weight"])
def test_weights_that_text_cannot_hold_are_refused(tmp_path, name):
    data = RankingData([[1.0], [2.0]], [0, 1], ["a", "b"], **{name: [1.0, 2.0]})
    with pytest.raises(ValueError, match=rf"data\.txt: LETOR text cannot hold the column {name}"):
        dump_letor(data, tmp_path / "data.txt")
    assert list(tmp_path.iterdir()) == []


def test_zstandard_files_are_written(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    dump_letor(RankingData([[2.0], [3.0]], [1, 0]), tmp_path / "data.zst")
    with open(tmp_path / "data.zst", "rb") as file:
        text = zstandard.ZstdDecompressor().stream_reader(file).read()
    assert text == b"1 qid:0 1:2\n0 qid:0 1:3\n"


def test_zstandard_files_are_written_with_a_checksum(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "data.zst"
    dump_letor(RankingData([[2.0], [3.0]], [1, 0]), path)
    content = path.read_bytes()
    assert zstandard.get_frame_parameters(content).has_checksum
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ValueError, match="damaged or truncated"):
        load_letor(path)


@pytest.mark.parametrize("y", [[2**60, 2**60 + 1], [2**80, 1]])
def test_labels_that_text_would_round_are_refused(tmp_path, y):
    with pytest.raises(
        ValueError, match=rf"data.txt: LETOR text cannot hold labels as large as {max(y)}"
    ):
        dump_letor(RankingData(np.eye(2), y), tmp_path / "data.txt")
    assert not list(tmp_path.iterdir())


def test_zstandard_files_are_refused_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ImportError, match="pip install zstandard"):
        dump_letor(RankingData([[2.0], [3.0]], [1, 0]), tmp_path / "data.zst")
    assert list(tmp_path.iterdir()) == []


def test_messages_escape_what_a_terminal_obeys(tmp_path):
    (tmp_path / "data.txt").write_bytes(b"1 qid:1 1:\x1b\xff\xc3\xa9\n")
    with pytest.raises(ValueError, match=r"'\\x1b\\xff\u00e9' is not a finite number\.$"):
        load_letor(tmp_path / "data.txt")


def test_group_sizes_that_do_not_fit_are_named(tmp_path):
    (tmp_path / "data.txt").write_text("1 1:1\n0 1:2\n")
    (tmp_path / "group").write_text("3\n")
    with pytest.raises(ValueError, match=r"group: the group sizes sum to 3, but .*data\.txt has 2"):
        load_letor(tmp_path / "data.txt", group=tmp_path / "group")


def test_a_source_without_documents_is_named(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("# nothing\n")
    with pytest.raises(ValueError, match=r"a\.txt with 1 more has no documents"):
        load_letor([tmp_path / "a.txt", tmp_path / "b.txt"])


VALID = b"1 qid:3 1:0.5 2:1e-3 7:4 # c\n0 qid:3 2:-2\n2 qid:x 1:1\n"


@given(
    st.lists(
        st.tuples(st.integers(0, len(VALID)), st.binary(max_size=6), st.integers(0, 4)), max_size=4
    )
)
def test_damaged_text_is_read_or_refused_with_a_place(edits):
    text = VALID
    for at, insert, remove in edits:
        text = text[:at] + insert + text[at + remove :]
    try:
        data, message = read(text), ""
    except ValueError as error:
        data, message = None, str(error)
    located = re.search(r"<file>:(\d+):(\d+): ", message)
    if data is not None:
        assert np.isfinite(data.y).all()
        assert np.isfinite(dense(data)).all()
    elif located is None:
        assert "no documents" in message or "feature" in message
    else:
        line, column = map(int, located.groups())
        lines = text.split(b"\n")
        assert 1 <= line <= len(lines)
        assert 1 <= column <= len(lines[line - 1]) + 1


def test_agrees_with_scikit_learn_on_real_data(real_folder):
    path = real_folder / "MSLR-sample" / "train.txt.gz"
    X, y, qid = load_svmlight_file(path, query_id=True, dtype=np.float64)
    data = load_letor(path, dtype=np.float64, layout="dense")
    np.testing.assert_array_equal(data.X, X.toarray())
    np.testing.assert_array_equal(data.y, y)
    np.testing.assert_array_equal(data.query_ids[data.qid], qid)


def test_a_dense_table_beyond_memory_is_refused_before_it_is_asked_for():
    text = "1 qid:1 1:1 2147483647:1\n" * 2
    with pytest.raises(
        ValueError, match=r"<file> as a dense table of 2 × 2147483647 needs 17.2 GB"
    ):
        with_memory(10**9, read, text, layout="dense")
    assert with_memory(10**9, read, text).X.nnz == 4


def with_memory(n_bytes, function, *args, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "available_memory", lambda: n_bytes)
        return function(*args, **options)


def test_chunks_of_text_are_refused_likewise():
    lines = ["1 qid:1 1:1 2:1\n", "1 qid:2 1:1 2147483647:1\n"]
    chunks = iter_letor([io.BytesIO(line.encode()) for line in lines], chunk_documents=1)
    with pytest.raises(ValueError, match=r"dense table of 1 × 2147483647"):
        with_memory(10**9, list, chunks)


@pytest.mark.parametrize("size", ["1" + "0" * 26, "9" * 5000, "1.5", "-3", "0", "x", "\udc80"])
def test_what_is_no_group_size_is_named(tmp_path, size):
    path = tmp_path / "groups"
    path.write_bytes(b"2\n" + size.encode("utf-8", "surrogateescape") + b"\n")
    with pytest.raises(ValueError, match=r"groups:2:1: '.*' is not a group size"):
        read("1 1:1\n0 1:2\n", group=path)


def test_the_largest_index_is_not_lost():
    data = read("1 qid:1 5:1 2147483647:1\n", zero_based=True)
    assert data.X.shape == (1, 2**31)
    assert data.X[0, 2**31 - 1] == 1


@pytest.mark.parametrize("n_features", [0, -3, 2**62, 1.5])
def test_bad_numbers_of_features_are_refused(n_features):
    with pytest.raises(ValueError, match="n_features="):
        read("1 qid:1 1:1\n", n_features=n_features, layout="dense")


def test_exponents_are_judged_by_the_whole_number():
    assert dense(read("1 qid:1 1:1 2:0." + "0" * 400 + "1e5\n"))[0, -1] in (0, 1)
    with pytest.raises(ValueError, match="too large"):
        read("1 qid:1 1:1" + "0" * 400 + "e-5\n")


def test_the_matrix_does_not_depend_on_the_threads(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "zeros.txt"
    lines = [
        f"1 qid:{i // 9} " + " ".join(f"{j}:{rng.integers(0, 2)}" for j in range(1, 1 + i % 30))
        for i in range(20_000)
    ]
    path.write_text("\n".join(lines))
    one, two = (load_letor(path, n_jobs=n, layout="csr").X for n in (1, 2))
    assert one.nnz == two.nnz
    assert (one != two).nnz == 0


def test_truncated_and_damaged_compressed_files(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    text = b"1 qid:1 1:2\n0 qid:1 1:3\n" * 20_000
    whole = zstandard.ZstdCompressor().compress(text)
    for name, content in {
        "cut.zst": whole[: len(whole) // 2],
        "noise.zst": b"\x28\xb5\x2f\xfd" + bytes(range(200)),
        "noise.bz2": b"BZh9" + bytes(range(200)),
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=f"{name}: the compressed file is damaged"):
            load_letor(tmp_path / name)
    (tmp_path / "two.zst").write_bytes(whole + whole)
    assert load_letor(tmp_path / "two.zst").n_documents == 80_000
