"""RankSVM on a Dask cluster: exact fits to data larger than the memory of one machine.

The documents are divided into *parts* of whole queries, each on one worker. A *bundle* is a list of
parts on one worker; one Dask task computes all parts of a bundle. Tasks are pure functions, so
if a worker is lost, its results are computed again, bit for bit the same. For this reason, nothing
is pinned to a worker, scattered from the client or kept in an actor.

Estimators are imported when they are first used, so the command line fits on clusters without
scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from marginrank._utils.optional import require

if TYPE_CHECKING:
    from marginrank.dask.rank_svm import DaskRankSVM, DaskSparseRankSVM
    from marginrank.dask.scoring import metric

__all__ = ["DaskRankSVM", "DaskSparseRankSVM", "metric"]

for _module in ("distributed", "dask.dataframe"):
    require(_module, "dask")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'marginrank.dask' has no attribute {name!r}")
    module = "scoring" if name == "metric" else "rank_svm"
    return getattr(import_module(f"marginrank.dask.{module}"), name)
