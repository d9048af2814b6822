"""RankSVM on a Dask cluster: exact fits on data larger than a machine."""

from marginrank._base.optional import require

for _module in ("distributed", "dask.dataframe"):
    require(_module, "dask")

from marginrank.dask.metrics import metric  # noqa: E402
from marginrank.dask.rank_svm import DaskRankSVM, DaskSparseRankSVM  # noqa: E402

__all__ = ["DaskRankSVM", "DaskSparseRankSVM", "metric"]
