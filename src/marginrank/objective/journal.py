"""The history of an objective."""

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
        Best weights so far; used if the solver fails.
    history : list or None
        The iterations of the solver; problems solved on the way have histories of their own.
    """

    sweeps: float = 0.0
    w: Floats | None = None
    history: list[Any] | None = None
