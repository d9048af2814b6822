"""Which pairs to learn from, with what weights and margins, and the objective over them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginrank._utils.parameters import (
    Mention,
    ParameterError,
    Wording,
    given,
)
from marginrank._utils.types import Floats
from marginrank.data.pair_lists import PairList
from marginrank.data.ranking_data import RankingData
from marginrank.data.validation import check_weights
from marginrank.objective.level_pairs import LevelPairs
from marginrank.objective.listed_pairs import ListedPairs
from marginrank.objective.losses import Loss
from marginrank.objective.objective import Objective
from marginrank.objective.pair_sets import PairSet
from marginrank.objective.pair_weights import (
    PairFactors,
    margin_offsets,
    with_preferred,
    with_propensity,
)
from marginrank.objective.pair_weights import pair_cost as pair_factors
from marginrank.objective.protocols import Matrix
from marginrank.operators import matrix_of


class Preferences(NamedTuple):
    """Pairs, and the loss on them."""

    pairs: PairSet
    loss: Loss


def choose_pairs(
    data: RankingData,
    loss: Loss,
    *,
    pair_selection: str = "all",
    pair_cost: Any = None,
    factors: PairFactors | None = None,
    margin: Any = "unit",
    pairs: PairList | None = None,
    propensity: Floats | None = None,
    labels: NDArray[Any] | None = None,
    threads: int = 1,
) -> Preferences:
    """Return the pairs that the labels of the data make, or those of a list, and the loss on them.

    With margins by label, the loss becomes that of a margin of zero: its own is in the pairs.

    Parameters
    ----------
    data : RankingData
        Documents, labels, queries, weights and costs.
    loss : Loss
        The loss on a pair.
    pair_selection, pair_cost, margin
        As in :class:`~marginrank.RankSVM`.
    factors : PairFactors, optional
        Weights of the pairs, by row, in the place of `pair_cost`.
    pairs : PairList, optional
        The pairs, by row of X, instead of those that the labels make. Documents that are not part
        of a pair of positive weight are left out.
    propensity : ndarray of shape (n_documents,), optional
        Divides the weight of each pair by that of its preferred document.
    labels : ndarray, optional
        The distinct labels of all documents, if the data are a part of them: for `pair_cost`.
    threads : int
        Number of threads.
    """
    if pairs is not None:
        check_pair_selection(pair_selection)
        _check_labels(pair_cost, margin, propensity, data.cost)
        return Preferences(ListedPairs.from_data(data, pairs, margins=None, threads=threads), loss)
    if factors is None and pair_cost is not None:
        factors = pair_factors(pair_cost, data.y, data.qid, labels)
    if propensity is not None:
        _check_one_cost(data.cost)
        factors = with_propensity(factors, propensity)
    elif data.cost is not None:
        factors = with_preferred(factors, data.cost)
    is_unit = isinstance(margin, str) and margin == "unit"
    margins = None if is_unit else margin_offsets(margin, data.y, data.qid)
    chosen = LevelPairs.from_data(
        data,
        adjacent=pair_selection == "adjacent",
        pair_weights=factors,
        margins=margins,
        threads=threads,
    )
    return Preferences(chosen, loss if margins is None else loss.shifted(-loss.margin))


def _check_one_cost(cost: Floats | None) -> None:
    """Raise ValueError for propensities where the data have their inverse."""
    if cost is not None:
        raise ValueError(
            "propensity was given, but the data have a cost a document, which is the inverse of "
            "one; drop propensity."
        )


def _check_labels(
    pair_cost: Any, margin: Any, propensity: Floats | None, cost: Floats | None
) -> None:
    """Raise ValueError for what needs labels."""
    asked = {
        "pair_cost": pair_cost is not None,
        "margin": margin != "unit",
        "propensity": propensity is not None,
        "cost": cost is not None,
    }
    for name, is_given in asked.items():
        if is_given:
            raise ValueError(
                f"{name} does not go with pairs, which have no labels; put it into pair_weight."
            )


def check_propensity(propensity: ArrayLike | None, n_documents: int) -> Floats | None:
    """Return the propensities that a fit was given, none of them zero."""
    if propensity is None:
        return None
    values = check_weights(propensity, "propensity", n_documents, "one probability a document")
    zero = np.flatnonzero(values == 0)
    if zero.size:
        raise ValueError(f"propensity[{zero[0]}] is 0; a document needs a chance to be examined.")
    return values


def check_pair_selection(pair_selection: str) -> None:
    """Raise ValueError for what has no meaning for pairs that are listed."""
    if pair_selection != "all":
        raise ParameterError(
            given("pair_selection", pair_selection),
            " does not go with ",
            Mention("pairs"),
            ", which say themselves what is compared; drop one of them.",
        )


def objective_on(
    data: RankingData,
    preferences: Preferences,
    *,
    C: float = 1.0,
    normalization: str = "none",
    ridge: float = 1.0,
    threads: int = 1,
    matrix: Matrix | None = None,
) -> Objective:
    """Return the objective over some pairs of the data.

    Parameters
    ----------
    data : RankingData
        The documents.
    preferences : Preferences
        The pairs, and the loss on them.
    C : float
        Weight of the loss against the regulariser.
    normalization : {"none", "pairs", "query"}
        "none" sums the loss over all pairs; "pairs" takes its mean over all pairs; "query" takes
        the mean over the pairs of each query, then the mean over the queries that have pairs. Where
        there are weights, means are weighted means.
    ridge : float
        ρ, the weight of ½‖w‖².
    threads : int
        Number of threads; the results do not depend on it.
    matrix : Matrix, optional
        X, as a backend holds it; in memory by default.
    """
    matrix = matrix_of(data) if matrix is None else matrix
    design = matrix.design(preferences.pairs.weighted(C, normalization), threads)
    return Objective(design=design, loss=preferences.loss, ridge=ridge)


def no_weight(cost: Floats | None = None) -> ValueError:
    """Return the error for pairs that all have the weight zero, perhaps by the cost of the data."""
    if cost is not None and not cost.any():
        return ValueError(
            "cost (in text, cost:) is zero for every document; give documents a positive cost."
        )
    return ValueError(
        "cost, pair_cost, sample_weight, query_weight or pair_weight is zero for every pair; give "
        "a pair a positive weight."
    )


def no_pairs(n_documents: int, n_queries: int) -> ParameterError:
    """Return the refusal of data that have no pair to learn from."""
    return ParameterError(
        Wording("y has", "there is"),
        " no pair to learn from: no query has two documents with different labels (",
        Wording(f"n_samples={n_documents}", f"{n_documents} documents"),
        f", {n_queries} queries); check ",
        Wording("y and qid", "the labels and the queries"),
        ".",
    )
