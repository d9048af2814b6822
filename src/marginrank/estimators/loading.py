"""load_model, which creates fitted estimators from model files."""

import os
from typing import Any

from marginrank.estimators.additive_rank_svm import AdditiveRankSVM
from marginrank.estimators.fusion_ranker import FusionRanker
from marginrank.estimators.kernel_rank_svm import KernelRankSVM
from marginrank.estimators.rank_svm import RankSVM
from marginrank.estimators.sgd_rank_svm import SGDRankSVM
from marginrank.estimators.sparse_rank_svm import SparseRankSVM
from marginrank.models import fusion_model, json_model, kernel_model, read_model

# Values of the field "estimator" of a model file.
LINEAR: dict[str, Any] = {kind.__name__: kind for kind in (RankSVM, SGDRankSVM, SparseRankSVM)}


def load_model(
    path: str | os.PathLike[str], format: str | None = None
) -> RankSVM | SGDRankSVM | SparseRankSVM | AdditiveRankSVM | KernelRankSVM | FusionRanker:
    """Load a fitted estimator from a model file, without executing code in it.

    Parameters
    ----------
    path : str or path
        A file written by ``save`` of an estimator; a model of LIBLINEAR-ranksvm, SVM^rank or
        SVM-light; a Coordinate Ascent model of RankLib; or the JSON of a linear model for Solr's
        or Elasticsearch's learning to rank.
    format : {"json", "liblinear", "svmrank", "ranklib", "solr", "elasticsearch"}
        The format; by default it is detected from the start of the file.

    Returns
    -------
    RankSVM, SGDRankSVM, SparseRankSVM, AdditiveRankSVM, KernelRankSVM or FusionRanker
        A fitted model. From a file of marginrank, its predictions are bitwise equal to the saved
        model's. Other formats hold weights only, so parameters have their defaults.

    Raises
    ------
    ValueError
        If the file is damaged, has a newer version or is not a model.

    Examples
    --------
    >>> import tempfile
    >>> from marginrank import RankSVM, load_model, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> model = RankSVM(C=0.1).fit(X, y, qid=qid)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.json")
    ...     loaded = load_model(f"{folder}/model.json")
    >>> loaded
    RankSVM(C=0.1)
    >>> bool((loaded.predict(X) == model.predict(X)).all())
    True
    """
    path = os.fspath(path)
    if format is None and kernel_model.is_kernel_model(path):
        return KernelRankSVM.from_kernel_model(kernel_model.read(path))
    if format in (None, "json") and json_model.is_additive_model(path):
        return AdditiveRankSVM.from_additive_model(json_model.read_additive(path))
    if format in (None, "json") and fusion_model.is_fusion_model(path):
        return FusionRanker.from_fusion_model(fusion_model.read(path))
    model = read_model(path, format)
    loaded: RankSVM | SGDRankSVM | SparseRankSVM = LINEAR[model.estimator].from_linear_model(model)
    return loaded
