"""The pairs of a fit, with their weights and margins, and the objective over them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginrank._utils.parameters import Mention, ParameterError, Wording, given
from marginrank._utils.types import Floats
from marginrank.data.pair_lists import PairList
from marginrank.data.ranking_data import RankingData
from marginrank.data.validation import check_weights
from marginrank.objective.level_pairs import LevelPairs
from marginrank.objective.listed_pairs import ListedPairs
from marginrank.objective.losses import Loss
from marginrank.objective.margins import margin_offsets
from marginrank.objective.objective import Objective
from marginrank.objective.pair_sets import PairSet
from marginrank.objective.pair_weights import PairFactors, with_preferred, with_propensity
from marginrank.objective.pair_weights import pair_cost as pair_factors
from marginrank.objective.protocols import Matrix
from marginrank.operators import matrix_of


class Preferences(NamedTuple):
    """Pairs and the loss on them."""

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
    """Return the pairs that the labels imply, or a list of pairs, and the loss on them.

    With margins by label, the pairs hold the margins, and the loss is shifted to margin zero.

    Parameters
    ----------
    data : RankingData
        Documents, labels, queries, weights and costs.
    loss : Loss
        The loss on a pair.
    pair_selection, pair_cost, margin
        As in :class:`~marginrank.RankSVM`.
    factors : PairFactors, optional
        Weights of the pairs, by row, instead of `pair_cost`.
    pairs : PairList, optional
        Pairs of rows of X, instead of the pairs that the labels imply. Documents without a pair of
        positive weight are dropped.
    propensity : ndarray of shape (n_documents,), optional
        The weight of each pair is divided by the propensity of its preferred document.
    labels : ndarray, optional
        The distinct labels of all documents, if the data are a part of them; for `pair_cost`.
    threads : int
        Number of threads.
    """
    if pairs is not None:
        if pair_selection != "all":
            raise ParameterError(
                given("pair_selection", pair_selection),
                " cannot be combined with ",
                Mention("pairs"),
                "; drop one of them.",
            )
        _check_labels(pair_cost, margin, propensity, data.cost)
        return Preferences(ListedPairs.from_data(data, pairs, margins=None, threads=threads), loss)
    if factors is None and pair_cost is not None:
        factors = pair_factors(pair_cost, data.y, data.qid, labels)
    if propensity is not None:
        if data.cost is not None:
            raise ValueError(
                "propensity cannot be combined with RankingData.cost, which holds inverse "
                "propensities; drop propensity."
            )
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


def _check_labels(
    pair_cost: Any, margin: Any, propensity: Floats | None, cost: Floats | None
) -> None:
    """Raise ValueError if an argument is given that requires labels."""
    asked = {
        "pair_cost": pair_cost is not None,
        "margin": margin != "unit",
        "propensity": propensity is not None,
        "cost": cost is not None,
    }
    for name, is_given in asked.items():
        if is_given:
            raise ValueError(
                f"{name} cannot be combined with pairs, which have no labels; use pair_weight."
            )


def check_propensity(propensity: ArrayLike | None, n_documents: int) -> Floats | None:
    """Return checked propensities; raise ValueError if one is not positive."""
    if propensity is None:
        return None
    values = check_weights(propensity, "propensity", n_documents, "one probability per document")
    zero = np.flatnonzero(values == 0)
    if zero.size:
        raise ValueError(f"propensity[{zero[0]}] is 0; propensities must be positive.")
    return values


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
    C, normalization
        As in :class:`~marginrank.RankSVM`.
    ridge : float
        Weight of ½‖w‖².
    threads : int
        Number of threads; the results do not depend on it.
    matrix : Matrix, optional
        X of a backend; by default the native one.
    """
    matrix = matrix_of(data) if matrix is None else matrix
    design = matrix.design(preferences.pairs.weighted(C, normalization), threads)
    return Objective(design=design, loss=preferences.loss, ridge=ridge)


def no_weight(cost: Floats | None = None) -> ValueError:
    """Return the error for pairs that all have weight zero."""
    if cost is not None and not cost.any():
        return ValueError("cost (in text, cost:) is zero for every document.")
    return ValueError(
        "cost, pair_cost, sample_weight, query_weight or pair_weight is zero for every pair; at "
        "least one pair needs a positive weight."
    )


def no_pairs(n_documents: int, n_queries: int) -> ParameterError:
    """Return the error for data without pairs."""
    return ParameterError(
        Wording("y has", "there is"),
        " no pair to learn from: no query has two documents with different labels (",
        Wording(f"n_samples={n_documents}", f"{n_documents} documents"),
        f", {n_queries} queries); check ",
        Wording("y and qid", "the labels and the queries"),
        ".",
    )
