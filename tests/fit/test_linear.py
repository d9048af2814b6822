"""What a fit refuses: the sentence names what is wrong, not what it made look wrong."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.plain_defaults import plain_sparse

from marginrank import (
    AdditiveRankSVM,
    RankingData,
    RankSVM,
    SGDRankSVM,
    SparseRankSVM,
    load_letor,
    make_ranking,
)
from marginrank._utils import memory
from marginrank.fit.linear import Parameters, fit_linear

X, Y, QID = make_ranking(4, 10, 3, random_state=0)


def fit(X=X, y=Y, **options):
    names = ("sample_weight", "query_weight", "propensity", "pairs", "pair_weight")
    data = {name: options.pop(name) for name in names if name in options}
    return RankSVM(**options).fit(X, y, qid=QID, **data)


REFUSED = {
    "huge sample weights": ({"sample_weight": np.full(40, 1e200)}, "weights of all pairs sum to"),
    "huge query weights": ({"query_weight": np.full(4, 1e308)}, "weights of all pairs sum to"),
    "huge pair weights": (
        {"pairs": [[0, 1], [1, 2]], "pair_weight": [1e308, 1e308]},
        "weights of all pairs sum to",
    ),
    "huge costs": ({"pair_cost": lambda a, b: 1e308}, "weights of all pairs sum to"),
    "huge C": ({"C": 1e308}, r"C=1e\+308 times the weights of all pairs"),
    "tiny lam": ({"lam": 1e-307}, r"C=5e\+306 times the weights of all pairs"),
    "lam that is nearly zero": ({"lam": 1e-320}, "lam=1e-320 is too small"),
    "tiny C": (
        {"C": 1e-200, "query_weight": np.full(4, 1e-200)},
        "C=1e-200 times the weights of all pairs, .*e-1.*, is zero",
    ),
    "tiny weights": ({"sample_weight": np.full(40, 1e-200)}, "sample_weight is at most 1e-200, so"),
    "zero weights": (
        {"sample_weight": np.zeros(40)},
        "sample_weight, .*pair_weight is zero for every pair",
    ),
    "zero costs": ({"pair_cost": lambda a, b: 0.0}, "pair_cost, .* is zero for every pair"),
    "ndcg of negative labels": ({"y": Y - 9, "pair_cost": "ndcg"}, r"y\[\d+\] is -9;"),
    "gain of tiny labels": ({"y": Y - 2000, "pair_cost": "gain"}, r"y\[\d+\] is -2000;"),
    "propensities": ({"propensity": np.full(40, 1.5)}, r"propensity\[0\] is 1.5"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_weights_are_not_blamed_on_the_features(options, message):
    with pytest.raises(ValueError, match=message):
        fit(**options)


@pytest.mark.parametrize("options", [{"C": 1e120}, {"sample_weight": np.full(40, 1e60)}])
def test_large_weights_have_the_limit_of_their_fit(options):
    np.testing.assert_allclose(fit(**options).coef_, fit(C=1e8).coef_, rtol=0.02)


@pytest.mark.parametrize("estimator", [RankSVM, SparseRankSVM])
def test_a_start_that_is_not_finite_is_named(estimator):
    model = estimator(warm_start=True).fit(X, Y, qid=QID)
    model.coef_[1] = np.nan
    with pytest.raises(ValueError, match=r"coef_\[1\] is (nan|inf).*warm_start"):
        model.fit(X, Y, qid=QID)


@pytest.mark.parametrize("estimator", [RankSVM, plain_sparse], ids=["RankSVM", "SparseRankSVM"])
@pytest.mark.parametrize("value", [1e160, 1e300])
@pytest.mark.parametrize("rows", [slice(None), 3], ids=["constant", "one entry"])
def test_a_feature_that_overflows_is_named(estimator, value, rows):
    wide = np.column_stack([X, np.zeros(40)])
    wide[rows, 3] = value
    with pytest.raises(ValueError, match=r"X\[:, 3\] has values so large that sums overflow"):
        estimator().fit(wide, Y, qid=QID)


def test_a_store_with_nan_is_named(tmp_path):
    data = RankingData(X.copy(), Y, QID)
    data.X[5, 1] = np.nan  # after the checks
    with pytest.raises(ValueError, match=r"X\[:, 1\] has NaN or infinity"):
        fit_linear(data, Parameters())


def test_margins_that_overflow_are_named():
    with pytest.raises(ValueError, match=r"the loss overflows .*margins or C"):
        fit(y=Y * 1e250, margin="label", C=1e100)


@pytest.mark.parametrize("estimator", [RankSVM, SparseRankSVM, SGDRankSVM])
def test_more_features_than_memory_are_refused_before_any_is_taken(monkeypatch, estimator):
    wide = sp.csr_array(([1.0, 2.0], ([0, 1], [5, 2**31 - 2])), shape=(2, 2**31 - 1))
    monkeypatch.setattr(memory, "available_memory", lambda: 10**10)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"the 2147483647 features of X needs 137.4"):
            estimator().fit(wide, [0, 1])
        assert tracemalloc.get_traced_memory()[1] < 2**28  # less than a byte a feature
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("offset", [1e15, -3e14])
def test_a_common_offset_of_the_labels_does_not_change_the_fit(offset):
    with_margin = {"margin": "label", "C": 0.1}
    shifted = fit(y=Y / 8 + offset, **with_margin)
    np.testing.assert_array_equal(shifted.coef_, fit(y=Y / 8, **with_margin).coef_)


def test_large_integer_labels_are_used_as_they_are():
    with_margin = {"margin": "label", "C": 0.1}
    large = fit(y=Y.astype(np.int64) + 2**60, **with_margin)
    np.testing.assert_array_equal(large.coef_, fit(**with_margin).coef_)
    with pytest.raises(ValueError, match=r"y\[.* gain 2\*\*y"):
        fit(y=Y.astype(np.int64) + 2**60, pair_cost="gain")


@pytest.mark.parametrize("learner", [RankSVM, SparseRankSVM, AdditiveRankSVM, SGDRankSVM])
def test_costs_that_are_all_zero_are_named(learner):
    X, y, qid = make_ranking(5, 4, 3, random_state=0)
    with pytest.raises(ValueError, match=r"cost.* is zero for every"):
        learner().fit(RankingData(X, y, qid, cost=np.zeros(len(y))))


def test_costs_of_text_are_named(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("1 qid:1 cost:0 1:1\n0 qid:1 cost:0 1:2\n")
    with pytest.raises(ValueError, match=r"^cost \(in text, cost:\) is zero for every document"):
        RankSVM().fit(load_letor(path))
