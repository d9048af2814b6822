"""Interface of the learners that a search uses: they fit models over a grid of a parameter."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from marginrank._utils.types import Floats, Integers
from marginrank.data.ranking_data import RankingData
from marginrank.fit.scaling import Scale
from marginrank.models.fit_report import Closeness


class PathModel(NamedTuple):
    """A model that was fitted to one part of the rows, with one value of the grid."""

    part: int  # index of the part
    step: int  # index of the value on the grid
    result: Closeness  # result of the solver; objective and gap are as in a single fit
    model: Any  # the model, passed to `predict`
    scale: Scale | None = None  # scale of the features


class PathLearner(ABC):
    """Fits models for all values of one parameter, and predicts scores with them."""

    parameter = "C"
    search_tol: float  # smallest `tol` of candidates: closer fits hardly change their scores
    n_points: int  # length of the default grid
    # Factors by which a default grid may be extended below and above while its best value is at an
    # end; then one parameter is searched at a time. None if all values of all grids are tried.
    room: tuple[float, float] | None = None

    @abstractmethod
    def fit_paths(
        self,
        data: RankingData,
        parameters: Any,
        values: Floats,
        parts: Sequence[Integers | None],
        *,
        seed: int = 0,
    ) -> Iterator[PathModel]:
        """Fit a model to each part for each value, and yield models as they are found.

        `parameters` has all parameters except the one of the grid. `values` are ascending, and the
        models of one part come in their order. `parts` are rows to train on, None for all. `seed`
        is for the samples that speed up the fits.
        """

    @abstractmethod
    def default_grid(
        self, data: RankingData, parameters: Any, n_points: int, rows: Integers | None = None
    ) -> Floats:
        """Return the default grid of the parameter, computed from all documents or some rows."""

    @abstractmethod
    def predict(self, data: RankingData, model: Any, rows: Integers | None, threads: int) -> Floats:
        """Return the scores of a model on all documents, or on some rows."""

    def with_value(self, parameters: Any, value: float) -> Any:
        """Return the parameters with the grid's parameter set to `value`."""
        return replace(parameters, C=value, lam=None)
