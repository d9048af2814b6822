"""Memory alignment of arrays, which the native kernels require.

An array received by a worker of a cluster is a view of the message and may begin at any byte.
Compiled code must not read float64 from an odd address.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp


def aligned(value: Any) -> Any:
    """Return a value whose arrays are aligned; unaligned arrays are copied."""
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy()
    if sp.issparse(value) and value.format == "csr":
        for name in ("data", "indices", "indptr"):
            setattr(value, name, aligned(getattr(value, name)))
    return value


class AlignedWhenUnpickled:
    """Base class that aligns the arrays among an object's attributes when it is unpickled."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: aligned(value) for name, value in state.items()})
