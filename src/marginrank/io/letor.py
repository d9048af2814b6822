"""Reading and writing of LETOR / SVMlight text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from marginrank import _core
from marginrank._utils.atomic_files import atomic_write
from marginrank._utils.memory import require_memory
from marginrank._utils.parameters import Mention, ParameterError, check_choice, check_integer, given
from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats, Integers
from marginrank.data.ranking_data import RankingData
from marginrank.data.validation import as_matrix, check_float_dtype
from marginrank.io.text_sources import (
    Path,
    Progress,
    Source,
    as_list,
    compressed,
    name_all,
    printable,
    source_name,
    texts_of,
)

MOST_FEATURES = 2**31 - 1
MOST_DIGITS = 18  # most digits of a group size: numbers with more may not fit in int64
LAYOUTS = ("auto", "dense", "csr")
WEIGHTS_IN = "store or table"  # formats that can hold weights
NOT_IN_TEXT = {"sample_weight": WEIGHTS_IN, "query_weight": WEIGHTS_IN, "position": "store"}
BLOCK = 1 << 18  # entries checked at a time, which fit in the cache
DIGITS = (6, 7, 8, 9)  # float32 keeps all decimals of 6 digits; 9 digits identify each float32


def load_letor(
    source: Source | Sequence[Source],
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    missing: float | str = "error",
    layout: str = "auto",
    dtype: DTypeLike = np.float32,
    comments: bool = False,
    group: ArrayLike | Path | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> RankingData:
    r"""Read LETOR / SVMlight text: ``<label> qid:<id> <index>:<value> … # comment``.

    A line may also have ``cost:<number>``, which becomes :attr:`RankingData.cost` (1 if absent),
    and ``sid:<integer>``, which is checked and ignored.

    Parameters
    ----------
    source : path, binary file object, or a list of them
        Several sources are read as one. Files whose names end in .gz, .bz2, .xz or .zst are
        decompressed; "-" is standard input.
    n_features : int, optional
        Number of features, to align test data with training data; a larger index is an error.
    zero_based : bool, default=False
        Whether indices start at 0 instead of 1.
    missing : "error" or float, default="error"
        Value for entries written as NULL or nan; "error" raises ValueError for them. Pass NaN to
        keep them missing, for :class:`~marginrank.AdditiveRankSVM`. The value of an absent index is
        0.
    layout : {"auto", "dense", "csr"}, default="auto"
        Layout of X; "auto" chooses the one that takes less memory.
    dtype : {float32, float64}, default=float32
        Type of the features.
    comments : bool, default=False
        Keep the comment of each document in ``data.comments``.
    group : array-like or path, optional
        Group sizes, or a file with one size per line, for text without qid. Without both, all
        documents are one query.
    n_jobs : int, optional
        Number of threads; all by default.
    progress : callable, optional
        Called with two integers: the number of bytes read so far, and the size of the file (0 if
        unknown).

    Returns
    -------
    RankingData
        The documents, in the order of the lines.

    Raises
    ------
    ValueError
        ``file:line:column: what is wrong``, for the first malformed line.

    Examples
    --------
    >>> import io
    >>> from marginrank import load_letor
    >>> data = load_letor(io.BytesIO(b"2 qid:a 1:0.5 3:1\n0 qid:a 2:4\n"))
    >>> data.n_pairs
    1
    >>> data.X
    array([[0.5, 0. , 1. ],
           [0. , 4. , 0. ]], dtype=float32)
    """
    text = read_letor(
        source,
        n_features=n_features,
        zero_based=zero_based,
        missing=missing,
        layout=layout,
        dtype=dtype,
        comments=comments,
        group=group,
        n_jobs=n_jobs,
        progress=progress,
    )
    return text.to_data(n_jobs)


class LetorText(NamedTuple):
    """Features, labels, query ids and comments parsed from LETOR text, not yet grouped by query."""

    X: Any
    y: Floats
    qid: NDArray[Any] | None
    group: ArrayLike | None
    comments: list[str] | None
    cost: Floats | None = None

    def to_data(self, n_jobs: int | None = None) -> RankingData:
        """Convert the parsed text to a RankingData, which groups documents by query."""
        return RankingData(
            self.X,
            self.y,
            self.qid,
            self.group,
            cost=self.cost,
            comments=self.comments,
            allow_nan=True,  # text has NaN only if `missing` is NaN
            n_jobs=n_jobs,
        )


def read_letor(
    source: Source | Sequence[Source],
    *,
    layout: str = "auto",
    comments: bool = False,
    group: ArrayLike | Path | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    **reading: Any,
) -> LetorText:
    """Read LETOR text like :func:`load_letor`, but do not group the documents by query."""
    threads = effective_threads(n_jobs)
    reader = new_reader(layout=layout, comments=comments, allow_nan=True, **reading)
    sources = as_list(source)
    for one in sources:
        reader.begin_source()
        for text, first, last in texts_of(one, progress):
            feed(reader, source_name(one), text, first, last, threads)
    return assemble(reader, name_all(sources), layout, comments, group, threads)


def new_reader(
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    missing: float | str = "error",
    layout: str = "auto",
    dtype: DTypeLike = np.float32,
    comments: bool = False,
    allow_nan: bool = False,
) -> _core.LetorReader:
    """Return a parser of the C++ core for options of :func:`load_letor`, which are validated."""
    float64 = check_float_dtype(dtype) == np.float64
    if n_features is not None:
        check_integer("n_features", n_features, at_least=1, at_most=MOST_FEATURES)
    check_choice("layout", layout, LAYOUTS)
    value = None
    if missing != "error":
        if isinstance(missing, str) or np.isinf(missing) or (np.isnan(missing) and not allow_nan):
            raise ParameterError(given("missing", missing), " must be 'error' or a finite number.")
        value = float(missing)
    return _core.LetorReader(
        float64,
        0 if zero_based else 1,
        -1 if n_features is None else n_features,
        value,
        comments,
    )


def feed(
    reader: _core.LetorReader,
    name: str,
    text: bytes,
    first: int,
    last: int,
    threads: int,
    lines_before: int = 0,
) -> None:
    """Parse the LETOR text in text[first:last]; raise ParameterError for a malformed line."""
    fault = reader.feed(text, first, last, threads)
    if fault is not None:
        line, column, what = fault
        place = f"{name}:{lines_before + line}:{column}: "
        raise ParameterError(place, *_with_mentions(printable(what)), ".")


def _with_mentions(what: str) -> tuple[str | Mention, ...]:
    """Return a message of the parser in parts, with the parameter that it mentions as a Mention.

    Messages of the command line then show the parameter as a flag. Only ``name=`` after a space is
    a parameter, so quoted text of the user is never mistaken for one.
    """
    for name in ("zero_based", "n_features", "missing"):
        before, found, after = what.rpartition(f" {name}=")
        if found:
            code, *rest = after.split(" ", 1)
            return (f"{before} ", Mention(name, code), *(f" {words}" for words in rest))
    return (what,)


def assemble(
    reader: _core.LetorReader,
    name: str,
    layout: str,
    comments: bool,
    group: ArrayLike | Path | None,
    threads: int,
) -> LetorText:
    """Return all documents that a parser of LETOR text (`reader`) has read, as a LetorText."""
    check_documents(reader, name, group is not None)
    labels, lengths, ids, texts = reader.documents()
    n_rows, n_columns, n_entries, has_qid = reader.shape()
    if isinstance(group, (str, os.PathLike)):
        group = read_all_sizes(group, name, n_rows)
    return LetorText(
        _features(reader, name, layout, (n_rows, n_columns, n_entries), threads),
        labels,
        np.repeat(ids_of_text(decode_ids(ids)), lengths) if has_qid else None,
        group,
        [text.decode("utf-8", "replace") for text in texts] if comments else None,
        reader.costs(),
    )


def check_documents(reader: _core.LetorReader, name: str, has_group: bool) -> None:
    """Raise ValueError if text has no documents, or if both query ids and group sizes are given."""
    n_rows, _, _, has_qid = reader.shape()
    if n_rows == 0:
        raise ValueError(f"{name} has no documents: it is empty or holds only comments.")
    if has_qid and has_group:
        raise ValueError("group was given, but the lines have a qid already; drop one of them.")


def _features(
    reader: _core.LetorReader, name: str, layout: str, shape: tuple[int, int, int], threads: int
) -> Any:
    n_rows, n_columns, _ = shape
    smaller = smaller_layout(*shape)
    if layout == "dense" and smaller == "csr":
        require_memory(
            4 * n_rows * n_columns,
            f"{name} as a dense table of {n_rows} × {n_columns}",
            "use layout 'auto' or 'csr', and check the largest index",
        )
    if (smaller if layout == "auto" else layout) == "dense":
        return reader.dense(threads)
    return sparse_features(reader)


def sparse_features(reader: _core.LetorReader) -> Any:
    """Return the features that a parser of LETOR text (`reader`) has parsed, as a CSR matrix."""
    n_rows, n_columns, *_ = reader.shape()
    values, columns, indptr = reader.csr()
    used = int(indptr[-1])
    if used < 2**31:
        indptr = indptr.astype(np.int32)
    else:
        columns = columns.astype(np.int64)
    return sp.csr_array((values[:used], columns[:used], indptr), shape=(n_rows, n_columns))


def smaller_layout(n_rows: int, n_columns: int, n_entries: int) -> str:
    """Return the layout of X that takes less memory, "dense" or "csr".

    CSR needs about twice the memory per entry, because it stores an index with each value.
    """
    return "dense" if n_rows * n_columns <= 2 * n_entries else "csr"


def decode_ids(ids: list[bytes]) -> list[str]:
    """Decode query ids from bytes to strings."""
    return [i.decode("utf-8", "surrogateescape") for i in ids]


def ids_of_text(texts: list[str]) -> NDArray[Any]:
    """Return query ids as an array: int64 if all are written as decimal integers, else strings.

    An id with leading zeros, such as "007", is not written as a decimal integer.
    """
    try:
        numbers = [int(t) for t in texts]
        if all(str(n) == t for n, t in zip(numbers, texts, strict=True)):
            return np.array(numbers, dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    result = np.empty(len(texts), dtype=object)
    result[:] = texts
    return result


def read_all_sizes(path: Path, name: str, n_documents: int) -> Integers:
    """Read the sizes of queries from a file with one size per line.

    Raise ValueError if their sum is not `n_documents`, the number of documents in the file `name`.
    """
    sizes = []
    with open(path, encoding="utf-8", errors="backslashreplace") as file:
        for number, line in enumerate(file, 1):
            text = line.strip()
            if not text:
                continue
            if not text.isdecimal() or len(text) > MOST_DIGITS or int(text) < 1:
                raise ValueError(
                    f"{path}:{number}:1: {text[:40]!r} is not a group size; write one integer per "
                    "line."
                )
            sizes.append(int(text))
    if sum(sizes) != n_documents:
        raise ValueError(
            f"{os.fspath(path)}: the group sizes sum to {sum(sizes)}, but {name} has {n_documents} "
            "documents; write one size per query."
        )
    return np.array(sizes, dtype=np.int64)


def dump_letor(data: RankingData, path: Path, *, zero_based: bool = False) -> None:
    """Write a data set as LETOR text.

    Numbers have the fewest digits that :func:`load_letor` reads back exactly. Files whose names end
    in .gz, .bz2, .xz or .zst are compressed. The file appears only when it is complete.

    Parameters
    ----------
    data : RankingData
        The data set, with its comments and costs. Raise ValueError if it has weights.
    path : str or path
        The file to write.
    zero_based : bool, default=False
        Number the features from 0 instead of 1.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from marginrank import RankingData, dump_letor
    >>> data = RankingData([[0.5], [2.0]], [1, 0], qid=["a", "a"])
    >>> with tempfile.NamedTemporaryFile(suffix=".txt") as file:
    ...     dump_letor(data, file.name)
    ...     print(Path(file.name).read_text(), end="")
    1 qid:a 1:0.5
    0 qid:a 1:2
    """
    path = os.fspath(path)
    for name, kind in NOT_IN_TEXT.items():
        if getattr(data, name) is not None:
            raise ValueError(f"{path}: LETOR text cannot hold the column {name}; write a {kind}.")
    if data.y.dtype != np.float64:
        raise ValueError(
            f"{path}: LETOR text cannot hold labels as large as {np.max(data.y)} exactly; "
            "replace labels by their ranks, or write a store or a table."
        )
    with atomic_write(path) as file, compressed(path, file) as out:
        for text in _formatted(data, 0 if zero_based else 1):
            out.write(text)


def _formatted(data: RankingData, first_index: int) -> Iterator[bytes]:
    matrix = as_matrix(data.X)
    ids = [b" qid:" + str(i).encode("utf-8", "surrogateescape") for i in data.query_ids.tolist()]
    for name, text in zip(data.query_ids.tolist(), ids, strict=True):
        if len(text) == 5 or any(c in b" \t\n\r#" for c in text[1:]):
            raise ValueError(f"Query id {name!r} is empty or has white space or #; rename it.")
    qid = data.qid
    step = 4096
    for first in range(0, data.n_documents, step):
        last = min(first + step, data.n_documents)
        suffixes = [b""] * (last - first)
        if data.comments is not None:
            lines = (" ".join(text.splitlines()) for text in data.comments[first:last])
            suffixes = [b" # " + line.encode("utf-8") if line else b"" for line in lines]
        prefixes = [ids[q] for q in qid[first:last]]
        if data.cost is not None:
            costs = data.cost[first:last].tolist()
            prefixes = [p + b" cost:%r" % c for p, c in zip(prefixes, costs, strict=True)]
        yield _core.format_letor(matrix, data.y, first, last, prefixes, suffixes, first_index)


def narrowed(X: Any) -> Any:
    """Return X as float32 if no decimal digit of its float64 values is lost, else unchanged."""
    entries = X.data if hasattr(X, "nnz") else X.reshape(-1)
    return X.astype(np.float32) if float32_holds_all(entries) else X


def float32_holds_all(values: Floats) -> bool:
    """Return :func:`float32_holds` for a large array, which is checked in blocks."""
    firsts = range(0, values.size, BLOCK)
    return all(float32_holds(values[first : first + BLOCK]) for first in firsts)


def float32_holds(values: Floats) -> bool:
    """Return True if float32 keeps all decimal digits of `values`.

    A value passes if the nearest float32, printed with as few digits as identify it, is the same
    decimal number. 0.1 passes; 123456789 does not.
    """
    with np.errstate(over="ignore"):
        nearest = values.astype(np.float32)
    inexact = nearest != values
    values, nearest = values[inexact], nearest[inexact]
    if not np.isfinite(nearest).all() or not nearest.all():
        return False
    for digits in DIGITS:
        shortest = _rounded(nearest.astype(np.float64), digits)
        found = shortest.astype(np.float32) == nearest
        if not np.array_equal(shortest[found], values[found]):
            return False
        values, nearest = values[~found], nearest[~found]
    return values.size == 0


def _rounded(values: Floats, digits: int) -> Floats:
    """Return non-zero `values` rounded to a number of significant digits."""
    places = digits - 1 - np.floor(np.log10(np.abs(values)))
    # Powers of 10 are exact in float64 up to 10²². Beyond that, rounding errors can only make
    # float32_holds return False, which is safe: the features stay float64.
    scale = 10.0 ** np.abs(places)
    tall = places < 0
    whole = np.rint(np.where(tall, values / scale, values * scale))
    rounded: Floats = np.where(tall, whole * scale, whole / scale)
    return rounded
