"""Matrices on each other."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp


def stacked(matrices: Sequence[Any]) -> Any:
    """Return the rows of all, as an array or as CSR."""
    if sp.issparse(matrices[0]):
        return sp.csr_array(sp.vstack(matrices, format="csr"))
    return np.concatenate(matrices)
