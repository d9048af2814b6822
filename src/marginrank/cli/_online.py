"""Online training, for train --online."""

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from marginrank.cli._data import Wanted, kind_of, missing_policy
from marginrank.cli._files import is_pipe, name_of
from marginrank.cli._options import Reading
from marginrank.cli._progress import Phases

if TYPE_CHECKING:
    from marginrank.data import RankingData
    from marginrank.data.formats.chunks import ChunkSource
    from marginrank.models import LinearModel
    from marginrank.training.online import OnlineParameters

OpenValid = Callable[[Wanted], "RankingData | None"]


def train_online(
    files: Sequence[str],
    reading: Reading,
    parameters: "OnlineParameters",
    open_valid: OpenValid,
    phases: Phases,
    *,
    chunk_documents: int | None,
    random_state: int,
    verbose: bool,
) -> tuple["LinearModel", "RankingData | None", dict[str, int]]:
    """Fit on files that need not fit in memory; return model, validation data and counts."""
    from marginrank.models import LinearModel
    from marginrank.solvers import StopReason
    from marginrank.training.linear import seed_from
    from marginrank.training.online import contents, fit_online, stalled_message

    source = _source(files, reading, chunk_documents)
    with phases.phase("count"):
        found = contents(source, parameters)
    valid = open_valid(Wanted(found.n_features, source.feature_names))
    with phases.phase("solve"), phases.solving(verbose) as callback:
        outcome = fit_online(
            source,
            parameters,
            stream=source.is_text,
            found=found,
            seed=seed_from(random_state),
            validation=valid if parameters.early_stopping else None,
            callback=callback,
        )
    if outcome.stop is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    message = stalled_message(outcome)
    if message is not None:
        warnings.warn(message, stacklevel=1)
    model = LinearModel.from_online(outcome, parameters, random_state, source.feature_names)
    counts = {
        "documents": found.n_documents,
        "queries": found.n_queries,
        "features": found.n_features,
        "pairs": found.n_pairs,
    }
    return model, valid, counts


def _source(files: Sequence[str], reading: Reading, chunk_documents: int | None) -> "ChunkSource":
    from marginrank.data.formats.chunks import CHUNK_DOCUMENTS, ChunkSource

    size = CHUNK_DOCUMENTS if chunk_documents is None else chunk_documents
    kinds = {kind_of(path) for path in files}
    if "table" in kinds or (len(files) > 1 and kinds != {"text"}):
        raise ValueError(
            f"{', '.join(files)}: --online reads text files or a single store; convert the rest."
        )
    for path in filter(is_pipe, files):
        raise ValueError(f"{name_of(path)} can be read only once, but --online reads it again.")
    if reading.group is not None:
        raise ValueError("--group is given, but --online needs a qid on every line.")
    if kinds == {"store"}:
        return ChunkSource(files[0], chunk_documents=size)
    return ChunkSource(
        list(files),
        chunk_documents=size,
        n_features=reading.n_features,
        zero_based=reading.zero_based,
        missing=missing_policy(reading.missing),
        layout=reading.layout,
        dtype=reading.dtype,
        n_jobs=reading.n_jobs,
    )
