"""Aligned copies of arrays, because compiled code must not read misaligned float64.

An array that a Dask worker receives is a view of the network message, so its data may begin at an
odd address.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp


def aligned(value: Any) -> Any:
    """Return an array or CSR matrix in aligned memory, copied only if needed.

    Any other value is returned unchanged. The arrays of a CSR matrix are replaced in place.
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy()
    if sp.issparse(value) and value.format == "csr":
        for name in ("data", "indices", "indptr"):
            setattr(value, name, aligned(getattr(value, name)))
    return value


class AlignedWhenUnpickled:
    """Base class of objects that copy misaligned array attributes when they are unpickled."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: aligned(value) for name, value in state.items()})
