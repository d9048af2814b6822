"""The estimators DaskRankSVM and DaskSparseRankSVM."""

from dataclasses import replace
from typing import Any, NoReturn, Self

import numpy as np

from marginrank._utils.types import Floats
from marginrank.dask.chunks import PART_BYTES
from marginrank.dask.clusters import find_client
from marginrank.dask.fit import check_for_dask, fit_on_dask, progress_on_dask
from marginrank.dask.loading import WRONG_X, is_array, is_frame, load_parts, store_paths
from marginrank.dask.scoring import mean_over_parts, score_frame, score_rows, score_store
from marginrank.data.stored_data import open_stored
from marginrank.estimators.base import BatchRanker, check_seed, warn_of
from marginrank.estimators.input import feature_names_of, features_of
from marginrank.estimators.rank_svm import RankSVM
from marginrank.estimators.sparse_rank_svm import SparseRankSVM
from marginrank.fit.sparse import empty_message
from marginrank.fit.stream_progress import Watch
from marginrank.metrics import pairwise_accuracy
from marginrank.models import LinearModel

INSTEAD = {
    "group": "partitions have no order, which group sizes rely on; pass qid",
    "position": "it requires X in memory; use RankSVM",
    "context": "it requires position; use RankSVM",
    "monotonic_position": "it requires position; use RankSVM",
    "pairs": "pairs are row numbers, which partitions do not have; use RankSVM",
    "pair_weight": "it requires pairs; use RankSVM",
    "pair_margin": "it requires pairs; use RankSVM",
    "memory_limit": "workers have their own memory limits; drop memory_limit",
}


class DaskRanker(BatchRanker):
    """Base class of the linear estimators that fit and predict on a Dask cluster."""

    _local: type[BatchRanker]  # the estimator for data in memory

    def to_local(self) -> BatchRanker:
        """Return the fitted model as a RankSVM or SparseRankSVM, for data in memory."""
        return self._local.from_linear_model(self.to_linear_model())

    def to_linear_model(self) -> LinearModel:
        """Return the fitted model as a LinearModel, the object that model files store."""
        return replace(super().to_linear_model(), estimator=self._local.__name__)

    def _fit_on_cluster(self, X: Any, columns: dict[str, Any], client: Any, partitions: str) -> Any:
        """Fit on the cluster, set the fitted attributes, and return the checked parameters."""
        parameters = self._parameters()
        check_for_dask(parameters)
        seed = check_seed(self.random_state)
        client = find_client(client)
        loaded = load_parts(client, X, partitions, **columns)
        watch = Watch()
        if self.verbose:
            progress = progress_on_dask(client, loaded, self.tol)
            watch = Watch(progress.print_iteration, progress.on_read)
        start = self._start(loaded.n_features)
        model = fit_on_dask(client, loaded, parameters, seed=seed, w0=start, **watch._asdict())
        self._take_over(model, features_of(loaded))
        return parameters

    def predict(self, X: Any) -> Any:
        """Return the scores of the documents, Xw, as a lazy Dask collection.

        Parameters
        ----------
        X : dask.dataframe.DataFrame, dask.array.Array or list of store paths
            The documents. Features of a dataframe are selected by name.

        Returns
        -------
        dask.dataframe.Series or dask.array.Array
            The scores, not yet computed: a series for a dataframe, else an array.
        """
        self._require_model()
        coef: Floats = self.coef_
        if is_frame(X):
            names = feature_names_of(self)
            if names is None:
                self._check_width(len(X.columns))
            for name in names or ():
                if name not in X.columns:
                    raise ValueError(
                        f"X has no column {name!r}, which the fit used as a feature; add it."
                    )
            return X.map_partitions(score_frame, coef, names, meta=("score", "float64"))
        if is_array(X):
            self._check_width(X.shape[1])
            X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
            none = np.empty(0)
            return X.map_blocks(score_rows, coef, drop_axis=1, dtype="float64", meta=none)
        paths = store_paths(X)
        if paths is None:
            raise TypeError(WRONG_X.format(type(X).__name__, "to_local().predict"))
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
                block = dask.array.from_delayed(scores, shape=(last - first,), dtype="float64")
                blocks.append(block)
        return dask.array.concatenate(blocks)

    def _check_width(self, n_features: int) -> None:
        if n_features != self.n_features_in_:
            raise ValueError(
                f"X has {n_features} features, but the fit had {self.n_features_in_}; pass the "
                "features of the fit."
            )

    def rank(self, X: Any, *, qid: Any = None, group: Any = None) -> NoReturn:
        """Raise NotImplementedError: ranks are computed in memory, by ``to_local().rank``.

        Parameters
        ----------
        X, qid, group
            As in :meth:`RankSVM.rank`.
        """
        raise NotImplementedError(
            "rank needs data in memory; call to_local().rank on a partition, for example in "
            "map_partitions."
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
        """Return the pairwise accuracy of the scores that :meth:`predict` returns.

        Parameters
        ----------
        X, y, qid, sample_weight, client, partitions
            As in :meth:`fit`.
        group
            Not supported.

        Returns
        -------
        float
            Share of the pairs in the right order; see
            :func:`~marginrank.metrics.pairwise_accuracy`.
        """
        self._require_model()
        check_dask_arguments(group=group)
        client = find_client(client)
        columns = {"y": y, "qid": qid, "sample_weight": sample_weight}
        loaded = load_parts(client, X, partitions, **columns)
        self._check_width(loaded.n_features)
        return mean_over_parts(client, loaded, pairwise_accuracy, self.coef_)


def check_dask_arguments(**given: Any) -> None:
    """Raise ValueError if an argument is given that a Dask cluster does not support."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} is not supported on a Dask cluster: {INSTEAD[name]}.")


class DaskRankSVM(DaskRanker, RankSVM):
    """Linear RankSVM on a Dask cluster.

    Optimum, parameters, attributes and model files are the same as for
    :class:`~marginrank.RankSVM`. Documents stay on the workers; the result does not depend on the
    number of workers.

    Parameters
    ----------
    C, lam, loss, solver, tol, max_iter, pair_selection, pair_cost, margin, normalization, scale, \
device, warm_start, verbose, random_state
        As for :class:`~marginrank.RankSVM`.
    objective : {"pairs"}, default="pairs"
        Other objectives rank documents in memory; use :class:`~marginrank.RankSVM`.
    n_jobs : int, default=None
        Threads of the client, for samples; workers have their own threads.

    Attributes
    ----------
    coef_, scale_, objective_, gap_, stop_reason_, n_iter_, history_, n_pairs_, n_features_in_, \
feature_names_in_
        As for :class:`~marginrank.RankSVM`.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from marginrank import make_ranking
    >>> from marginrank.dask import DaskRankSVM
    >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=20, random_state=0)
    >>> X, y, qid = (da.from_array(a, chunks=(500, *a.shape[1:])) for a in (X, y, qid))
    >>> with Client(processes=False, dashboard_address=None) as client:
    ...     model = DaskRankSVM(C=0.01).fit(X, y, qid=qid, client=client)
    ...     accuracy = model.score(X, y, qid=qid, client=client)
    >>> accuracy > 0.8
    True
    """

    _local = RankSVM

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        propensity: Any = None,
        position: Any = None,
        context: Any = None,
        monotonic_position: bool = False,
        pairs: Any = None,
        pair_weight: Any = None,
        pair_margin: Any = None,
        memory_limit: Any = None,
        eval_set: Any = None,
        eval_group: Any = None,
        client: Any = None,
        partitions: str = "as_is",
    ) -> Self:
        """Fit the weights of the features to documents on a Dask cluster.

        Parameters
        ----------
        X : dask.dataframe.DataFrame, dask.array.Array or list of store paths
            The documents. Stores are folders that every worker can read, and bring labels, queries
            and weights. Columns of a dataframe that are named below are not features.
        y, qid : str, or Dask series or array
            Labels and queries: columns of X, or collections with the same partitions.
        sample_weight : str, or Dask series or array, optional
            Weights of the documents. The weight of a pair is the product of its documents' weights.
        query_weight : str, or Dask series or array, optional
            Weights of the queries, repeated for each document.
        propensity : str, or Dask series or array, optional
            Probability that a document was examined.
        group, position, context, monotonic_position, pairs, pair_weight, pair_margin, \
memory_limit, eval_set, eval_group
            Not supported: they need data in one process.
        client : distributed.Client, optional
            The cluster; by default the current client of this process.
        partitions : {"as_is", "by_query"}, default="as_is"
            A query must not be split over partitions. "as_is" raises ValueError if one is;
            "by_query" shuffles the documents first.

        Returns
        -------
        DaskRankSVM
            The fitted estimator.
        """
        check_dask_arguments(
            group=group,
            position=position,
            context=context,
            monotonic_position=monotonic_position or None,
            pairs=pairs,
            pair_weight=pair_weight,
            pair_margin=pair_margin,
            memory_limit=memory_limit,
            eval_set=eval_set,
            eval_group=eval_group,
        )
        weights = {"sample_weight": sample_weight, "query_weight": query_weight}
        columns = {"y": y, "qid": qid, **weights, "propensity": propensity}
        self._fit_on_cluster(X, columns, client, partitions)
        return self


class DaskSparseRankSVM(DaskRanker, SparseRankSVM):
    """Sparse linear RankSVM on a Dask cluster.

    Optimum, parameters, attributes and model files are the same as for
    :class:`~marginrank.SparseRankSVM`. Documents stay on the workers; the result does not depend on
    the number of workers. The example of :class:`DaskRankSVM` applies to it as well.

    Parameters
    ----------
    radius, C, l1_ratio, positive, objective, loss, solver, variant, tol, max_iter, \
pair_selection, pair_cost, normalization, scale, device, warm_start, verbose, random_state
        As for :class:`~marginrank.SparseRankSVM`; `objective` must be "pairs".
    n_jobs : int, default=None
        Threads of the client, for samples; workers have their own threads.

    Attributes
    ----------
    coef_, sparsity_, scale_, objective_, gap_, stop_reason_, n_iter_, history_, n_pairs_, \
n_features_in_, feature_names_in_
        As for :class:`~marginrank.SparseRankSVM`.
    """

    _local = SparseRankSVM

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        position: Any = None,
        context: Any = None,
        memory_limit: Any = None,
        client: Any = None,
        partitions: str = "as_is",
    ) -> Self:
        """Fit sparse weights of the features to documents on a Dask cluster.

        Parameters
        ----------
        X, y, qid, group, sample_weight, query_weight, position, context, memory_limit, client, \
partitions
            As in :meth:`DaskRankSVM.fit`.

        Returns
        -------
        DaskSparseRankSVM
            The fitted estimator.
        """
        check_dask_arguments(
            group=group, position=position, context=context, memory_limit=memory_limit
        )
        weights = {"sample_weight": sample_weight, "query_weight": query_weight}
        columns = {"y": y, "qid": qid, **weights}
        parameters = self._fit_on_cluster(X, columns, client, partitions)
        warn_of(empty_message(self.coef_, parameters))
        return self
