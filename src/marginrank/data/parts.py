"""What a data set consists of once it is checked and grouped."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from marginrank._utils.types import Floats
from marginrank.data.queries import Queries
from marginrank.data.store.stored_features import StoredFeatures


class DataParts(NamedTuple):
    """The parts of a :class:`~marginrank.RankingData`, which has them as attributes."""

    X: Any
    y: NDArray[Any]
    queries: Queries
    query_ids: NDArray[Any]
    sample_weight: Floats | None
    query_weight: Floats | None
    feature_names: list[str] | None
    comments: Sequence[str] | None
    cost: Floats | None = None
    stored: StoredFeatures | None = None  # where X is on disk, if it comes from there
    has_nan: bool = False
