"""What memory a fit needs beside X, before it begins."""

from typing import Protocol

import numpy as np

from marginrank.data.ranking_data import RankingData
from marginrank.objective.objective import MANY_FEATURES
from marginrank.operators.parts.streamed import FitMemory
from marginrank.solvers.smooth.preconditioner import HESSIAN_FEATURES, MOST_DOCUMENTS_IF_HARD

SCRATCH_BYTES = 256  # for each document of a query that a thread has in work
VECTORS = 24  # with an entry a feature
BLOCKS = 64  # of documents, that have a sum a feature each
HESSIANS = 4  # a Hessian, and what is made of it
DOCUMENT_SPACE = 3  # matrices with a row and a column for each document


class Keeping(Protocol):
    """Parameters of a fit, that know what its solver keeps."""

    @property
    def state_bytes(self) -> int:
        """What the solver keeps of each document."""


def fit_memory(data: RankingData, parameters: Keeping, threads: int) -> FitMemory:
    """Return what a fit to data that are left on disk needs beside X."""
    longest = int(np.sum(np.sort(data.queries.sizes)[-threads:]))
    return FitMemory(
        state=parameters.state_bytes * data.n_documents,
        scratch=SCRATCH_BYTES * longest,
        features=_bytes_of_features(data),
    )


def _bytes_of_features(data: RankingData) -> int:
    n, m = data.n_features, data.n_documents
    numbers = VECTORS * n
    if n <= MANY_FEATURES:
        numbers += BLOCKS * n
    if n <= HESSIAN_FEATURES:
        numbers += HESSIANS * n * n
    elif m <= MOST_DOCUMENTS_IF_HARD:  # X comes into memory, and products of its rows
        return 8 * (numbers + DOCUMENT_SPACE * m * m) + int(data.X.memory_bytes)
    return 8 * numbers
