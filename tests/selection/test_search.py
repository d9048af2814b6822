"""Candidates, their scores and the selected one."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import ttest_rel
from sklearn.model_selection import GroupShuffleSplit

from marginrank import RankingData, RankSVM, _core, make_ranking, metrics
from marginrank.fit.linear import Parameters
from marginrank.selection.folds import Fold, query_folds
from marginrank.selection.scoring import Split, SplitScorer, fold_splits
from marginrank.selection.search import Search
from marginrank.selection.space import PathGrid, SearchSpace

X, Y, QID = make_ranking(30, 15, 6, noise=1.0, random_state=0)
DATA = RankingData(X, Y, QID)
FOLDS = query_folds(DATA, 3)
CS = np.array([0.001, 0.1, 10.0])


def by_folds(metric="ndcg@5", data=DATA, folds=FOLDS):
    return SplitScorer(fold_splits(data, folds), metric)


def by_held_out(data, metric):
    return SplitScorer([Split(None, data)], metric)


def search_of(space, scorer=None, data=DATA):
    search = Search(data, space, by_folds() if scorer is None else scorer)
    for _ in search.run():
        pass
    return search


def space_of(values=CS, **parameters):
    return SearchSpace(Parameters(**parameters), {}, values, search_tol=parameters.get("tol", 1e-6))


def test_a_fold_is_scored_on_its_own_queries():
    scorer = by_folds("average_precision")
    w = np.arange(6.0)
    rows = FOLDS[1].test
    expected = metrics.average_precision(Y[rows], X[rows] @ w, qid=QID[rows], ties="average")
    assert scorer.score(1, w) == pytest.approx(expected, abs=1e-12)
    np.testing.assert_array_equal(scorer.parts[1], FOLDS[1].train)


def test_ties_count_as_in_random_order():
    order = np.lexsort((-Y, QID))
    sorted_data = RankingData(X[order], Y[order], QID[order])
    scorer = by_held_out(sorted_data, "ndcg@10")
    assert scorer.score(0, np.zeros(6)) < 0.8


def test_held_out_data_are_scored_by_models_of_all_data():
    held_out = RankingData(*make_ranking(20, 15, 6, noise=1.0, random_state=1))
    search = search_of(space_of(tol=1e-8), by_held_out(held_out, "ndcg@5"))
    result = search.result()
    for C, score in zip(CS, result.mean, strict=True):
        model = RankSVM(C=C, tol=1e-8).fit(X, Y, qid=QID)
        expected = metrics.ndcg(held_out.y, model.predict(held_out), qid=held_out.qid, k=5)
        assert score == pytest.approx(expected, abs=1e-3)
    assert np.isnan(result.error).all()
    assert result.comparison.n_queries == 20


def test_a_search_that_is_left_chooses_among_what_is_complete():
    search = Search(DATA, space_of(), by_folds())
    for candidate in search.run():
        if candidate.value == CS[1] and candidate.tried[0]:
            break
    result = search.result()
    assert len(search.candidates) == 3
    assert [candidate.parameters.C for candidate in result.candidates] == [0.001]


def test_a_search_that_is_left_at_once_has_nothing_to_choose():
    search = Search(DATA, space_of(), by_folds())
    with pytest.raises(ValueError, match="no candidate was scored on all"):
        search.result()


def test_of_equals_the_first_combination_and_its_smallest_C_is_chosen():
    """However late it was tried: finer grids come after coarse ones."""

    def constant(y, scores, qid=None, per_query=False):
        return np.full(np.unique(qid).size, 0.5) if per_query else 0.5

    search = Search(DATA, space_of(), by_folds(constant))
    for k, Cs in ((1, [0.01]), (0, [1.0]), (0, [0.1])):
        for _ in search.try_grid(PathGrid(k, Parameters(), np.array(Cs))):
            pass
    result = search.result()
    assert (result.candidates[result.best_index].combination, result.parameters.C) == (0, 0.1)


def test_every_combination_has_a_grid_of_its_own():
    axes = {"loss": ["huber", "logistic"], "normalization": ["none", "pairs"]}
    grids = list(SearchSpace(Parameters(), axes, n_points=5).grids(DATA, None, coarse=False))
    assert [grid.combination for grid in grids] == [0, 1, 2, 3]
    assert [(g.parameters.loss, g.parameters.normalization) for g in grids] == [
        ("huber", "none"),
        ("huber", "pairs"),
        ("logistic", "none"),
        ("logistic", "pairs"),
    ]
    assert grids[1].values[0] > 10 * grids[0].values[0]
    for grid in SearchSpace(Parameters(), axes, CS).grids(DATA, None, coarse=False):
        np.testing.assert_array_equal(grid.values, CS)


def test_lambda_gives_way_to_C():
    best = search_of(space_of(lam=3.0)).result().parameters
    assert best.lam is None
    assert best.loss_weight in CS


def test_the_comparison_is_between_models_of_the_folds():
    search = search_of(space_of())
    result = search.result()
    found = result.comparison
    values = []
    for k in (result.best_index, result.runner_up):
        scores = np.empty(len(Y))
        for fold, w in zip(FOLDS, search.models(result.candidates[k]), strict=True):
            scores[fold.test] = X[fold.test] @ w
        values.append(metrics.ndcg(Y, scores, qid=QID, k=5, ties="average"))
    assert (found.mean_a, found.mean_b) == pytest.approx(values, abs=1e-12)


def test_a_single_candidate_has_no_runner_up():
    search = search_of(space_of(CS[:1]))
    result = search.result()
    assert result.runner_up is None
    assert result.comparison is None


def test_documents_without_a_pair_have_no_score():
    labels = np.where(QID < 2, Y, 0)  # NDCG is 0, not nan, where nothing is relevant
    data = RankingData(X, labels, QID)
    folds = [Fold(1, np.flatnonzero(QID < 2), np.flatnonzero(QID > 1))]
    scorer = by_folds("ndcg", data, folds)
    assert np.isnan(scorer.score(0, np.ones(6)))
    nothing = RankingData(X, np.zeros(len(Y)), QID)
    assert np.isnan(by_held_out(nothing, "ndcg").score(0, np.ones(6)))


def ndcg_of_long_weights(y, scores, qid=None, per_query=False):
    """Return NDCG, which has no value for small scores."""
    values = metrics.ndcg(y, scores, qid=qid, per_query=True)
    values = values if np.ptp(scores) > 0.5 else np.full_like(values, np.nan)
    return values if per_query else float(np.mean(values))


@pytest.mark.parametrize("Cs", [[1e-30, 0.01, 1.0], [1e-30, 1.0]])
def test_candidates_without_a_mean_are_no_runners_up(Cs):
    scorer = by_folds(ndcg_of_long_weights)
    search = search_of(space_of(Cs), scorer)
    result = search.result()
    assert np.isnan(result.mean[0])
    found = result.comparison
    if len(Cs) == 2:
        assert result.runner_up is None
        assert found is None
    else:
        assert result.runner_up == 3 - result.best_index
        assert found.difference >= 0


def test_models_without_a_value_are_not_compared():
    scorer = by_folds(ndcg_of_long_weights)
    large, small = [np.ones(6)] * 3, [np.full(6, 1e-9)] * 3
    assert scorer.compare(large, large) is not None
    assert scorer.compare(large, small) is None
    assert scorer.compare(small, large) is None


def test_a_result_does_not_hold_the_weights():
    n_features = 10_000
    wide = sp.csr_array((X.ravel(), np.tile(np.arange(6), len(X)), 6 * np.arange(len(X) + 1)))
    wide.resize((len(X), n_features))
    data = RankingData(wide, Y, QID)
    search = search_of(space_of(), by_folds(data=data), data)
    result = search.result()
    assert len(pickle.dumps(result)) < 8 * n_features
    assert result.comparison is not None


def test_a_query_in_several_folds_is_one_observation():
    splits = GroupShuffleSplit(7, random_state=0).split(X, Y, QID)
    folds = [Fold(k, *rows) for k, rows in enumerate(splits, 1)]
    scorer = by_folds(folds=folds)
    a, b = np.random.default_rng(0).standard_normal((2, 7, 6))
    found = scorer.compare(a, b)
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


def test_scores_take_as_many_threads_as_n_jobs(monkeypatch):
    threads = []

    def rank(values, offsets, n_threads):
        threads.append(n_threads)
        return rank_documents(values, offsets, n_threads)

    rank_documents = _core.rank_documents
    for n_jobs in (1, 3):
        scorer = SplitScorer([Split(None, DATA)], "ndcg@10", n_jobs)
        with monkeypatch.context() as patched:
            patched.setattr(_core, "rank_documents", rank)
            scorer.score(0, np.ones(DATA.n_features))
        assert set(threads) == {n_jobs}
        threads.clear()
