"""marginrank: large-scale RankSVM.

The names of this package are imported on first use, so ``marginrank --help`` does not wait for
NumPy and scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from marginrank._utils.version import __version__ as __version__

if TYPE_CHECKING:
    from marginrank import metrics
    from marginrank.clicks.interleaving import interleave, interleaving_test
    from marginrank.clicks.log import ClickLog
    from marginrank.clicks.log_files import load_clicks
    from marginrank.clicks.off_policy import estimate_clicks
    from marginrank.clicks.propensities import estimate_propensities
    from marginrank.clicks.simulation import make_clicks
    from marginrank.data import RankingData, make_ranking
    from marginrank.estimators import (
        AdditiveRankSVM,
        AdditiveRankSVMCV,
        FusionRanker,
        KernelRankSVM,
        QueryScaler,
        RankSVM,
        RankSVMCV,
        SelectKBestRanking,
        SGDRankSVM,
        SparseRankSVM,
        SparseRankSVMCV,
        as_linear_model,
        cross_validate_ranking,
        load_model,
    )
    from marginrank.health import Finding, check_data
    from marginrank.io.chunks import iter_letor
    from marginrank.io.letor import dump_letor, load_letor
    from marginrank.io.pair_text import load_pairs
    from marginrank.io.trec_text import dump_run, load_qrels, load_run
    from marginrank.metrics.feature_ranking import rank_features
    from marginrank.models.fit_report import Iteration, StopReason
    from marginrank.models.serving import LinearScorer
    from marginrank.reporting import report
    from marginrank.selection.learning_curve import learning_curve_ranking
    from marginrank.selection.paths import linear_path, sparse_path

__all__ = [
    "AdditiveRankSVM",
    "AdditiveRankSVMCV",
    "ClickLog",
    "Finding",
    "FusionRanker",
    "Iteration",
    "KernelRankSVM",
    "LinearScorer",
    "QueryScaler",
    "RankSVM",
    "RankSVMCV",
    "RankingData",
    "SGDRankSVM",
    "SelectKBestRanking",
    "SparseRankSVM",
    "SparseRankSVMCV",
    "StopReason",
    "as_linear_model",
    "check_data",
    "cross_validate_ranking",
    "dump_letor",
    "dump_run",
    "estimate_clicks",
    "estimate_propensities",
    "interleave",
    "interleaving_test",
    "iter_letor",
    "learning_curve_ranking",
    "linear_path",
    "load_clicks",
    "load_letor",
    "load_model",
    "load_pairs",
    "load_qrels",
    "load_run",
    "make_clicks",
    "make_ranking",
    "metrics",
    "rank_features",
    "report",
    "sparse_path",
]

_MODULES = {name: "marginrank.estimators" for name in __all__ if name != "metrics"} | {
    "ClickLog": "marginrank.clicks.log",
    "Finding": "marginrank.health",
    "Iteration": "marginrank.models.fit_report",
    "LinearScorer": "marginrank.models.serving",
    "RankingData": "marginrank.data",
    "StopReason": "marginrank.models.fit_report",
    "check_data": "marginrank.health",
    "dump_letor": "marginrank.io.letor",
    "dump_run": "marginrank.io.trec_text",
    "estimate_clicks": "marginrank.clicks.off_policy",
    "estimate_propensities": "marginrank.clicks.propensities",
    "interleave": "marginrank.clicks.interleaving",
    "interleaving_test": "marginrank.clicks.interleaving",
    "iter_letor": "marginrank.io.chunks",
    "learning_curve_ranking": "marginrank.selection.learning_curve",
    "linear_path": "marginrank.selection.paths",
    "load_clicks": "marginrank.clicks.log_files",
    "load_letor": "marginrank.io.letor",
    "load_pairs": "marginrank.io.pair_text",
    "load_qrels": "marginrank.io.trec_text",
    "load_run": "marginrank.io.trec_text",
    "make_clicks": "marginrank.clicks.simulation",
    "make_ranking": "marginrank.data",
    "rank_features": "marginrank.metrics.feature_ranking",
    "report": "marginrank.reporting",
    "sparse_path": "marginrank.selection.paths",
}


def __getattr__(name: str) -> Any:
    if name == "metrics":
        return import_module("marginrank.metrics")
    if name not in _MODULES:
        raise AttributeError(f"module 'marginrank' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value  # later accesses do not call this function
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
