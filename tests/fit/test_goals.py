"""The parameter `objective`, and what does not go with it."""

import pytest

from marginrank import RankingData, RankSVM, make_ranking
from marginrank._utils.parameters import ParameterError
from marginrank.data.pair_lists import check_pairs
from marginrank.fit.linear import Parameters, fit_linear
from marginrank.models.parameters import ndcg_cutoff

X, Y, QID = make_ranking(6, 10, 3, random_state=0)


@pytest.mark.parametrize(
    ("objective", "k"), [("pairs", None), ("ndcg@1", 1), ("ndcg@10", 10), ("ndcg@1000", 1000)]
)
def test_cutoffs(objective, k):
    assert ndcg_cutoff(objective) == k


@pytest.mark.parametrize(
    "wrong", ["ndcg", "ndcg@", "ndcg@0", "ndcg@-1", "ndcg@2.5", "ndcg@ 5", "map@10", "", None, 10]
)
def test_anything_else_is_refused(wrong):
    with pytest.raises(ParameterError, match=r"objective=.* must be 'pairs'"):
        Parameters(objective=wrong)


@pytest.mark.parametrize(
    ("other", "value"),
    [("pair_cost", "gain"), ("pair_cost", "ndcg"), ("pair_selection", "adjacent")],
)
def test_parameters_that_weigh_pairs_themselves_are_refused(other, value):
    model = RankSVM(objective="ndcg@5", **{other: value})
    with pytest.raises(ValueError, match=f"objective='ndcg@5'.*{other}"):
        model.fit(X, Y, qid=QID)


def test_pairs_without_labels_are_refused():
    with pytest.raises(ValueError, match=r"objective='ndcg@5'.*pairs"):
        RankSVM(objective="ndcg@5").fit(X, pairs=[[0, 1]], qid=QID)
    pairs = check_pairs([[0, 1]], None, len(Y))
    with pytest.raises(ValueError, match=r"objective='ndcg@5'.*pairs"):
        fit_linear(RankingData(X, Y, QID), Parameters(objective="ndcg@5"), pairs=pairs)


def test_documents_that_stay_on_disk_are_refused(tmp_path):
    RankingData(X, Y, QID).save(tmp_path / "s.store")
    model = RankSVM(objective="ndcg@5")
    with pytest.raises(ValueError, match=r"objective='ndcg@5'.*memory_limit"):
        model.fit(tmp_path / "s.store", memory_limit="1GB")
    mapped = model.fit(tmp_path / "s.store").coef_
    assert (mapped == RankSVM(objective="ndcg@5").fit(X, Y, qid=QID).coef_).all()


def test_labels_below_zero_are_refused():
    with pytest.raises(ValueError, match=r"y\[\d+\] is -.*NDCG"):
        RankSVM(objective="ndcg@5").fit(X, Y - 1, qid=QID)
