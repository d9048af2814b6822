"""Documents for an engine, and what it made of them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from marginrank._utils.types import Floats
from marginrank.export.numbers import FLOAT64_ACCURACY
from marginrank.export.registry import Target

Files = dict[str, bytes]


@dataclass(frozen=True)
class EngineDocuments:
    """Features of documents, as an engine gets them.

    Attributes
    ----------
    X : ndarray of float64, shape (n_documents, n_features)
        NaN where a feature is missing.
    names : tuple of str
        Names of the features.
    used : tuple of int
        BinPositions of the features with weights, at least one.
    """

    X: Floats
    names: tuple[str, ...]
    used: tuple[int, ...]

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each feature is."""
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
    """Scores of an export, and what computed them.

    Attributes
    ----------
    engine : str
        Name and version of the engine, or the name of the reference.
    scores : ndarray of float64, shape (n_documents,)
        The scores.
    is_reference : bool
        Whether a reference of the engine's arithmetic computed them, and not an engine.
    accuracy : float
        Largest difference from the model's scores that float64 explains, relative to their size.
    target : Target or None
        The target of the export.
    largest_sum : float
        Largest sum of absolute terms of a score, if known: terms that cancel cost digits.
    """

    engine: str
    scores: Floats
    is_reference: bool = False
    accuracy: float = FLOAT64_ACCURACY
    target: Target | None = None
    largest_sum: float = 0.0
