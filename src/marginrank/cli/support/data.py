"""Data by the kind of its path: LETOR text, a table, or a store."""

import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from marginrank._utils.parameters import ParameterError
from marginrank.cli.support.files import name_of, naming
from marginrank.cli.support.flags import flag
from marginrank.cli.support.options import COLUMNS, Reading
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.streams import check_piped

if TYPE_CHECKING:
    from marginrank import RankingData
    from marginrank.fit.inputs import Opened
    from marginrank.io.letor import LetorText

TABLES = (".parquet", ".feather", ".jsonl", ".csv", ".tsv")
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
KINDS = ("text", "store", "table")


@dataclass(frozen=True)
class Wanted:
    """What a command wants of the data: the features of a model, and what it can do without.

    The type of the features of text is as --dtype says; where that is not given, it may also be the
    "widest", or the "smallest" that holds every digit.
    """

    n_features: int | None = None
    feature_names: Sequence[str] | None = None
    comments: bool = False
    text_dtype: Literal["given", "widest", "smallest"] = "given"
    labels: bool = True
    queries: bool = True
    missing: bool = False  # whether NaN may stay
    group: str = "group"  # the parameter that gives the sizes of the queries


def kind_of(path: str) -> str:
    """Return "text", "store" or "table"."""
    if path == "-":
        return "text"
    if Path(path).is_dir():
        return "store"
    *others, last = Path(path.lower()).suffixes or [""]
    if last in COMPRESSED and others[-1:] in ([".csv"], [".tsv"]):
        return "table"
    return "table" if last in TABLES else "text"


def open_data(
    files: Sequence[str],
    reading: Reading,
    phases: Phases,
    wanted: Wanted | None = None,
    name: str | None = None,
) -> "RankingData":
    """Read data of any kind, to be called `name`; several text files are read as one."""
    wanted = wanted or Wanted()
    kind = kind_of_all(files)
    what = name_of_all(files, name)
    with phases.reading(what) as progress:
        if kind == "store":
            return _open_store(files[0], wanted)
        if kind == "table":
            with naming(files[0]):
                return _read_table(files[0], reading, wanted)
        text = _read_text(files, reading, wanted, progress)
    if text.qid is None and text.group is None and len(text.y) > 0:
        if wanted.queries:
            warn_of_one_query(what, wanted.group)
        text = text._replace(group=[len(text.y)])
    with phases.phase("group"), naming(what):
        return text.to_data(reading.n_jobs)


def kind_of_all(files: Sequence[str]) -> str:
    """Return "text", "store" or "table" of files that are to be read as one."""
    kinds = {kind_of(path) for path in files}
    if len(files) > 1 and kinds != {"text"}:
        raise ValueError(
            f"{', '.join(files)}: only text files can be read as one; give a single table or store."
        )
    if "-" in files:
        check_piped()
    return kinds.pop()


def name_of_all(files: Sequence[str], name: str | None = None) -> str:
    """Return what to call files that are read as one; `name` is that of the first."""
    what = name or name_of(files[0])
    return what if len(files) == 1 else f"{what} and {len(files) - 1} more"


def open_to_fit(
    files: Sequence[str],
    reading: Reading,
    phases: Phases,
    *,
    wanted: Wanted | None = None,
    memory_limit: str | None = None,
) -> "Opened":
    """Read data to learn from; those of a store stay on disk if they are larger than memory."""
    from marginrank.fit.inputs import Opened, open_documents

    if [kind_of(path) for path in files] != ["store"]:
        return Opened(open_data(files, reading, phases, wanted))
    with phases.reading(files[0]):
        opened = open_documents(files[0], memory_limit)
    if opened.message is not None:
        warnings.warn(opened.message, stacklevel=1)
    return opened


def open_judged(
    name: Literal["valid", "test"],
    path: str | None,
    group: str | None,
    reading: Reading,
    phases: Phases,
    wanted: Wanted,
) -> "RankingData | None":
    """Read what the flag `name` gives to judge models of other data by, if anything."""
    if path is None:
        return None
    own = replace(reading, group=group)
    return open_data([path], own, phases, replace(wanted, group=f"{name}_group"))


def _open_store(path: str, wanted: Wanted) -> "RankingData":
    from marginrank import RankingData

    data = RankingData.open(path)
    if data.feature_names and wanted.feature_names:
        _check_names(path, data.feature_names, wanted.feature_names)
    return data


def _check_names(path: str, names: Sequence[str], wanted: Sequence[str]) -> None:
    pairs = zip(names, wanted, strict=False)
    for number, (name, other) in enumerate(pairs, 1):
        if name != other:
            raise ValueError(f"{path}: feature {number} is {name!r}, but {other!r} in the model.")


def _read_table(path: str, reading: Reading, wanted: Wanted) -> "RankingData":
    from marginrank import RankingData
    from marginrank.io.table_files import read_frame

    comments = COLUMNS["comments"] if reading.comments is None else reading.comments
    frame = read_frame(path, texts=[comments])
    may_lack = {"label": not wanted.labels, "qid": not wanted.queries}
    may_lack |= dict.fromkeys(reading.given & may_lack.keys(), False)  # a column that was asked for
    if may_lack["label"] and reading.label not in frame.column_names:
        import numpy as np

        frame = frame.append_column(reading.label, [np.zeros(frame.num_rows)])
    qid = reading.qid or None
    if may_lack["qid"] and qid not in frame.column_names:
        qid = None
    features = wanted.feature_names
    if features is None and reading.features is not None:
        features = reading.features.split(",")
    extra = extra_columns(frame.column_names, reading, features or ())
    data = RankingData.from_frame(
        frame,
        label=reading.label,
        qid=qid,
        features=features,
        **extra,
        allow_nan=wanted.missing,
        n_jobs=reading.n_jobs,
    )
    if features is None:
        warn_of_roles(path, frame.column_names, {reading.label, qid, *extra.values()})
    return data


def warn_of_roles(path: str, names: Sequence[str], used: Collection[str | None]) -> None:
    """Tell of features whose names are those of labels and the like: they may give them away."""
    for name in ("label", "qid", *COLUMNS.values()):
        if name in names and name not in used:
            warnings.warn(
                f"{path}: the column {name!r} is taken as a feature; name the right ones with "
                "--features if it is none.",
                stacklevel=1,
            )


def extra_columns(
    names: Sequence[str], reading: Reading, features: Sequence[str]
) -> dict[str, str | None]:
    """Return the columns of weights and comments: as told, or those that convert writes."""
    columns = {}
    for role, usual in COLUMNS.items():
        told = getattr(reading, role)
        found = usual if usual in names and usual not in features else None
        columns[role] = found if told is None else told or None
    return columns


def _read_text(
    files: Sequence[str], reading: Reading, wanted: Wanted, progress: Any
) -> "LetorText":
    from marginrank.io.letor import read_letor
    from marginrank.io.precision import narrowed

    told = "dtype" in reading.given or wanted.text_dtype == "given"
    with _of_the_model(reading):
        text = read_letor(
            files[0] if len(files) == 1 else list(files),
            n_features=wanted.n_features if reading.n_features is None else reading.n_features,
            zero_based=reading.zero_based,
            missing=_missing_in_text(reading, wanted),
            layout=reading.layout,
            dtype=reading.dtype if told else "float64",
            comments=wanted.comments,
            group=reading.group,
            n_jobs=reading.n_jobs,
            progress=progress,
        )
    if told or wanted.text_dtype == "widest":
        return text
    X = narrowed(text.X)
    if X is text.X:
        warn_of_digits(files[0])
    return text._replace(X=X)


def warn_of_digits(path: str) -> None:
    """Tell that features take more room than they might."""
    warnings.warn(
        f"{name_of(path)} has more digits than float32 holds, so that they are kept as "
        "float64, in twice the room; give --dtype float32 to round them.",
        stacklevel=1,
    )


def warn_of_one_query(what: str, group: str = "group") -> None:
    """Tell that text does not say where queries end."""
    warnings.warn(
        f"{what} has no qid: all documents are taken as one query; give {flag(group)} "
        "if they are not.",
        stacklevel=1,
    )


@contextmanager
def _of_the_model(reading: Reading) -> Iterator[None]:
    """Say whose number of features is exceeded, where no flag gave it."""
    try:
        yield
    except ParameterError as error:
        if error.parameter != "n_features" or reading.n_features is not None:
            raise
        raise ValueError(error.spelled(lambda m: f"the {m.code} features of the model")) from error


def _missing_in_text(reading: Reading, wanted: Wanted) -> float | str:
    """Return the value for missing entries: the option, or NaN if the model accepts NaN."""
    if wanted.missing and "missing" not in reading.given:
        return float("nan")
    return missing_policy(reading.missing)


def missing_policy(policy: str) -> float | str:
    """Return a number if it is one."""
    try:
        return float(policy)
    except ValueError:
        return policy


def data_summary(data: "RankingData") -> dict[str, int]:
    """Return the counts that every command shows."""
    return {
        "documents": data.n_documents,
        "queries": data.n_queries,
        "features": data.n_features,
        "pairs": data.n_pairs,
    }
