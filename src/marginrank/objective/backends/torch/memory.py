"""What memory a fit takes on a device, before it begins."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from marginrank.data.ranking_data import RankingData
from marginrank.objective.backends.torch.features import TILE_ENTRIES

POINTS = 2  # that a solver holds at a time
DOCUMENT_BYTES = 100  # of a point, beside what each bit of a level takes
BIT_BYTES = 12
EVALUATION_BYTES = 400  # of a document, while a point is made


def bytes_needed(data: RankingData, *, has_features: bool = False) -> int:
    """Return about what a fit takes of a device, beside X if that is there already."""
    X = data.X
    n_bits = (int(np.max(data.queries.n_levels, initial=1)) - 1).bit_length()
    of_document = POINTS * (BIT_BYTES * n_bits + DOCUMENT_BYTES) + EVALUATION_BYTES
    tile = 8 * min(TILE_ENTRIES, int(X.shape[0]) * int(X.shape[1]))
    return of_document * data.n_documents + tile + (0 if has_features else _bytes_of(X))


def _bytes_of(X: Any) -> int:
    """Return what X takes there; a sparse one has its transpose beside it."""
    if sp.issparse(X):
        return 2 * int(X.nnz) * (4 + int(X.dtype.itemsize))
    return int(X.shape[0] * X.shape[1] * X.dtype.itemsize)
