"""Tensors of PyTorch in the place of arrays, known without importing it."""

import sys
from typing import Any

import numpy as np
import scipy.sparse as sp

NO_FLOAT64 = "mps"  # a device that cannot add in double precision


def is_tensor(values: Any) -> bool:
    """Tell whether this is a tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def on_host(values: Any, name: str) -> Any:
    """Return a tensor as an array, or as CSR; anything else as it is.

    The memory of a tensor on the CPU is shared. It is copied from elsewhere, or if the tensor is
    the negative or the conjugate of its memory.
    """
    if not is_tensor(values):
        return values
    check_tensor(values, name)
    here = values.cpu()
    if here.layout == _torch().sparse_csr:
        parts = here.values().resolve_neg(), here.col_indices(), here.crow_indices()
        return sp.csr_array(tuple(np.asarray(part) for part in parts), shape=tuple(here.shape))
    return here.resolve_neg().resolve_conj().numpy()


def check_tensor(values: Any, name: str) -> None:
    """Raise ValueError if a tensor cannot be computed with as it is."""
    torch = _torch()
    if values.device.type == NO_FLOAT64:
        raise ValueError(
            f"{name} is on {NO_FLOAT64}, which has no float64 to sum in; give {name}.cpu()."
        )
    if values.device.type == "meta":
        raise ValueError(f"{name} is a meta tensor without data; give one with values.")
    if values.requires_grad:
        raise ValueError(
            f"{name} requires grad, and a fit has no backward pass; give {name}.detach()."
        )
    if values.dtype in (torch.float16, torch.bfloat16):
        raise ValueError(
            f"{name} has dtype {values.dtype}, which is not supported; pass {name}.float()."
        )
    if values.layout not in (torch.strided, torch.sparse_csr):
        raise ValueError(
            f"{name} has the layout {values.layout}; give {name}.to_sparse_csr() or "
            f"{name}.to_dense()."
        )
    if values.layout == torch.strided and not values.is_contiguous():
        raise ValueError(f"{name} is not contiguous in memory; give {name}.contiguous().")


def check_same_device(**given: Any) -> None:
    """Raise ValueError if tensors are on several devices; arrays go with any."""
    places = {name: str(value.device) for name, value in given.items() if is_tensor(value)}
    for name, place in places.items():
        first = next(iter(places))
        if place != places[first]:
            raise ValueError(
                f"{first} is on {places[first]} and {name} on {place}; bring all tensors to one "
                "device."
            )


def _torch() -> Any:
    return sys.modules["torch"]
