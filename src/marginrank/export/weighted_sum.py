"""What is exported: a sum over named features, and the one that has a weight for each."""

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Term:
    """A feature with a weight that is not zero.

    Attributes
    ----------
    place : int
        Where the feature is among all features, from 0 on.
    name : str
        What it is called.
    weight : float
        What it is multiplied by.
    """

    place: int
    name: str
    weight: float


@dataclass(frozen=True)
class Sum(Generic[Entry]):
    """A score: offset + what each term adds.

    Attributes
    ----------
    name : str
        What to call the model: letters, digits and ``_``.
    features : tuple of str
        Names of all features.
    terms : tuple
        What is added, in the order of the features.
    offset : float
        What is added to every score.
    dialect : str or None
        The dialect that the target was asked for.
    """

    name: str
    features: tuple[str, ...]
    terms: tuple[Entry, ...]
    offset: float = 0.0
    dialect: str | None = None


class WeightedSum(Sum[Term]):
    """A score: offset + Σ weight · feature, where a feature that is missing counts as 0."""

    def listed(self) -> tuple[Term, ...]:
        """Return the terms, or one of weight 0 for systems that refuse to have none."""
        return self.terms or (Term(0, self.features[0], 0.0),)

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the features that have a weight."""
        return tuple(term.name for term in self.terms)


def terms_of(coef: np.ndarray, names: list[str]) -> tuple[Term, ...]:
    """Return the features whose weights are not zero."""
    return tuple(Term(k, names[k], float(coef[k])) for k in np.flatnonzero(coef).tolist())
