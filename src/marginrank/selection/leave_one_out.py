"""Search over C by leave-one-query-out scores, which are estimated from one fit per C."""

from collections.abc import Iterator, Sequence
from typing import Any

from marginrank._utils.parameters import ParameterError, given
from marginrank._utils.types import Floats, Integers
from marginrank.data.ranking_data import RankingData
from marginrank.fit.linear import Parameters
from marginrank.fit.query_influence import LeaveOneOut, leave_one_out
from marginrank.fit.scaling import values_of
from marginrank.models.linear_model import LinearModel
from marginrank.models.parameters import recorded_parameters
from marginrank.selection.learner import PathLearner, PathModel
from marginrank.selection.linear_paths import LINEAR, LinearLearner

LOO = "loo"  # the value of `cv` that selects this method


class LeaveOneOutLearner(LinearLearner):
    """Fits a linear model for each C, and estimates scores of models fitted without one query.

    The search driver gets these leave-one-query-out scores instead of models.
    """

    def fit_paths(
        self,
        data: RankingData,
        parameters: Parameters,
        values: Floats,
        parts: Sequence[Integers | None],
        *,
        seed: int = 0,
    ) -> Iterator[PathModel]:
        """Yield leave-one-query-out scores instead of a model, for each C, from one fit per C."""
        for found in super().fit_paths(data, parameters, values, parts, seed=seed):
            chosen = self.with_value(parameters, float(values[found.step]))
            recorded = recorded_parameters("RankSVM", chosen)
            model = LinearModel(found.model, recorded, scale=values_of(found.scale))
            yield found._replace(model=leave_one_out(data, model))

    def predict(self, data: RankingData, model: Any, rows: Integers | None, threads: int) -> Floats:
        """Return the leave-one-query-out scores of all documents, or of the documents in `rows`."""
        left_out: LeaveOneOut = model
        return left_out.scores if rows is None else left_out.scores[rows]


def leave_one_out_learner(learner: PathLearner) -> PathLearner:
    """Return the PathLearner for ``cv="loo"``; raise ParameterError if models are not linear."""
    if learner is not LINEAR:
        raise ParameterError(given("cv", LOO), " is for RankSVMCV only; use a number of folds.")
    return LeaveOneOutLearner()
