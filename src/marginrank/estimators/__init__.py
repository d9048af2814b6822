"""Estimators with the conventions of scikit-learn; fits are in the packages fit and additive."""

from marginrank.estimators.additive_rank_svm import AdditiveRankSVM
from marginrank.estimators.additive_rank_svm_cv import AdditiveRankSVMCV
from marginrank.estimators.cross_validation import cross_validate_ranking
from marginrank.estimators.folding import as_linear_model
from marginrank.estimators.fusion_ranker import FusionRanker
from marginrank.estimators.kernel_rank_svm import KernelRankSVM
from marginrank.estimators.loading import load_model
from marginrank.estimators.query_scaler import QueryScaler
from marginrank.estimators.rank_svm import RankSVM
from marginrank.estimators.rank_svm_cv import RankSVMCV
from marginrank.estimators.select_k_best_ranking import SelectKBestRanking
from marginrank.estimators.sgd_rank_svm import SGDRankSVM
from marginrank.estimators.sparse_rank_svm import SparseRankSVM
from marginrank.estimators.sparse_rank_svm_cv import SparseRankSVMCV

__all__ = [
    "AdditiveRankSVM",
    "AdditiveRankSVMCV",
    "FusionRanker",
    "KernelRankSVM",
    "QueryScaler",
    "RankSVM",
    "RankSVMCV",
    "SGDRankSVM",
    "SelectKBestRanking",
    "SparseRankSVM",
    "SparseRankSVMCV",
    "as_linear_model",
    "cross_validate_ranking",
    "load_model",
]
