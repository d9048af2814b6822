"""Interface between a search and the models it fits, along a grid of one parameter such as C."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from marginrank._utils.types import Floats, Integers
from marginrank.data.ranking_data import RankingData
from marginrank.fit.scaling import Scale
from marginrank.models.fit_report import Closeness


class PathModel(NamedTuple):
    """A model fitted to one set of training rows with one value of the grid, such as one C."""

    part: int  # index of the part
    step: int  # index of the value on the grid
    result: Closeness  # result of the solver; objective and gap are as in a single fit
    model: Any  # the model, passed to `predict`
    scale: Scale | None = None  # scale of the features


class PathLearner(ABC):
    """Base class: fits models along a grid of one parameter such as C, and predicts scores."""

    parameter = "C"
    search_tol: float  # smallest `tol` of candidates: closer fits hardly change their scores
    n_points: int  # length of the default grid
    # Factors by which a default grid may be extended below and above while its best value is at an
    # end. With such factors, one parameter is searched at a time; with None, all combinations are.
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
        """Fit one model per set of training rows and grid value; yield models as they are found.

        `parts` has the sets of training rows, such as one per fold; None stands for all rows.
        `values` is the ascending grid; the models of one set of rows come in its order.
        `parameters` has all other parameters. `seed` is for the samples that speed up the fits.
        """

    @abstractmethod
    def default_grid(
        self, data: RankingData, parameters: Any, n_points: int, rows: Integers | None = None
    ) -> Floats:
        """Return a grid of `n_points` values of the parameter, computed from `rows` of X and y."""

    @abstractmethod
    def predict(self, data: RankingData, model: Any, rows: Integers | None, threads: int) -> Floats:
        """Return the scores of the documents in `rows` by a fitted model; None stands for all."""

    def with_value(self, parameters: Any, value: float) -> Any:
        """Return `parameters` with the parameter of the grid, such as C, set to `value`."""
        return replace(parameters, C=value, lam=None)
