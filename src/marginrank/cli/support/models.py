"""Reading of model files, and of data with the features of a model."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from marginrank._utils.threads import effective_threads
from marginrank.cli.flags.shared import Reading
from marginrank.cli.support.data import DataRequest, open_data
from marginrank.cli.support.files import regular_file
from marginrank.cli.support.progress import Phases
from marginrank.data import RankingData
from marginrank.models import (
    AdditiveModel,
    FusionModel,
    KernelModel,
    LinearModel,
    read_any_model,
)

Model = LinearModel | AdditiveModel | KernelModel


def load(path: str) -> Model:
    """Read a model from a file or a pipe."""
    with regular_file(path) as file:
        model = read_any_model(file)
    if isinstance(model, FusionModel):
        raise ValueError(
            f"{path} is a fusion model, which combines runs and cannot score data; in Python, call "
            "load_model(path).fuse(runs)."
        )
    return model


def open_data_for(
    model: Model,
    files: Sequence[str],
    reading: Reading,
    phases: Phases,
    *,
    labels: bool = True,
    queries: bool = True,
    comments: bool = False,
) -> RankingData:
    """Return data that have the features of `model`; raise ValueError if they have others.

    `labels` and `queries` say whether labels and query ids are required.
    """
    if "features" in reading.given and model.feature_names is not None:
        raise ValueError(
            "--features is given, but the model knows the names of its features; drop --features."
        )
    if reading.n_features not in (None, model.n_features):
        raise ValueError(
            f"--n-features {reading.n_features} is given, but the model has {model.n_features} "
            "features; drop --n-features."
        )
    request = DataRequest(
        model.n_features,
        model.feature_names,
        labels=labels,
        queries=queries,
        comments=comments,
        missing=isinstance(model, AdditiveModel),
    )
    return open_data(files, reading, phases, request)


def scores(model: Model, data: RankingData, n_jobs: int | None = None) -> Any:
    """Return the score of each document, in row order; raise ValueError for NaN and infinity."""
    if not isinstance(model, LinearModel):
        values = model.scores(data.X)
    elif data.n_features != model.coef.size:
        raise ValueError(
            f"the data has {data.n_features} features, but the model has {model.coef.size}; use "
            "data with the features it was trained on."
        )
    else:
        values = data.matrix.dot(model.coef, None, effective_threads(n_jobs))
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(
            f"the score of document {bad[0] + 1} (the first is 1) is {values[bad[0]]}, because its "
            "features or the weights are too large; scale the features and train again."
        )
    return values
