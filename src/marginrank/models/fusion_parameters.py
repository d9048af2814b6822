"""Declarations of the parameters of fusion, from which checks and command-line flags derive.

See :mod:`marginrank.models.parameters`.
"""

from dataclasses import dataclass
from typing import Any

from marginrank._utils.parameters import (
    FLAG,
    TEXT,
    Parameter,
    ParameterError,
    accepted_by,
    check_choice,
    check_integer,
    given,
    integer,
    number,
)

FUSION = "How the weights are learned"


def check_normalizers(value: Any) -> list[str]:
    """Return the parameter `normalizer`, which is one name or several, as a list of names.

    Raise ParameterError if a name is unknown.
    """
    from marginrank.data.score_normalization import NORMALIZERS

    names = value if isinstance(value, (list, tuple)) else [value]
    if isinstance(value, str):  # as on the command line
        names = value.split(",")
    return [check_choice("normalizer", name, NORMALIZERS) for name in names]


def _check_fold_count(value: Any) -> None:
    if check_integer("cv", value, at_least=0) == 1:
        raise ParameterError(given("cv", value), " must be 0 (no cross-validation) or at least 2.")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FusionDeclaration:
    """Declared parameters of fusion fits, described in :class:`~marginrank.FusionRanker`."""

    normalizer: Any = Parameter(  # noqa: RUF009 (a field)
        accepted_by(check_normalizers),
        "How scores of a run are normalized within a query: minmax, minmax_floor (OpenSearch's "
        "variant), zscore, l2, dbsf (Qdrant's), rrf (1 / (60 + rank)) or none. Pass several, "
        "separated by commas, to select one by cross-validation.",
        FUSION,
    ).field("minmax")
    metric: str = Parameter(
        TEXT,
        "Metric to maximize: ndcg, dcg, recall or p (precision), such as ndcg@5.",
        FUSION,
        metavar="METRIC",
    ).field("ndcg@10")
    positive: bool = Parameter(FLAG, "Require all weights to be zero or more.", FUSION).field(True)
    rrf_constant: float = Parameter(
        number(allow_equal=True),
        "Constant c in 1 / (c + rank), for --normalizer rrf.",
        FUSION,
    ).field(60.0)
    depth: int = Parameter(
        integer(at_least=1), "Number of top documents of each run and query to use.", FUSION
    ).field(100)
    n_bootstraps: int = Parameter(
        integer(at_least=0),
        "Average the weights over this number of bootstrap samples of the queries (bagging, "
        "against overfitting); 0: fit once, to all queries.",
        FUSION,
    ).field(100)
    cv: int = Parameter(
        accepted_by(_check_fold_count, int),
        "Number of folds of the cross-validation that compares learned weights with RRF; 0: do not "
        "compare.",
        FUSION,
    ).field(5)
