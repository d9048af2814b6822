"""Reading of the data files of a command: LETOR text, a table, or a store."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from marginrank._utils.parameters import ParameterError
from marginrank.cli.flags.declaration import flag
from marginrank.cli.flags.shared import COLUMNS, Reading
from marginrank.cli.support.errors import warn_of
from marginrank.cli.support.files import name_of, naming
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.streams import check_piped
from marginrank.data import RankingData
from marginrank.data.stored_data import open_if_it_fits
from marginrank.io.letor import LetorText, narrowed, read_letor
from marginrank.io.table_files import read_frame

TABLES = (".parquet", ".feather", ".jsonl", ".csv", ".tsv")
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
KINDS = ("text", "store", "table")


@dataclass(frozen=True)
class DataRequest:
    """Requirements of a command on its data: the features, and whether labels and qid must exist.

    `text_dtype` is the dtype for features of text if the user does not pass --dtype: the default
    of --dtype ("given"), float64 ("widest"), or the smallest that keeps all digits ("smallest").
    """

    n_features: int | None = None
    feature_names: Sequence[str] | None = None
    comments: bool = False
    text_dtype: Literal["given", "widest", "smallest"] = "given"
    labels: bool = True
    queries: bool = True
    missing: bool = False  # whether NaN is allowed
    group: str = "group"  # the flag with the sizes of the queries, for messages
    owner: str = "the model"  # where `n_features` comes from, for messages


def kind_of(path: str) -> str:
    """Return the kind of data at a path: "text" (LETOR), "store" or "table"."""
    if path == "-":
        return "text"
    if Path(path).is_dir():
        return "store"
    *others, last = Path(path.lower()).suffixes or [""]
    if last in COMPRESSED and others[-1:] in ([".csv"], [".tsv"]):
        return "table"
    return "table" if last in TABLES else "text"


def kind_of_all(files: Sequence[str]) -> str:
    """Return the kind of data in one or several files: "text", "store" or "table".

    Raise ValueError for several files unless all are text, because only text files can be joined.
    """
    kinds = {kind_of(path) for path in files}
    if len(files) > 1 and kinds != {"text"}:
        raise ValueError(
            f"{', '.join(files)}: several files must all be text; pass a single table or store."
        )
    if "-" in files:
        check_piped()
    return kinds.pop()


def name_of_all(files: Sequence[str], name: str | None = None) -> str:
    """Return a name for several files in messages, such as "a.txt and 2 more".

    `name` replaces the name of the first file.
    """
    what = name or name_of(files[0])
    return what if len(files) == 1 else f"{what} and {len(files) - 1} more"


def open_data(
    files: Sequence[str],
    reading: Reading,
    phases: Phases,
    request: DataRequest | None = None,
    name: str | None = None,
) -> RankingData:
    """Read LETOR text (one or several files), a table or a store as a RankingData."""
    request = request or DataRequest()
    kind = kind_of_all(files)
    what = name_of_all(files, name)
    with phases.reading(what) as progress:
        if kind == "store":
            data = RankingData.open(files[0])
            names = zip(data.feature_names or (), request.feature_names or (), strict=False)
            for number, (own, other) in enumerate(names, 1):
                if own != other:
                    raise ValueError(
                        f"{files[0]}: feature {number} is called {own!r}, but {other!r} in the "
                        "model; use data with the features of the model."
                    )
            return data
        if kind == "table":
            with naming(files[0]):
                return _read_table(files[0], reading, request)
        text = _read_text(files, reading, request, progress)
    if text.qid is None and text.group is None and len(text.y) > 0:
        if request.queries:
            warn_of_one_query(what, request.group)
        text = text._replace(group=[len(text.y)])
    with phases.phase("group", "documents by query"), naming(what):
        return text.to_data(reading.n_jobs)


def open_any_size(
    files: Sequence[str],
    reading: Reading,
    phases: Phases,
    request: DataRequest | None = None,
    name: str | None = None,
) -> RankingData:
    """Read text, a table or a store (data set on disk) as a RankingData.

    If a store is larger than memory, its feature matrix stays on disk.
    """
    if len(files) > 1 or kind_of(files[0]) != "store":
        return open_data(files, reading, phases, request, name)
    with phases.reading(files[0]):
        return open_if_it_fits(files[0])


def open_held_out(
    name: Literal["valid", "test"],
    path: str | None,
    group: str | None,
    reading: Reading,
    phases: Phases,
    request: DataRequest,
) -> RankingData | None:
    """Read the data of the flag --valid or --test; return None if it is not given."""
    if path is None:
        return None
    own = replace(reading, group=group)
    return open_data([path], own, phases, replace(request, group=f"{name}_group"))


def _read_table(path: str, reading: Reading, request: DataRequest) -> RankingData:
    comments = COLUMNS["comments"] if reading.comments is None else reading.comments
    frame = read_frame(path, texts=[comments])
    optional = {"label": not request.labels, "qid": not request.queries}
    # A column that the user names must exist.
    optional |= dict.fromkeys(reading.given & optional.keys(), False)
    if optional["label"] and reading.label not in frame.column_names:
        frame = frame.append_column(reading.label, [np.zeros(frame.num_rows)])
    qid = reading.qid or None
    if optional["qid"] and qid not in frame.column_names:
        qid = None
    features = request.feature_names
    if features is None and reading.features is not None:
        features = reading.features.split(",")
    extra = extra_columns(frame.column_names, reading, features or ())
    data = RankingData.from_frame(
        frame,
        label=reading.label,
        qid=qid,
        features=features,
        **extra,
        allow_nan=request.missing,
        n_jobs=reading.n_jobs,
    )
    if features is None:
        warn_of_roles(path, frame.column_names, {reading.label, qid, *extra.values()})
    return data


def warn_of_roles(path: str, names: Sequence[str], used: Collection[str | None]) -> None:
    """Warn about features that are named like labels, query ids, weights or comments.

    They may have been included by mistake, and could leak labels.
    """
    for name in ("label", "qid", *COLUMNS.values()):
        if name in names and name not in used:
            warn_of(
                f"{path}: the column {name!r} is used as a feature; if it is not one, list the "
                "features with --features."
            )


def extra_columns(
    names: Sequence[str], reading: Reading, features: Sequence[str]
) -> dict[str, str | None]:
    """Return the columns of a table that hold weights and comments, as a dict.

    Columns are given by flags, or have the names that `marginrank convert` writes.
    """
    columns = {}
    for role, usual in COLUMNS.items():
        given = getattr(reading, role)
        found = usual if usual in names and usual not in features else None
        columns[role] = found if given is None else given or None
    return columns


def _read_text(
    files: Sequence[str], reading: Reading, request: DataRequest, progress: Any
) -> LetorText:
    keep_dtype = "dtype" in reading.given or request.text_dtype == "given"
    missing = float("nan") if request.missing and "missing" not in reading.given else None
    with _of_the_owner(reading, request.owner):
        text = read_letor(
            files[0] if len(files) == 1 else list(files),
            n_features=request.n_features if reading.n_features is None else reading.n_features,
            zero_based=reading.zero_based,
            missing=missing_policy(reading.missing) if missing is None else missing,
            layout=reading.layout,
            dtype=reading.dtype if keep_dtype else "float64",
            comments=request.comments,
            group=reading.group,
            n_jobs=reading.n_jobs,
            progress=progress,
        )
    if keep_dtype or request.text_dtype == "widest":
        return text
    X = narrowed(text.X)
    if X is text.X:
        warn_of_digits(files[0])
    return text._replace(X=X)


def warn_of_digits(path: str) -> None:
    """Warn that features of a file become float64, because they have more digits than float32."""
    warn_of(
        f"{name_of(path)} has more digits than float32 holds, so features are stored as float64; "
        "pass --dtype float32 to round them and halve the size."
    )


def warn_of_one_query(what: str, group: str = "group") -> None:
    """Warn that text has no query ids, so all documents are one query."""
    warn_of(
        f"{what} has no qid, so all documents count as one query; if they are not, pass "
        f"{flag(group)}."
    )


@contextmanager
def _of_the_owner(reading: Reading, owner: str) -> Iterator[None]:
    """Context manager that names `owner` instead of --n-features in error messages.

    `owner`, such as "the model", is where the number of features comes from. Messages are unchanged
    if the user has passed --n-features.
    """
    try:
        yield
    except ParameterError as error:
        if error.parameter != "n_features" or reading.n_features is not None:
            raise
        raise ValueError(error.spelled(lambda m: f"the {m.code} features of {owner}")) from error


def missing_policy(policy: str) -> float | str:
    """Return the value of --missing as a float, or unchanged if it is not a number."""
    try:
        return float(policy)
    except ValueError:
        return policy


def data_summary(data: RankingData) -> dict[str, int]:
    """Return the numbers of documents, queries, features and pairs."""
    return {
        "documents": data.n_documents,
        "queries": data.n_queries,
        "features": data.n_features,
        "pairs": data.n_pairs,
    }
