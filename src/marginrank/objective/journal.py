"""What has happened to an objective so far."""

from dataclasses import dataclass
from typing import Any

from marginrank._utils.types import Floats


@dataclass
class Journal:
    """Shared by an objective and all that were made from it.

    Attributes
    ----------
    sweeps : float
        Sweeps over X; one over a sample counts as its share.
    w : ndarray or None
        The best weights that a solver has told of, for one who goes on without it.
    history : list or None
        What it has told; problems that it solves on the way have histories of their own.
    """

    sweeps: float = 0.0
    w: Floats | None = None
    history: list[Any] | None = None
