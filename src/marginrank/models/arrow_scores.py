"""Scores of Arrow data, of which no copy is made.

Arrow keeps features by column. Those of a few thousand documents at a time become rows, which stay
in cache until they are scored.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.types import Floats

BLOCK = 1 << 12  # documents at a time

Score = Callable[[NDArray[Any]], Floats]


def is_arrow(features: Any) -> bool:
    """Tell whether this is of pyarrow, which is not imported for it."""
    return type(features).__module__.partition(".")[0] == "pyarrow"


def column_names(batch: Any) -> list[str]:
    """Return the names of the columns of a RecordBatch or a Table; refuse what is none."""
    if not hasattr(batch, "num_rows"):
        raise TypeError(
            f"{type(batch).__name__} of pyarrow has no documents; give a RecordBatch, a Table, or "
            "an Array of lists."
        )
    names: list[str] = batch.schema.names
    return names


def scores_of_columns(batch: Any, names: Sequence[str], score: Score) -> Floats:
    """Return the scores of a RecordBatch or a Table, from those of rows with the named columns."""
    if hasattr(batch, "to_batches"):  # a Table, whose batches share its memory
        parts = [scores_of_columns(part, names, score) for part in batch.to_batches()]
        return np.concatenate(parts) if parts else np.zeros(0)
    scores = np.zeros(batch.num_rows)
    features = _selected(batch, names)
    for first in range(0, scores.size if names else 0, BLOCK):
        scores[first : first + BLOCK] = score(_rows(features.slice(first, BLOCK)))
    return scores


def _selected(batch: Any, names: Sequence[str]) -> Any:
    """Return columns by name."""
    given = batch.schema.names
    if len(set(given)) < len(given):
        for name in names:
            if given.count(name) > 1:
                raise ValueError(f"the Arrow batch has two columns {name!r}; rename one.")
    return batch.select(names)


def _rows(batch: Any) -> NDArray[Any]:
    """Return a few documents as rows."""
    try:
        rows: NDArray[Any] = batch.to_tensor(row_major=True).to_numpy()
    except (TypeError, NotImplementedError) as error:
        raise ValueError(_complaint(batch)) from error
    if rows.dtype in (np.float32, np.float64):
        return rows
    # Not of the tensor: Arrow makes large unsigned integers negative where others are signed.
    return np.stack([column.to_numpy() for column in batch.columns], axis=1).astype(np.float64)


def _complaint(batch: Any) -> str:
    """Say which column cannot be scored."""
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if column.null_count:
            return f"column {field.name!r} has nulls; put numbers there."
        if not _holds_numbers(field.type):
            return f"column {field.name!r} holds {field.type}; make it float32 or float64."
    return "the columns of the Arrow batch are of types that do not go together; cast them."


def _holds_numbers(kind: Any) -> bool:
    return str(kind).startswith(("float", "double", "int", "uint"))


def vectors_of(array: Any) -> NDArray[Any]:
    """Return an array of lists of one length as documents × features, in its own memory."""
    width = getattr(array.type, "list_size", None)
    if width is None:
        raise ValueError(
            f"an Arrow array of {array.type} has no features; give lists of one length, or a "
            "RecordBatch or Table with a column a feature."
        )
    kind = array.type.value_type
    if not _holds_numbers(kind) and str(kind) != "halffloat":
        raise ValueError(f"the Arrow array has lists of {kind}; make it float32 or float64.")
    if hasattr(array, "combine_chunks"):
        array = array.combine_chunks()
    values = array.flatten()
    if array.null_count or values.null_count:
        raise ValueError("the Arrow array has nulls; put numbers there.")
    numbers: NDArray[Any] = values.to_numpy(zero_copy_only=True)
    return numbers.reshape(len(array), width)
