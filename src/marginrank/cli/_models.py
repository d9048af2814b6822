"""Models, and data with their features."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from marginrank.cli._data import Wanted, open_data
from marginrank.cli._options import Reading
from marginrank.cli._progress import Phases

if TYPE_CHECKING:
    from marginrank.data import RankingData
    from marginrank.models import ForeignModel, LinearModel

    Model = LinearModel | ForeignModel


def load(path: str) -> "Model":
    """Read a model file of marginrank or of another library."""
    from marginrank.models import read_any_model

    return read_any_model(path)


def open_data_for(
    model: "Model",
    files: Sequence[str],
    reading: Reading,
    phases: Phases,
    **wanted: bool,
) -> "RankingData":
    """Read data with the features of `model`."""
    return open_data(
        files, reading, phases, Wanted(model.n_features, model.feature_names, **wanted)
    )


def scores(model: "Model", data: "RankingData") -> Any:
    """Return the score of each document, in the order of the rows."""
    from marginrank._threads import effective_threads
    from marginrank.models import ForeignModel

    if isinstance(model, ForeignModel):
        return model.scores(data.X)
    if data.n_features != model.coef.size:
        raise ValueError(
            f"the data has {data.n_features} features, but the model {model.coef.size}; use data "
            "with the features it was trained on."
        )
    return data.matrix.dot(model.coef, None, effective_threads(None))


def ranks(model: "Model", data: "RankingData") -> Any:
    """Return the rank of each document."""
    from marginrank.order import ranks as ranks_of

    return ranks_of(scores(model, data), data.qid)
