"""What the estimators on a cluster share: everything but the fit."""

from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from marginrank._utils.types import Floats
from marginrank.dask.chunks import PART_BYTES
from marginrank.dask.clusters import find_client
from marginrank.dask.fit import AnyParameters, fit_on_dask, progress_on_dask
from marginrank.dask.loading import LoadedParts, load_parts
from marginrank.dask.scoring import (
    mean_over_parts,
    score_frame,
    score_rows,
    score_store,
)
from marginrank.dask.sources import is_array, is_frame, open_source, store_paths
from marginrank.data.stored_data import open_stored
from marginrank.estimators.base import BatchRanker
from marginrank.estimators.input import feature_names_of
from marginrank.fit.stream_progress import Watch
from marginrank.metrics import pairwise_accuracy
from marginrank.models import LinearModel

INSTEAD = {
    "group": "sizes of queries need an order of all rows; give qid",
    "pairs": "they are numbers of rows, which partitions do not have; fit RankSVM",
    "pair_weight": "it belongs to pairs; fit RankSVM",
    "memory_limit": "workers have limits of their own; drop it",
}


class DaskRanker(BatchRanker):
    """A linear ranker that learns and predicts on a Dask cluster."""

    _local: type[BatchRanker]  # the same in one process

    def to_local(self) -> BatchRanker:
        """Return the fitted model as an estimator for data in memory."""
        return self._local.from_linear_model(self.to_linear_model())

    def to_linear_model(self) -> LinearModel:
        """Return the fitted model as plain data, as model files hold it."""
        return replace(super().to_linear_model(), estimator=self._local.__name__)

    def _fit(
        self,
        X: Any,
        columns: dict[str, Any],
        parameters: AnyParameters,
        seed: int,
        client: Any,
        partitions: str,
    ) -> tuple[LinearModel, LoadedParts]:
        """Learn the weights."""
        client = find_client(client)
        loaded = load_parts(client, open_source(client, X, **columns), partitions)
        model = fit_on_dask(
            client,
            loaded,
            parameters,
            seed=seed,
            w0=self._start(loaded.n_features),
            **self._watch_on(client, loaded)._asdict(),
        )
        return model, loaded

    def _watch_on(self, client: Any, loaded: LoadedParts) -> Watch:
        """Return what a fit tells while it goes on."""
        if not self.verbose:
            return Watch()
        progress = progress_on_dask(client, loaded, self.tol)
        return Watch(progress.print_iteration, progress.on_read)

    def predict(self, X: Any) -> Any:
        """Return the scores Xw lazily, as a Dask collection.

        Parameters
        ----------
        X : dask.dataframe.DataFrame, dask.array.Array or list of store paths
            The documents. Of a dataframe, the columns of the fit are taken, by name.

        Returns
        -------
        dask.dataframe.Series or dask.array.Array
            A series for a dataframe. Nothing is computed yet.
        """
        self._require_model()
        coef: Floats = self.coef_
        if is_frame(X):
            names = self._features_in(X)
            return X.map_partitions(score_frame, coef, names, meta=("score", "float64"))
        if is_array(X):
            self._check_width(X.shape[1])
            X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
            none = np.empty(0)
            return X.map_blocks(score_rows, coef, drop_axis=1, dtype="float64", meta=none)
        paths = store_paths(X)
        if paths is None:
            raise TypeError(
                f"X is a {type(X).__name__} and must be a Dask dataframe, a Dask array or a list "
                "of store paths; for data in memory there is to_local().predict."
            )
        return self._predict_stores(paths)

    def _predict_stores(self, paths: list[str]) -> Any:
        import dask.array

        score = dask.delayed(score_store)
        blocks = []
        for path in paths:
            data = open_stored(path, verify=False)
            self._check_width(data.n_features)
            height = max(PART_BYTES // (8 * data.n_features), 1)
            for first in range(0, data.n_documents, height):
                last = min(first + height, data.n_documents)
                scores = score(path, first, last, self.coef_)
                blocks.append(
                    dask.array.from_delayed(scores, shape=(last - first,), dtype="float64")
                )
        return dask.array.concatenate(blocks)

    def _features_in(self, X: Any) -> list[str] | None:
        """Return the columns of a dataframe to take; None for all."""
        names = feature_names_of(self)
        if names is None:
            self._check_width(len(X.columns))
            return None
        missing = [name for name in names if name not in X.columns]
        if missing:
            raise ValueError(f"X has no column {missing[0]!r}, which is a feature of the fit.")
        return names

    def _check_width(self, n_features: int) -> None:
        if n_features != self.n_features_in_:
            raise ValueError(
                f"X has {n_features} features, but the fit had {self.n_features_in_}; give those."
            )

    def rank(self, X: Any, *, qid: Any = None, group: Any = None) -> NoReturn:
        """Refuse: ranks are made in memory.

        Parameters
        ----------
        X, qid, group
            As in :meth:`RankSVM.rank`.
        """
        raise NotImplementedError(
            "rank works in memory; call to_local().rank on a partition, such as in map_partitions."
        )

    def score(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        client: Any = None,
        partitions: str = "as_is",
    ) -> float:
        """Return the pairwise accuracy of :meth:`predict`.

        Parameters
        ----------
        X, y, qid, sample_weight, client, partitions
            As in :meth:`fit`.
        group
            Not taken.

        Returns
        -------
        float
            See :func:`~marginrank.metrics.pairwise_accuracy`.
        """
        self._require_model()
        check_dask_arguments(group=group)
        client = find_client(client)
        columns = {"y": y, "qid": qid, "sample_weight": sample_weight}
        loaded = load_parts(client, open_source(client, X, **columns), partitions)
        self._check_width(loaded.n_features)
        return mean_over_parts(client, loaded, pairwise_accuracy, self.coef_)


def check_dask_arguments(**given: Any) -> None:
    """Raise ValueError for what belongs to data of one process."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} does not go with a Dask cluster: {INSTEAD[name]}.")
