"""Memory alignment of arrays, which the native kernels require.

An array received by a worker of a cluster is a view of the message and may begin at any byte.
Compiled code must not read float64 from an odd address.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp


def aligned(value: Any) -> Any:
    """Return an array or CSR matrix with aligned memory, copied if it is not; else the argument."""
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy()
    if sp.issparse(value) and value.format == "csr":
        for name in ("data", "indices", "indptr"):
            setattr(value, name, aligned(getattr(value, name)))
    return value


class AlignedWhenUnpickled:
    """Base class of objects whose attributes are aligned arrays again after unpickling."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: aligned(value) for name, value in state.items()})
