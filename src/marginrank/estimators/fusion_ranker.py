"""FusionRanker, which learns the weights of retrieval signals for hybrid search."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from marginrank._utils.types import Floats
from marginrank.data.ranking_data import RankingData
from marginrank.data.runs import ByDocument
from marginrank.estimators.base import check_seed
from marginrank.estimators.input import KeywordArguments
from marginrank.export.exporting import name_for, write_files
from marginrank.export.fusion import fusion_files
from marginrank.export.names import Names
from marginrank.fit.fusion import FusionParameters, JudgedSignals
from marginrank.models import write_model
from marginrank.models.fusion_model import FusionModel, QueryFeatures
from marginrank.selection.fusion import select_fusion


class FusionRanker(KeywordArguments, BaseEstimator):
    """Learn weights of retrieval signals such as BM25 from runs and relevance judgments.

    A signal is a retriever such as BM25 or a dense model. The score of a document is the weighted
    sum of its normalized scores by all signals, as search engines compute it for hybrid search. The
    weights maximize the metric itself: along a line in the space of weights, the metric is
    piecewise constant and changes only where two documents of a query swap, so the best interval is
    found exactly (Och, 2003). Weights are averaged over bootstrap samples of the queries, because
    the best weights for few queries are mostly noise.

    Parameters
    ----------
    normalizer : str or list of str, default="minmax"
        Normalization of each signal's scores in each query, by name; the engines that compute it
        are in parentheses: "minmax" (Elasticsearch, Weaviate),
        "minmax_floor" (OpenSearch), "zscore" (OpenSearch), "l2" (OpenSearch, Elasticsearch), "dbsf"
        (Qdrant), "rrf" (reciprocal rank fusion) or "none"; ``docs/how_to/hybrid_search.md`` has
        their formulas. If it is a list, cross-validation selects one of its entries.
    metric : str, default="ndcg@10"
        The metric to maximize: "ndcg", "dcg" or "recall", optionally with a cut-off as in "dcg@5",
        or "precision" with a cut-off. The gain of a document is its label, as in trec_eval.
    positive : bool, default=True
        Require non-negative weights.
    rrf_constant : float, default=60.0
        The constant c of the normalizer "rrf", whose scores are 1 / (c + rank), with ranks from 1.
    depth : int, default=100
        Number of top documents of each signal that are used in a query.
    n_bootstraps : int, default=100
        Number of bootstrap samples. With 0, the weights are the best ones found for the training
        queries, which is less accurate for others.
    cv : int, default=5
        Number of folds of queries for :attr:`evaluation_`; 0 skips it.
    random_state : int, RandomState instance or None, default=0
        Seed of bootstrap samples, search directions and folds.

    Attributes
    ----------
    model_ : FusionModel
        The fitted model as a record.
    weights_ : dict
        The weight of each signal.
    normalizer_ : str
        The normalizer that was used: the parameter, or the selected entry if it is a list.
    evaluation_ : FusionEvaluation or None
        Cross-validated metric of learned weights, RRF (reciprocal rank fusion), equal weights, each
        signal alone and a grid search, with confidence intervals.
    verdict_ : str or None
        Whether learned weights are better than RRF, in one sentence.

    References
    ----------
    F. J. Och (2003). Minimum error rate training in statistical machine translation. ACL.

    Examples
    --------
    >>> from marginrank import FusionRanker
    >>> qrels = {f"q{k}": {f"d{k % 3}": 1} for k in range(12)}
    >>> good = {q: {"d0": 0.1, "d1": 0.2, "d2": 0.3} | dict.fromkeys(qrels[q], 0.9) for q in qrels}
    >>> noise = {q: {"d0": 3.0, "d1": 2.0, "d2": 1.0} for q in qrels}
    >>> ranker = FusionRanker().fit({"dense": good, "bm25": noise}, qrels)
    >>> ranker.weights_["dense"] > ranker.weights_["bm25"]
    True
    >>> ranker.fuse({"dense": good, "bm25": noise})["q1"].keys()
    dict_keys(['d1', 'd0', 'd2'])
    """

    def __init__(
        self,
        *,
        normalizer: Any = "minmax",
        metric: str = "ndcg@10",
        positive: bool = True,
        rrf_constant: float = 60.0,
        depth: int = 100,
        n_bootstraps: int = 100,
        cv: int = 5,
        random_state: Any = 0,
    ) -> None:
        """Store the arguments as attributes; see :class:`KeywordArguments`."""

    def fit(
        self, runs: Any, qrels: Any = None, *, query_features: QueryFeatures | None = None
    ) -> Self:
        """Fit the weights of the signals to relevance judgments.

        Parameters
        ----------
        runs : mapping or RankingData
            Runs by the name of their signal: each as from :func:`~marginrank.load_run`, a data
            frame or a ranx.Run. Or data from :meth:`RankingData.from_runs`.
        qrels : mapping, data frame or ranx.Qrels, optional
            Judgments, as from :func:`~marginrank.load_qrels`; None for a RankingData. With
            qrels, judged documents that no run retrieved count in the ideal ranking.
        query_features : mapping, optional
            Features of each query on which the weights depend,
            ``{query: {"length": 3, "has_digits": 0}}``.

        Returns
        -------
        FusionRanker
            The fitted estimator.
        """
        values = {field.name: getattr(self, field.name) for field in fields(FusionParameters)}
        parameters = FusionParameters(**values)
        judged = JudgedSignals.of(runs, qrels, parameters.depth)
        seed = check_seed(self.random_state)
        model, evaluation = select_fusion(
            judged, parameters, query_features=query_features, seed=seed
        )
        self._set_model(model)
        self.evaluation_ = evaluation
        self.verdict_ = None if evaluation is None else evaluation.verdict
        return self

    def fuse(self, runs: Any, query_features: QueryFeatures | None = None) -> ByDocument:
        """Return the fused run: the documents of each query by descending weighted score.

        Parameters
        ----------
        runs : mapping or RankingData
            Runs by signal, or data, as in :meth:`fit`.
        query_features : mapping, optional
            Features of each query, if the fit had any.

        Returns
        -------
        dict
            ``{query: {document: score}}``.
        """
        check_is_fitted(self, "model_")
        return self.model_.fuse(runs, query_features)

    def predict(self, X: RankingData, query_features: QueryFeatures | None = None) -> Floats:
        """Return the fused score of each document.

        Parameters
        ----------
        X : RankingData
            Data from :meth:`RankingData.from_runs`, with the signals of the fit.
        query_features : mapping, optional
            Features of each query, if the fit had any.

        Returns
        -------
        ndarray of shape (n_documents,)
            The scores, in the order of the rows.
        """
        check_is_fitted(self, "model_")
        return self.model_.predict(X, query_features)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model as JSON, which :func:`marginrank.load_model` reads.

        Parameters
        ----------
        path : str or path
            The file; it is written atomically. :attr:`evaluation_` is not stored.
        """
        check_is_fitted(self, "model_")
        write_model(self.model_, path)

    def export(
        self,
        path: str | os.PathLike[str],
        to: str,
        *,
        name: str | None = None,
        names: Names | None = None,
    ) -> list[str]:
        """Write settings that make a search engine fuse results with the fitted weights.

        Parameters
        ----------
        path : str or path
            The main file; other files that the engine needs are written next to it.
        to : str
            The engine, such as "opensearch" or "qdrant"; ``docs/how_to/export.md`` lists them.
        name : str, optional
            Name of the model in the engine; by default the name of the file.
        names : list of str, or dict of str to str, optional
            A name for each signal, or other names for some of them.

        Returns
        -------
        list of str
            The paths of the files.
        """
        check_is_fitted(self, "model_")
        files = fusion_files(self.model_, to, name=name or name_for(path), names=names)
        return write_files(path, files)

    @classmethod
    def from_fusion_model(cls, model: FusionModel) -> Self:
        """Return a fitted estimator with the predictions of `model`, without an evaluation."""
        self = cls(**model.parameters)
        self._set_model(model)
        return self

    def __sklearn_tags__(self) -> Tags:
        """Return the tags for scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # X is a dict of runs by name
        tags.input_tags.dict = True
        tags.no_validation = True
        return tags

    def _set_model(self, model: FusionModel) -> None:
        self.model_ = model
        self.weights_ = dict(zip(model.signals, model.weights.tolist(), strict=True))
        self.normalizer_ = model.normalizer
