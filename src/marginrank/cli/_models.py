"""Models, and data with their features."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from marginrank.cli._data import Wanted, open_data
from marginrank.cli._options import Reading
from marginrank.cli._progress import Phases

if TYPE_CHECKING:
    from marginrank import RankingData, RankSVM


def load(path: str) -> "RankSVM":
    """Read a model file."""
    from marginrank import load_model

    return load_model(path)


def feature_names(model: "RankSVM") -> list[str] | None:
    """Return the names of the features of a model, if it has them."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else list(names)


def open_data_for(
    model: "RankSVM",
    files: Sequence[str],
    reading: Reading,
    phases: Phases,
    **wanted: bool,
) -> "RankingData":
    """Read data with the features of `model`."""
    n_features, names = model.n_features_in_, feature_names(model)
    return open_data(files, reading, phases, Wanted(n_features, names, **wanted))


def scores(model: "RankSVM", data: "RankingData") -> Any:
    """Return the score of each document."""
    with _names_known():
        return model.predict(data.X)


def ranks(model: "RankSVM", data: "RankingData") -> Any:
    """Return the rank of each document."""
    with _names_known():
        return model.rank(data.X, qid=data.qid)


def _names_known() -> Any:
    """Silence scikit-learn, which cannot see that the columns were chosen by their names."""
    return warnings.catch_warnings(action="ignore", category=UserWarning)
