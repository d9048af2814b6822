"""What a choice is among: models that are learned along C, and score documents."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from marginrank._utils.types import Floats, Integers
from marginrank.data.ranking_data import RankingData
from marginrank.models.fit_report import Closeness
from marginrank.selection.linear_paths import default_Cs, solve_paths


class Learned(Protocol):
    """The model of one part of the documents for one C."""

    @property
    def part(self) -> int:
        """Which of the parts."""

    @property
    def step(self) -> int:
        """Which C of the grid."""

    @property
    def result(self) -> Closeness:
        """How it was found."""

    @property
    def model(self) -> Any:
        """What the learner scores documents by."""


class Learner(ABC):
    """Learns models for all values of C, and scores documents by them.

    Attributes
    ----------
    search_tol : float
        How close models that are compared should come to their optimum, at least.
    n_points : int
        Length of a grid of C from the data.
    room : tuple of float or None
        By how much such a grid may go on beyond its lower and its upper end, as factors of C, where
        that is the best; then one parameter is chosen at a time. None if grids are tried in full.
    """

    search_tol: float
    n_points: int
    room: tuple[float, float] | None = None

    @abstractmethod
    def solve(
        self,
        data: RankingData,
        parameters: Any,
        Cs: Floats,
        parts: Sequence[Integers | None],
        *,
        seed: int,
    ) -> Iterator[Learned]:
        """Learn from each part for each C, and yield models as they are found."""

    @abstractmethod
    def default_Cs(
        self, data: RankingData, parameters: Any, n_points: int, rows: Integers | None = None
    ) -> Floats:
        """Return a grid of C, from where the regulariser outweighs the loss to where it is weak."""

    @abstractmethod
    def scores(self, data: RankingData, model: Any, rows: Integers | None, threads: int) -> Floats:
        """Return the scores of all documents, or of those in some rows."""


class Lines(Learner):
    """Linear models; one is its weights."""

    search_tol = 1e-5  # at 1e-4, metrics of a few queries still move
    n_points = 21

    def solve(
        self,
        data: RankingData,
        parameters: Any,
        Cs: Floats,
        parts: Sequence[Integers | None],
        *,
        seed: int,
    ) -> Iterator[Learned]:
        """Learn all side by side."""
        return solve_paths(data, parameters, Cs, parts, seed=seed)

    def default_Cs(
        self, data: RankingData, parameters: Any, n_points: int, rows: Integers | None = None
    ) -> Floats:
        """Return a grid by the curvature of the loss in each feature."""
        return default_Cs(data, parameters, n_points, rows)

    def scores(self, data: RankingData, model: Any, rows: Integers | None, threads: int) -> Floats:
        """Return Xw."""
        return data.matrix.dot(model, rows, threads)


LINES = Lines()
