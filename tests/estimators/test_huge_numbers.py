"""Integers beyond the range of floats are refused wherever numbers are."""

import numpy as np
import pytest

from marginrank import (
    AdditiveRankSVM,
    KernelRankSVM,
    RankingData,
    RankSVM,
    RankSVMCV,
    SGDRankSVM,
    SparseRankSVM,
    linear_path,
    make_ranking,
    metrics,
    sparse_path,
)

HUGE = 10**400
X, Y, QID = make_ranking(20, 8, 4, random_state=0)


def with_huge(values):
    """Return the values as a list that begins with a huge integer."""
    return [HUGE, *np.ravel(values).tolist()[1:]]


CASES = {
    "C": lambda: RankSVM(C=HUGE).fit(X, Y, qid=QID),
    "tol": lambda: SparseRankSVM(tol=HUGE).fit(X, Y, qid=QID),
    "smoothness": lambda: AdditiveRankSVM(smoothness=HUGE).fit(X, Y, qid=QID),
    "eta0": lambda: SGDRankSVM(eta0=HUGE).fit(X, Y, qid=QID),
    "gamma": lambda: KernelRankSVM(gamma=HUGE).fit(X, Y, qid=QID),
    "scale": lambda: RankSVM(scale=[HUGE] * 4).fit(X, Y, qid=QID),
    "pair_cost": lambda: RankSVM(pair_cost=[[HUGE] * 5] * 5).fit(X, Y, qid=QID),
    "Cs": lambda: RankSVMCV(Cs=[HUGE]).fit(X, Y, qid=QID),
    "Cs of linear_path": lambda: linear_path(X, Y, qid=QID, Cs=[HUGE]),
    "Cs of sparse_path": lambda: sparse_path(X, Y, qid=QID, Cs=[HUGE]),
    "X": lambda: RankSVM().fit(np.reshape(np.array(with_huge(X), object), X.shape), Y, qid=QID),
    "y": lambda: RankSVM().fit(X, with_huge(Y), qid=QID),
    "sample_weight": lambda: RankSVM().fit(X, Y, qid=QID, sample_weight=with_huge(Y)),
    "cost": lambda: RankingData(X, Y, QID, cost=with_huge(Y)),
    "labels of ndcg": lambda: metrics.ndcg(with_huge(Y), Y, qid=QID),
    "noise": lambda: make_ranking(3, 4, 5, noise=HUGE),
}


@pytest.mark.parametrize("call", CASES.values(), ids=CASES)
def test_an_integer_beyond_the_range_of_floats_is_a_value_error(call):
    with pytest.raises(ValueError, match="must"):
        call()
