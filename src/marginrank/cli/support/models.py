"""Models, and data with their features."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from marginrank.cli.support.data import Wanted, open_data
from marginrank.cli.support.files import regular_file
from marginrank.cli.support.options import Reading
from marginrank.cli.support.progress import Phases

if TYPE_CHECKING:
    from marginrank.data import RankingData
    from marginrank.models import AdditiveModel, KernelModel, LinearModel

    Model = LinearModel | AdditiveModel | KernelModel


def load(path: str) -> "Model":
    """Read a model file, also from a pipe."""
    from marginrank.models import read_any_model

    with regular_file(path) as file:
        return read_any_model(file)


def open_data_for(
    model: "Model",
    files: Sequence[str],
    reading: Reading,
    phases: Phases,
    *,
    labels: bool = True,
    queries: bool = True,
) -> "RankingData":
    """Read data with the features of `model`."""
    if "features" in reading.given and model.feature_names is not None:
        raise ValueError("--features is given, but the model names its features; drop it.")
    if reading.n_features not in (None, model.n_features):
        raise ValueError(
            f"--n-features {reading.n_features} is given, but the model has {model.n_features} "
            "features; drop it."
        )
    from marginrank.models import AdditiveModel

    wanted = Wanted(
        model.n_features,
        model.feature_names,
        labels=labels,
        queries=queries,
        missing=isinstance(model, AdditiveModel),
    )
    return open_data(files, reading, phases, wanted)


def scores(model: "Model", data: "RankingData", n_jobs: int | None = None) -> Any:
    """Return the score of each document, in the order of the rows; all of them finite."""
    import numpy as np

    values = _scores(model, data, n_jobs)
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(
            f"the score of document {bad[0] + 1} (the first is 1) is {values[bad[0]]}: its "
            "features or the model's weights are too large; scale the features and train again."
        )
    return values


def _scores(model: "Model", data: "RankingData", n_jobs: int | None) -> Any:
    from marginrank._utils.threads import effective_threads
    from marginrank.models import LinearModel

    if not isinstance(model, LinearModel):
        return model.scores(data.X)
    if data.n_features != model.coef.size:
        raise ValueError(
            f"the data has {data.n_features} features, but the model {model.coef.size}; use data "
            "with the features it was trained on."
        )
    return data.matrix.dot(model.coef, None, effective_threads(n_jobs))


def ranks(model: "Model", data: "RankingData", n_jobs: int | None = None) -> Any:
    """Return the rank of each document."""
    from marginrank.metrics.ranking import ranks as ranks_of

    return ranks_of(scores(model, data, n_jobs), qid=data.qid)
