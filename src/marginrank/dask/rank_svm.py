"""DaskRankSVM and DaskSparseRankSVM."""

from typing import Any, Self

from marginrank.dask.fit import check_for_dask
from marginrank.dask.rankers import DaskRanker, check_dask_arguments
from marginrank.estimators.base import check_seed, warn_of
from marginrank.estimators.rank_svm import RankSVM
from marginrank.estimators.sparse_rank_svm import SparseRankSVM
from marginrank.fit.sparse import empty_message


class DaskRankSVM(DaskRanker, RankSVM):
    """Linear RankSVM on a Dask cluster.

    The optimum is that of :class:`~marginrank.RankSVM`, and so are parameters, attributes and model
    files. Documents stay on the workers; the result does not depend on how many these are.

    Parameters
    ----------
    C, lam, loss, solver, tol, max_iter, pair_selection, pair_cost, margin, normalization, scale, \
device, warm_start, verbose, random_state
        As for :class:`~marginrank.RankSVM`.
    objective : {"pairs"}, default="pairs"
        Others rank documents in memory, and are for :class:`~marginrank.RankSVM`.
    n_jobs : int, default=None
        Threads of the client, for samples: workers have threads of their own.

    Attributes
    ----------
    coef_, scale_, objective_, gap_, stop_reason_, n_iter_, history_, n_pairs_, n_features_in_, \
feature_names_in_
        As of :class:`~marginrank.RankSVM`.

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
        pairs: Any = None,
        pair_weight: Any = None,
        memory_limit: Any = None,
        client: Any = None,
        partitions: str = "as_is",
    ) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : dask.dataframe.DataFrame, dask.array.Array or list of store paths
            The documents. Stores, which bring all that follows, are folders that every worker can
            read. The columns of a dataframe that are named below are no features.
        y, qid : str, or Dask series or array
            Labels and queries: columns of X, or collections in the same partitions.
        sample_weight : str, or Dask series or array, optional
            A pair weighs the product of its two documents' weights.
        query_weight : str, or Dask series or array, optional
            Weights of the queries, repeated for each document.
        propensity : str, or Dask series or array, optional
            Probability that a document was examined.
        group, pairs, pair_weight, memory_limit
            Refused: they belong to data of one process.
        client : distributed.Client, optional
            The cluster; that of this process by default.
        partitions : {"as_is", "by_query"}, default="as_is"
            A query must not be cut by partitions. "as_is" refuses data in which one is, and names
            it; "by_query" shuffles the documents first.

        Returns
        -------
        DaskRankSVM
            The fitted estimator.
        """
        check_dask_arguments(
            group=group, pairs=pairs, pair_weight=pair_weight, memory_limit=memory_limit
        )
        columns = {
            "y": y,
            "qid": qid,
            "sample_weight": sample_weight,
            "query_weight": query_weight,
            "propensity": propensity,
        }
        parameters = self._parameters()
        check_for_dask(parameters)
        seed = check_seed(self.random_state)
        model, loaded = self._fit(X, columns, parameters, seed, client, partitions)
        self._take_over(model, loaded)
        return self


class DaskSparseRankSVM(DaskRanker, SparseRankSVM):
    """Sparse linear RankSVM on a Dask cluster.

    The optimum is that of :class:`~marginrank.SparseRankSVM`, and so are parameters, attributes and
    model files. Documents stay on the workers; the result does not depend on how many these are.

    Parameters
    ----------
    radius, C, l1_ratio, positive, loss, solver, variant, tol, max_iter, pair_selection, \
pair_cost, normalization, scale, device, warm_start, verbose, random_state
        As for :class:`~marginrank.SparseRankSVM`.
    n_jobs : int, default=None
        Threads of the client, for samples: workers have threads of their own.

    Attributes
    ----------
    coef_, sparsity_, scale_, objective_, gap_, stop_reason_, n_iter_, history_, n_pairs_, \
n_features_in_, feature_names_in_
        As of :class:`~marginrank.SparseRankSVM`.
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
        memory_limit: Any = None,
        client: Any = None,
        partitions: str = "as_is",
    ) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X, y, qid, group, sample_weight, query_weight, memory_limit, client, partitions
            As in :meth:`DaskRankSVM.fit`.

        Returns
        -------
        DaskSparseRankSVM
            The fitted estimator.
        """
        check_dask_arguments(group=group, memory_limit=memory_limit)
        columns = {
            "y": y,
            "qid": qid,
            "sample_weight": sample_weight,
            "query_weight": query_weight,
        }
        parameters = self._parameters()
        seed = check_seed(self.random_state)
        model, loaded = self._fit(X, columns, parameters, seed, client, partitions)
        self._take_over(model, loaded)
        warn_of(empty_message(self.coef_, parameters))
        return self
