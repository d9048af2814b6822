"""Documents for an engine, and its scores."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from marginrank._utils.types import Floats
from marginrank.export.numbers import FLOAT64_ACCURACY
from marginrank.export.registry import Target

Files = dict[str, bytes]


@dataclass(frozen=True)
class EngineDocuments:
    """Documents as an engine reads them."""

    X: Floats  # documents × features, NaN where a feature is missing
    names: tuple[str, ...]  # of the features
    used: tuple[int, ...]  # positions of the features in use, at least one

    @cached_property
    def places(self) -> dict[str, int]:
        """Position of each feature."""
        return {name: place for place, name in enumerate(self.names)}

    def column(self, name: str) -> Floats:
        """Return a feature, 0 where it is missing."""
        values = self.X[:, self.places[name]]
        return np.where(np.isnan(values), 0.0, values)

    def filled(self) -> Floats:
        """Return all features, 0 where one is missing."""
        return np.where(np.isnan(self.X), 0.0, self.X)


@dataclass(frozen=True)
class EngineRun:
    """Scores of an export, and the engine that computed them."""

    engine: str  # name and version, or the name of the reference
    scores: Floats
    is_reference: bool = False  # an implementation of the engine's arithmetic, not the engine
    accuracy: float = FLOAT64_ACCURACY  # relative difference from predict due to rounding
    target: Target | None = None
    largest_sum: float = 0.0  # of absolute terms of a score, if known: cancellation costs digits
