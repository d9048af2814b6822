"""The order that scores give to documents."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginrank import _core
from marginrank._utils.threads import effective_threads
from marginrank.data.grouping import group_rows


def ranks(
    scores: NDArray[np.float64],
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> NDArray[np.int64]:
    """Return the rank of each document inside its query, 1 for the best.

    Documents with equal scores are ranked in the order of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from marginrank.metrics.ranks import ranks
    >>> ranks(np.array([0.1, 0.7, 0.4]), qid=["a", "b", "a"])
    array([2, 1, 1])
    """
    documents, _ = group_rows(len(scores), qid, group)
    order = _core.rank_documents(
        documents.grouped(scores), documents.offsets, effective_threads(n_jobs)
    )
    rank = np.empty(len(scores), dtype=np.int64)
    rank[order] = np.arange(1, len(scores) + 1) - np.repeat(documents.offsets[:-1], documents.sizes)
    return documents.by_row(rank)
