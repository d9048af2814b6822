"""Candidates, judges and the choice."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import ttest_rel
from sklearn.model_selection import GroupShuffleSplit

from marginrank import RankingData, RankSVM, make_ranking, metrics
from marginrank.fit.linear import Parameters
from marginrank.selection.folds import Fold, query_folds
from marginrank.selection.judges import FoldJudge, HeldOutJudge
from marginrank.selection.selection import Grid, Search, grids_of

X, Y, QID = make_ranking(30, 15, 6, noise=1.0, random_state=0)
DATA = RankingData(X, Y, QID)
FOLDS = query_folds(DATA, 3)
CS = np.array([0.001, 0.1, 10.0])


def search_of(grids, judge=None, **options):
    judge = FoldJudge(DATA, FOLDS, "ndcg@5", None) if judge is None else judge
    search = Search(DATA, judge, **options)
    for grid in grids:
        for _ in search.try_grid(grid):
            pass
    return search


def test_a_fold_is_judged_by_its_own_queries():
    judge = FoldJudge(DATA, FOLDS, "average_precision", None)
    w = np.arange(6.0)
    rows = FOLDS[1].test
    expected = metrics.average_precision(Y[rows], X[rows] @ w, qid=QID[rows], ties="average")
    assert judge.score(1, w) == pytest.approx(expected, abs=1e-12)
    np.testing.assert_array_equal(judge.parts[1], FOLDS[1].train)


def test_ties_count_as_in_random_order():
    order = np.lexsort((-Y, QID))
    sorted_data = RankingData(X[order], Y[order], QID[order])
    judge = HeldOutJudge(sorted_data, "ndcg@10", None)
    assert judge.score(0, np.zeros(6)) < 0.8


def test_data_held_out_are_judged_by_models_of_all_data():
    held_out = RankingData(*make_ranking(20, 15, 6, noise=1.0, random_state=1))
    search = search_of([Grid(0, Parameters(tol=1e-8), CS)], HeldOutJudge(held_out, "ndcg@5", None))
    selection = search.selection()
    for C, score in zip(CS, selection.mean, strict=True):
        model = RankSVM(C=C, tol=1e-8).fit(X, Y, qid=QID)
        expected = metrics.ndcg(held_out.y, model.predict(held_out), qid=held_out.qid, k=5)
        assert score == pytest.approx(expected, abs=1e-3)
    assert np.isnan(selection.error).all()
    assert search.compare(selection).n_queries == 20


def test_a_search_that_is_left_chooses_among_what_is_complete():
    search = Search(DATA, FoldJudge(DATA, FOLDS, "ndcg@5", None))
    for trial in search.try_grid(Grid(0, Parameters(), CS)):
        if trial.candidate == 1 and trial.part == 0:
            break
    selection = search.selection()
    assert len(search.candidates) == 3
    assert [candidate.parameters.C for candidate in selection.candidates] == [0.001]


def test_a_search_that_is_left_at_once_has_nothing_to_choose():
    search = Search(DATA, FoldJudge(DATA, FOLDS, "ndcg@5", None))
    with pytest.raises(ValueError, match="no candidate was judged on all"):
        search.selection()


def test_of_equals_the_first_combination_and_its_smallest_C_is_chosen():
    """However late it was tried: finer grids come after coarse ones."""

    def constant(y, scores, qid=None, per_query=False):
        return np.full(np.unique(qid).size, 0.5) if per_query else 0.5

    grids = [Grid(k, Parameters(), np.array(Cs)) for k, Cs in ((1, [0.01]), (0, [1.0]), (0, [0.1]))]
    selection = search_of(grids, FoldJudge(DATA, FOLDS, constant, None)).selection()
    assert (selection.candidates[selection.best].combination, selection.parameters.C) == (0, 0.1)


def test_every_combination_has_a_grid_of_its_own():
    axes = {"loss": ["huber", "logistic"], "normalization": ["none", "pairs"]}
    grids = grids_of(DATA, Parameters(), axes, Cs=None, n_points=5)
    assert [grid.combination for grid in grids] == [0, 1, 2, 3]
    assert [(g.parameters.loss, g.parameters.normalization) for g in grids] == [
        ("huber", "none"),
        ("huber", "pairs"),
        ("logistic", "none"),
        ("logistic", "pairs"),
    ]
    assert grids[1].Cs[0] > 10 * grids[0].Cs[0]
    given = grids_of(DATA, Parameters(), axes, Cs=CS, n_points=5)
    assert all(grid.Cs is CS for grid in given)


def test_lambda_gives_way_to_C():
    search = search_of([Grid(0, Parameters(lam=3.0), CS)])
    chosen = search.selection().parameters
    assert chosen.lam is None
    assert chosen.loss_weight in CS


def test_the_comparison_is_between_models_of_the_folds():
    search = search_of([Grid(0, Parameters(), CS)])
    selection = search.selection()
    found = search.compare(selection)
    values = []
    for k in (selection.best, selection.runner_up):
        scores = np.empty(len(Y))
        for fold, w in zip(FOLDS, search.models(selection.candidates[k]), strict=True):
            scores[fold.test] = X[fold.test] @ w
        values.append(metrics.ndcg(Y, scores, qid=QID, k=5, ties="average"))
    assert (found.mean_a, found.mean_b) == pytest.approx(values, abs=1e-12)


def test_a_single_candidate_has_no_runner_up():
    search = search_of([Grid(0, Parameters(), CS[:1])])
    selection = search.selection()
    assert selection.runner_up is None
    assert search.compare(selection) is None


def test_documents_without_a_pair_judge_nothing():
    labels = np.where(QID < 2, Y, 0)  # NDCG is 0, not nan, where nothing is relevant
    data = RankingData(X, labels, QID)
    judge = FoldJudge(data, [Fold(1, np.flatnonzero(QID < 2), np.flatnonzero(QID > 1))], "ndcg", 1)
    assert np.isnan(judge.score(0, np.ones(6)))
    nothing = RankingData(X, np.zeros(len(Y)), QID)
    assert np.isnan(HeldOutJudge(nothing, "ndcg", None).score(0, np.ones(6)))


def ndcg_of_long_weights(y, scores, qid=None, per_query=False):
    """Return NDCG, which has no value for small scores."""
    values = metrics.ndcg(y, scores, qid=qid, per_query=True)
    values = values if np.ptp(scores) > 0.5 else np.full_like(values, np.nan)
    return values if per_query else float(np.mean(values))


@pytest.mark.parametrize("Cs", [[1e-30, 0.01, 1.0], [1e-30, 1.0]])
def test_candidates_without_a_mean_are_no_runners_up(Cs):
    judge = FoldJudge(DATA, FOLDS, ndcg_of_long_weights, None)
    search = search_of([Grid(0, Parameters(), np.array(Cs))], judge)
    selection = search.selection()
    assert np.isnan(selection.mean[0])
    found = search.compare(selection)
    if len(Cs) == 2:
        assert selection.runner_up is None
        assert found is None
    else:
        assert selection.runner_up == 3 - selection.best
        assert found.difference >= 0


def test_models_without_a_value_are_not_compared():
    judge = FoldJudge(DATA, FOLDS, ndcg_of_long_weights, None)
    large, small = [np.ones(6)] * 3, [np.full(6, 1e-9)] * 3
    assert judge.compare(large, large) is not None
    assert judge.compare(large, small) is None
    assert judge.compare(small, large) is None


def test_a_selection_does_not_hold_the_weights():
    n_features = 10_000
    wide = sp.csr_array((X.ravel(), np.tile(np.arange(6), len(X)), 6 * np.arange(len(X) + 1)))
    wide.resize((len(X), n_features))
    data = RankingData(wide, Y, QID)
    judge = FoldJudge(data, FOLDS, "ndcg@5", None)
    search = Search(data, judge)
    for _ in search.try_grid(Grid(0, Parameters(), CS)):
        pass
    selection = search.selection()
    assert len(pickle.dumps(selection)) < 8 * n_features
    assert search.compare(selection) is not None


def test_a_query_in_several_folds_is_one_observation():
    splits = GroupShuffleSplit(7, random_state=0).split(X, Y, QID)
    folds = [Fold(k, *rows) for k, rows in enumerate(splits, 1)]
    judge = FoldJudge(DATA, folds, "ndcg@5", None)
    a, b = np.random.default_rng(0).standard_normal((2, 7, 6))
    found = judge.compare(a, b)
    by_query = {}
    for k, fold in enumerate(folds):
        for q in np.unique(QID[fold.test]):
            rows = np.flatnonzero(np.isin(QID, q))
            values = [metrics.ndcg(Y[rows], X[rows] @ w[k], k=5) for w in (a, b)]
            by_query.setdefault(q, []).append(values)
    means = np.array([np.mean(values, axis=0) for values in by_query.values()])
    assert found.n_queries == len(by_query)
    assert (found.mean_a, found.mean_b) == pytest.approx(means.mean(axis=0), abs=1e-12)
    expected = ttest_rel(*means.T)
    assert found.t_test_p == pytest.approx(expected.pvalue, rel=1e-6)
