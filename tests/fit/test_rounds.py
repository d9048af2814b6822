"""Problems in rounds, against what they are over explicit pairs."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from helpers.brute_force import BruteForce, ExplicitPairs, explicit_pairs

from marginrank import RankingData, learning_curve_ranking, make_ranking
from marginrank.fit.inputs import objective_on
from marginrank.fit.linear import Parameters, fit_linear, minimize, preferences_of
from marginrank.fit.rounds import MOST_ROUNDS, PATIENCE, Problems, Top, fit_in_rounds
from marginrank.metrics import ndcg
from marginrank.metrics.ranking import ranks
from marginrank.models.fit_report import StopReason
from marginrank.objective.losses import LOSSES

K, C = 3, 0.1
X, Y, QID = make_ranking(20, 12, 5, noise=2.0, random_state=0)
DATA = RankingData(X, Y, QID)


def fit(data=DATA, k=K, *, callback=None, propensity=None, **options):
    parameters = Parameters(**{"objective": f"ndcg@{k}", "C": C, "n_jobs": 1, **options})
    return fit_linear(data, parameters, callback=callback, propensity=propensity)


def training_ndcg(w, data=DATA, k=K):
    return ndcg(data.y, data.X @ w, qid=data.qid, k=k, ties="average")


def discounts_of(w):
    """Return the discounts of the ranks, where no scores are tied."""
    rank = ranks(X @ w, qid=QID)
    return np.where(rank <= K, 1.0 / np.log2(1.0 + rank), 0.0)


def problems_that_tell(asked, parameters, data=DATA):
    """Return problems that put into `asked` what is to be solved, where from, and the result."""

    def solve(chosen, w0, callback):
        objective = objective_on(data, chosen, C=parameters.C)
        found = minimize(objective, parameters, scale=None, seed=0, w0=w0, callback=callback)
        asked.append((chosen, w0, *found))
        return found

    return Problems(partial(preferences_of, data, parameters), solve, lambda w: data.X @ w)


def weighted_by(discount, total):
    """Write down the pairs that some discounts weigh, with a sum of weights."""
    pairs = explicit_pairs(Y, QID)
    i, j = pairs.preferred, pairs.other
    ideal = {
        q: np.sort(2.0 ** Y[q == QID] - 1.0)[::-1][:K] @ (1.0 / np.log2(np.arange(2, K + 2)))
        for q in np.unique(QID)
    }
    weight = (2.0 ** Y[i] - 2.0 ** Y[j]) * (discount[i] + discount[j])
    weight /= [ideal[q] for q in QID[i]]
    return ExplicitPairs(i, j, weight * (total / weight.sum()), pairs.shift)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_every_problem_is_certified_over_the_pairs_that_the_mean_discounts_weigh(loss):
    asked = []
    parameters = Parameters(objective=f"ndcg@{K}", C=C, loss=loss, n_jobs=1)
    fit_in_rounds(problems_that_tell(asked, parameters), Top(DATA, K, 1), w0=None, callback=None)
    total = float(np.sum(preferences_of(DATA, Parameters(pair_cost="ndcg")).pairs.weights))
    discounts = [discounts_of(w) for _, _, w, _ in asked]
    assert len(asked) > 2
    for n, (_, w0, w, report) in enumerate(asked[1:], 1):
        brute = BruteForce(X, weighted_by(np.mean(discounts[:n], axis=0), total), LOSSES[loss], C)
        assert report.objective == pytest.approx(brute.value(w), rel=1e-9)
        gradient = brute.gradient(w)
        assert 0.5 * gradient @ gradient <= report.gap + 1e-12 * report.objective
        assert report.stop_reason.converged
        np.testing.assert_array_equal(w0, asked[n - 1][2])


def test_the_first_problem_is_that_of_the_fixed_cost():
    first = []
    problems = problems_that_tell(first, Parameters(objective=f"ndcg@{K}", C=C, n_jobs=1))
    fit_in_rounds(problems, Top(DATA, K, 1), w0=None, callback=None)
    plain = fit(objective="pairs", pair_cost="ndcg")
    np.testing.assert_array_equal(first[0][2], plain.coef)
    assert plain.report.n_rounds is None


def test_the_best_ranking_of_the_training_queries_is_kept():
    asked = []
    parameters = Parameters(objective=f"ndcg@{K}", C=C, n_jobs=1)
    w, report = fit_in_rounds(
        problems_that_tell(asked, parameters), Top(DATA, K, 1), w0=None, callback=None
    )
    values = [training_ndcg(w) for _, _, w, _ in asked]
    best = int(np.argmax(values))
    np.testing.assert_array_equal(w, asked[best][2])
    assert (report.objective, report.gap) == (asked[best][3].objective, asked[best][3].gap)
    assert report.n_rounds == len(asked) == min(best + 1 + PATIENCE, MOST_ROUNDS)
    assert values[best] > values[0]


@pytest.mark.parametrize("normalization", ["none", "pairs", "query"])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_the_ranking_is_no_worse_than_that_of_the_fixed_cost(loss, normalization):
    C = {"none": 0.1, "pairs": 10.0, "query": 10.0}[normalization]
    how = {"loss": loss, "normalization": normalization, "C": C, "tol": 1e-4}
    start = fit(objective="pairs", pair_cost="ndcg", **how)
    assert training_ndcg(fit(**how).coef) >= training_ndcg(start.coef)


def test_C_weighs_the_weight_of_the_first_problem_in_all():
    total = float(np.sum(preferences_of(DATA, Parameters(pair_cost="ndcg")).pairs.weights))
    mean = fit(normalization="pairs", C=C * total, tol=1e-10)
    np.testing.assert_allclose(mean.coef, fit(tol=1e-10).coef, rtol=1e-4)


def test_a_learning_curve_ends_with_the_fit_to_all_queries():
    how = {"objective": f"ndcg@{K}", "C": C, "tol": 1e-10}
    curve = learning_curve_ranking(
        DATA, validation=DATA, sizes=[0.5, 1.0], cv=1, metric=f"ndcg@{K}", **how
    )
    some = np.isin(QID, [q for q in np.unique(QID) if len(np.unique(Y[q == QID])) > 1])
    paired = RankingData(X[some], Y[some], QID[some])
    expected = training_ndcg(fit(tol=1e-10).coef, paired)
    assert curve.train_mean[-1] == pytest.approx(expected, abs=1e-6)


def test_history_and_callback_count_on():
    told = []
    found = fit(callback=told.append)
    history = found.report.history
    assert [line.iteration for line in history] == list(range(1, len(history) + 1))
    assert all(a.seconds <= b.seconds and a.sweeps <= b.sweeps for a, b in pairwise(history))
    assert found.report.n_iter == sum(line.fraction == 1.0 for line in history)
    assert told == history


def test_the_same_bits_again_and_with_other_threads():
    first = fit().coef
    np.testing.assert_array_equal(fit().coef, first)
    np.testing.assert_array_equal(fit(n_jobs=2).coef, first)


def test_the_order_of_rows_does_not_matter():
    order = np.random.default_rng(0).permutation(len(Y))
    shuffled = fit(RankingData(X[order], Y[order], QID[order]), tol=1e-10)
    np.testing.assert_allclose(shuffled.coef, fit(tol=1e-10).coef, rtol=1e-4)


def test_queries_without_relevant_documents_or_with_one_document_say_nothing():
    more = np.concatenate([X, np.random.default_rng(0).normal(size=(9, X.shape[1]))])
    labels = np.concatenate([Y, np.zeros(8), [3.0]])
    data = RankingData(more, labels, np.concatenate([QID, np.full(8, 100), [101]]))
    np.testing.assert_allclose(fit(data).coef, fit().coef, rtol=1e-6)


def test_queries_of_no_weight_say_nothing():
    weight = np.where(np.arange(20) < 10, 1.0, 0.0)
    found = fit(RankingData(X, Y, QID, query_weight=weight), tol=1e-10)
    some = np.isin(QID, np.unique(QID)[:10])
    alone = fit(RankingData(X[some], Y[some], QID[some]), tol=1e-10)
    np.testing.assert_allclose(found.coef, alone.coef, rtol=1e-4)
    assert found.report.n_rounds == alone.report.n_rounds


def test_a_cutoff_beyond_all_queries_is_that_of_the_longest():
    np.testing.assert_array_equal(fit(k=1000).coef, fit(k=12).coef)


def test_margins_and_propensities_go_with_it():
    propensity = np.random.default_rng(0).uniform(0.5, 1.0, len(Y))
    plain = fit().coef
    for how in ({"margin": "label"}, {"propensity": propensity}):
        found = fit(**how)
        assert found.report.stop_reason.converged
        assert not np.allclose(found.coef, plain)


class TestTop:
    """Discounts of documents."""

    def test_ties_share_the_mean_discount_of_their_ranks(self):
        data = RankingData(np.zeros((4, 1)), [0.0, 1.0, 2.0, 3.0], [0, 0, 0, 0])
        discounts = Top(data, 2, 1).discounts(np.array([0.0, 1.0, 1.0, 2.0]))
        np.testing.assert_allclose(discounts, [0.0, 0.5 / np.log2(3), 0.5 / np.log2(3), 1.0])

    def test_all_documents_tied_have_the_same(self):
        data = RankingData(np.zeros((4, 1)), [0.0, 1.0, 2.0, 3.0], [0, 0, 0, 0])
        np.testing.assert_allclose(Top(data, 1, 1).discounts(np.zeros(4)), 0.25)

    def test_rows_of_a_query_may_be_apart(self):
        data = RankingData(np.zeros((4, 1)), [0.0, 1.0, 2.0, 3.0], ["b", "a", "b", "a"])
        discounts = Top(data, 1, 1).discounts(np.array([4.0, 1.0, 3.0, 2.0]))
        np.testing.assert_array_equal(discounts, [1.0, 0.0, 0.0, 1.0])

    def test_queries_weigh_in_the_mean_of_ndcg(self):
        y, qid, weight = [0.0, 1.0, 1.0, 0.0], [0, 0, 1, 1], [3.0, 1.0]
        data = RankingData(np.zeros((4, 1)), y, qid, query_weight=weight)
        value = Top(data, 1, 1).ndcg(np.array([1.0, 0.0, 1.0, 0.0]))
        assert value == pytest.approx(0.25)


class Interrupting:
    """A callback that presses Ctrl-C when a problem has come to its end."""

    def __init__(self, n_lines):
        self.n_lines = n_lines

    def __call__(self, line):
        if line.iteration == self.n_lines:
            raise KeyboardInterrupt


def test_an_interrupt_keeps_the_best_problem_so_far():
    start = fit(objective="pairs", pair_cost="ndcg")
    n_lines = len(start.report.history) + 1
    found = fit(callback=Interrupting(n_lines))
    assert found.report.stop_reason is StopReason.INTERRUPTED
    assert found.report.n_rounds == 2
    np.testing.assert_array_equal(found.coef, start.coef)


def test_an_interrupt_between_problems_keeps_the_best_so_far():
    def score(w):
        if len(asked) == 2:
            raise KeyboardInterrupt
        return X @ w

    asked = []
    problems = problems_that_tell(asked, Parameters(objective=f"ndcg@{K}", C=C, n_jobs=1))
    problems = problems._replace(score=score)
    w, report = fit_in_rounds(problems, Top(DATA, K, 1), w0=None, callback=None)
    assert report.stop_reason is StopReason.INTERRUPTED
    np.testing.assert_array_equal(w, asked[0][2])
