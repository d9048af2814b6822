"""Where a fit computes: on the host with the native kernels, or with PyTorch on a device."""

from typing import Any, NamedTuple

from marginrank._utils.memory import readable
from marginrank._utils.optional import require
from marginrank._utils.parameters import Mention, ParameterError, given
from marginrank.data.ranking_data import RankingData
from marginrank.objective.protocols import Matrix
from marginrank.operators import matrix_of

# Launching the operations of a product takes a card about a millisecond, in which the native
# kernels read about this much of X.
SMALL_BYTES = 16 << 20


class Place(NamedTuple):
    """Where a fit is to compute.

    Attributes
    ----------
    device : str or None
        The parameter of that name.
    tensor : Tensor or None
        X, if it was given as a tensor.
    """

    device: str | None = None
    tensor: Any = None

    @property
    def name(self) -> str | None:
        """The device to compute on; None for the native kernels.

        A tensor on a card is used where it is, unless it is so small that the host is faster.
        """
        if self.device is not None:
            return self.device
        if self.tensor is None or self.tensor.device.type == "cpu":
            return None
        is_small = self.tensor.numel() * self.tensor.element_size() < SMALL_BYTES
        return None if is_small else str(self.tensor.device)


HERE = Place()  # the native kernels


def matrix_at(data: RankingData, place: Place) -> Matrix:
    """Return X of some data as the kernels of a place hold it."""
    if place.name is None:
        return matrix_of(data)
    torch = require("torch", "torch")
    from marginrank.operators.torch.matrix import TorchMatrix, bytes_needed

    device = _existing(torch, place.name)
    _refuse_another(device, place)
    needed = bytes_needed(data, has_features=place.tensor is not None)
    free = free_bytes(torch, device)
    if free is not None and needed > free:
        raise ValueError(
            f"the data need {readable(needed)} on {device}, where {readable(free)} are free; fit "
            "them on the host with device=None, or on several cards with marginrank.dask."
        )
    return TorchMatrix.of(data, device, place.tensor)


def refuse_limit(place: Place) -> None:
    """Refuse to leave X on disk and to bring it to a device."""
    if place.device is not None:
        raise ParameterError(
            given("device", place.device),
            " needs all of X there, and with a ",
            Mention("memory_limit"),
            " it stays on disk; leave one of them out.",
        )


def free_bytes(torch: Any, device: Any) -> int | None:
    """Return the memory that is free on a card; None on the host."""
    if device.type != "cuda":
        return None
    free: int = torch.cuda.mem_get_info(device)[0]
    return free


def _existing(torch: Any, name: str) -> Any:
    """Return a device that there is."""
    device = torch.device(name)
    if device.type == "cpu":
        return device
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    number = device.index or 0
    if number >= count:
        found = "no card" if count == 0 else f"{count} card(s), from cuda:0 on"
        raise ParameterError(
            given("device", name), f" does not exist: PyTorch finds {found}; use another, or None."
        )
    return torch.device("cuda", number)


def _refuse_another(device: Any, place: Place) -> None:
    """Refuse a tensor that is on another card than the one to compute on."""
    tensor = place.tensor
    if tensor is not None and tensor.device.type != "cpu" and tensor.device != device:
        raise ParameterError(
            f"X is on {tensor.device} and ",
            given("device", place.device),
            "; bring X there, or leave the device out.",
        )
