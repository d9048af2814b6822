"""Learning curves, by a loop over sizes and folds written out."""

from dataclasses import replace

import numpy as np
import pytest

from marginrank import RankingData, RankSVM, learning_curve_ranking, make_ranking, metrics
from marginrank.fit.linear import seed_from
from marginrank.selection import learning_curve as learning_curve_module
from marginrank.selection.folds import query_folds
from marginrank.selection.learning_curve import LearningCurve

X, Y, QID = make_ranking(40, (5, 15), 6, random_state=0)
NAMES = np.array([f"query {q}" for q in QID])
DATA = RankingData(X, Y, NAMES)
HAS_PAIRS = (DATA.queries.n_pairs > 0)[DATA.qid]


def pairs_of(rows):
    return RankingData(X[rows], Y[rows], QID[rows]).n_pairs


@pytest.fixture(scope="module")
def seen():
    """Return curve and, for each fit, the documents that it was given and its parameters."""
    fits = []
    fit_linear = learning_curve_module.fit_linear

    def watched(data, parameters, **options):
        fits.append((data, parameters, options))
        return fit_linear(data, parameters, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning_curve_module, "fit_linear", watched)
        curve = learning_curve_ranking(X, Y, qid=NAMES, cv=3, C=1e-3, sizes=[5, 10, 20])
    return curve, fits


def test_samples_are_nested_whole_queries_outside_the_fold(seen):
    curve, fits = seen
    assert curve.sizes.tolist() == [5, 10, 20]
    assert len(fits) == 9
    folds = query_folds(DATA, 3, seed=seed_from(0))
    for f, fold in enumerate(folds):
        smaller = set()
        for k, size in enumerate(curve.sizes):
            data = fits[3 * f + k][0]
            queries = set(data.query_ids.tolist())
            assert len(queries) == size
            assert smaller < queries
            assert not queries & set(NAMES[fold.test])
            whole = np.flatnonzero(np.isin(NAMES, list(queries)))
            np.testing.assert_array_equal(data.X, X[whole])
            assert curve.n_pairs[k, f] == data.n_pairs == pairs_of(whole)
            smaller = queries


def test_scores_are_those_of_models_with_the_same_weight_of_a_pair(seen):
    curve, fits = seen
    for f, fold in enumerate(query_folds(DATA, 3, seed=seed_from(0))):
        for k in range(3):
            data = fits[3 * f + k][0]
            rows = np.flatnonzero(np.isin(NAMES, data.query_ids))
            C = 1e-3 * DATA.n_pairs / data.n_pairs
            alone = RankSVM(C=C).fit(X[rows], Y[rows], qid=QID[rows])
            judged = fold.test[HAS_PAIRS[fold.test]]
            for scores, part in ((curve.train_scores, rows), (curve.valid_scores, judged)):
                expected = metrics.ndcg(Y[part], alone.predict(X[part]), qid=QID[part], k=10)
                assert scores[k, f] == pytest.approx(expected, abs=2e-3)
    for name, scores in (("train", curve.train_scores), ("valid", curve.valid_scores)):
        np.testing.assert_allclose(getattr(curve, f"{name}_mean"), scores.mean(axis=1))
        error = scores.std(axis=1, ddof=1) / np.sqrt(3)
        np.testing.assert_allclose(getattr(curve, f"{name}_error"), error)


@pytest.mark.parametrize(
    "options",
    [
        {"C": 1e-3},
        {"lam": 20.0},
        {"C": 2.0, "normalization": "pairs"},
        {"C": 2.0, "normalization": "query", "pair_cost": "gain"},
        {"C": 1e-4, "pair_cost": "gain", "pair_selection": "adjacent"},
    ],
    ids=str,
)
def test_with_all_queries_it_is_the_fit_that_was_asked_for(options):
    """The last point of a curve of all data is what RankSVM gives, weights and costs included."""
    weight = np.random.default_rng(0).uniform(0.5, 2, len(Y))
    by_query = np.random.default_rng(1).uniform(0.5, 2, 40)
    data = RankingData(X, Y, QID, sample_weight=weight, query_weight=by_query)
    curve = learning_curve_ranking(
        data, validation=(X, Y, QID), cv=2, sizes=[0.5, 1.0], metric="pairwise_accuracy", **options
    )
    alone = RankSVM(**options).fit(data)
    expected = metrics.pairwise_accuracy(Y, alone.predict(X), qid=QID)
    np.testing.assert_allclose(curve.valid_scores[-1], expected, atol=1e-3)
    assert curve.valid_scores[0, 0] != curve.valid_scores[0, 1]  # other halves


def test_costs_are_of_all_labels_where_a_sample_lacks_some():
    labels = np.where(QID == 0, Y, np.minimum(Y, 1))
    n = np.unique(labels).size
    cost = np.tril(np.ones((n, n)), -1)
    by_matrix = learning_curve_ranking(X, labels, qid=QID, cv=2, pair_cost=cost)
    plain = learning_curve_ranking(X, labels, qid=QID, cv=2)
    np.testing.assert_allclose(by_matrix.valid_scores, plain.valid_scores, atol=1e-3)


def test_samples_do_not_depend_on_the_order_of_the_rows():
    order = np.random.default_rng(0).permutation(len(Y))
    expected = learning_curve_ranking(X, Y, qid=NAMES, cv=2)
    shuffled = learning_curve_ranking(X[order], Y[order], qid=NAMES[order], cv=2)
    np.testing.assert_array_equal(shuffled.n_pairs, expected.n_pairs)
    np.testing.assert_allclose(shuffled.valid_scores, expected.valid_scores, atol=1e-3)
    other = learning_curve_ranking(X, Y, qid=NAMES, cv=2, random_state=1)
    assert other.n_pairs.tolist() != expected.n_pairs.tolist()


def test_queries_without_a_pair_are_not_counted():
    labels = np.where(QID % 2, Y, 1)
    curve = learning_curve_ranking(X, labels, qid=QID, validation=(X, Y, QID), cv=1)
    n = np.count_nonzero(RankingData(X, labels, QID).queries.n_pairs)
    assert curve.sizes[-1] == n < 20
    assert curve.n_pairs[-1, 0] == RankingData(X, labels, QID).n_pairs
    with pytest.raises(ValueError, match="queries with pairs, got 1"):
        learning_curve_ranking(X, np.where(QID == 3, Y, 1), qid=QID, validation=(X, Y, QID))
    with pytest.raises(ValueError, match="queries with pairs, got 1"):
        learning_curve_ranking(X, Y)


@pytest.mark.parametrize(
    ("n_queries", "expected"),
    [
        (160, [5, 10, 20, 40, 80, 160]),
        (25, [2, 4, 7, 13, 25]),
        (4, [2, 4]),
        (3, [1, 2, 3]),
        (2, [1, 2]),
    ],
)
def test_sizes_double_by_default(n_queries, expected):
    assert learning_curve_module._sizes(None, n_queries).tolist() == expected


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([], "must be a list of positive numbers"),
        ([0, 5], "must be a list of positive numbers"),
        (["many"], "must be a list of positive numbers"),
        ([2.5, 5], "sizes .*up to 18 "),
        ([5, 21], "sizes .*up to 18 "),
        ([1.0], "sizes .*one size"),
    ],
)
def test_wrong_sizes_are_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        learning_curve_ranking(X, Y, qid=QID, cv=2, sizes=sizes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": -1.0}, "C=-1.0 must be"),
        ({"loss": "cross_entropy"}, "loss"),
        ({"metric": "ngcd"}, "metric 'ngcd' is not known"),
        ({"cv": 41}, "41 folds need as many queries"),
        ({"cv": 0, "validation": (X, Y, QID)}, "cv=0 must be an integer of at least 1"),
        ({"validation": (X[:, :2], Y, QID)}, "validation has 2 features, but X has 6"),
        ({"random_state": -1}, "random_state=-1 must be"),
    ],
)
def test_wrong_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        learning_curve_ranking(X, Y, qid=QID, **options)


def test_unknown_parameters_are_refused_by_name():
    with pytest.raises(TypeError, match="learning_curve_ranking has no parameter 'foo'"):
        learning_curve_ranking(X, Y, qid=QID, foo=1)


def test_progress_counts_the_fits():
    told = []
    learning_curve_ranking(
        X,
        Y,
        qid=QID,
        cv=2,
        sizes=[3, 6, 12],
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(k, 6) for k in range(1, 7)]


def test_fits_that_stop_early_are_told_of():
    with pytest.warns(UserWarning, match=r"6 of 6 fits did not .*max_iter") as caught:
        learning_curve_ranking(X, Y, qid=QID, cv=2, sizes=[3, 6, 12], max_iter=1, tol=1e-12)
    assert caught[0].filename == __file__


def curve_of(valid, sizes=(10, 20, 40)):
    nothing = np.zeros(len(sizes))
    valid = np.asarray(valid, dtype=np.float64)
    scores = valid, valid, valid
    return LearningCurve(
        "ndcg@10", np.array(sizes), *scores, nothing, nothing, np.nanmean(valid, axis=1), nothing
    )


def test_the_gain_is_that_of_the_last_doubling_fold_by_fold():
    curve = curve_of([[0.1, 0.2], [0.5, 0.6], [0.6, 0.9]])
    assert curve.gain == (20, 40, pytest.approx(0.2), pytest.approx(0.1))
    assert replace(curve, sizes=np.array([10, 13, 25])).gain.before == 13
    assert replace(curve, sizes=np.array([10, 30, 40])).gain.before == 10
    assert replace(curve, sizes=np.array([30, 35, 40])).gain.before == 30
    with_gap = curve_of([[0.1, np.nan, 0.1], [0.2, np.nan, 0.4]], (1, 2))
    assert with_gap.gain.mean == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("last", "sentence"),
    [
        (
            [0.61, 0.62, 0.63],
            "More queries would likely help: from 20 to 40 queries, ndcg@10 changed by "
            "+0.0200 ± 0.0058.",
        ),
        (
            [0.59, 0.62, 0.6],
            "It is unclear whether more queries would help: from 20 to 40 queries, ndcg@10 "
            "changed by +0.0033 ± 0.0088, which may be chance.",
        ),
        (
            [0.6, 0.601, 0.601],
            "More queries would likely not help: from 20 to 40 queries, ndcg@10 changed by "
            "+0.0007 ± 0.0003.",
        ),
        (
            [0.6, 0.6, 0.6],
            "More queries would likely not help: from 20 to 40 queries, ndcg@10 changed by "
            "+0.0000 ± 0.0000.",
        ),
        (
            [0.5, 0.51, 0.52],
            "More queries made the model worse; check whether all are alike: from 20 to 40 "
            "queries, ndcg@10 changed by -0.0900 ± 0.0058.",
        ),
    ],
)
def test_the_verdict_weighs_the_gain_against_its_error(last, sentence):
    assert curve_of([[0.5] * 3, [0.6] * 3, last]).verdict == sentence


def test_the_error_of_a_gain_on_validation_data_is_over_its_queries():
    """Not over orders, which all end with the same model."""
    held_out = RankingData(*make_ranking(25, 10, 6, random_state=1))
    options = {"validation": held_out, "sizes": [10, 20, 30], "C": 1e-3}
    curve = learning_curve_ranking(X, Y, qid=QID, cv=3, **options)
    assert curve.valid_by_query.shape == (3, np.count_nonzero(held_out.queries.n_pairs))
    np.testing.assert_allclose(curve.valid_by_query.mean(axis=1), curve.valid_mean)
    gains = curve.valid_by_query[2] - curve.valid_by_query[0]
    assert curve.gain.before == 10
    assert curve.gain.error == pytest.approx(gains.std(ddof=1) / np.sqrt(gains.size))
    alone = learning_curve_ranking(X, Y, qid=QID, cv=1, **options)
    assert alone.gain.error > 0
    assert not alone.verdict.startswith("One")


@pytest.mark.parametrize("held_out", ["fold", "validation"])
def test_both_scores_are_over_queries_with_pairs(held_out):
    """Queries without a pair change nothing, whatever a metric would say of them."""
    n = len(Y)
    more = np.vstack([X, X[:50]])
    labels, queries = np.append(Y, np.zeros(50)), np.append(QID, 1000 + np.arange(50) // 5)
    validations = [None, None] if held_out == "fold" else [(X, Y, QID), (more, labels, queries)]
    rows = np.arange(n)
    folds = [(rows[k == QID % 2], rows[k != QID % 2]) for k in (0, 1)]
    with_more = [(train, np.append(test, np.arange(n, n + 50))) for train, test in folds]
    cvs = [folds, with_more] if held_out == "fold" else [2, 2]
    alone, beside = (
        learning_curve_ranking(*data[:2], qid=data[2], validation=validation, cv=cv, C=1e-3)
        for data, validation, cv in zip(
            [(X, Y, QID), (more, labels, queries)], validations, cvs, strict=True
        )
    )
    np.testing.assert_allclose(beside.valid_mean, alone.valid_mean, rtol=1e-4)


def test_a_fold_without_pairs_to_judge_by_is_left_out():
    rows = np.arange(len(Y))
    folds = [(rows[k != QID], rows[k == QID]) for k in (0, 1, 2)]
    labels = np.where(QID == 1, 0, Y)
    with pytest.warns(UserWarning, match="ndcg@10 .*fold 2 of 3"):
        curve = learning_curve_ranking(X, labels, qid=QID, cv=folds)
    assert np.isnan(curve.valid_scores[:, 1]).all()
    assert np.isfinite([*curve.valid_mean, *curve.gain]).all()


def test_features_that_tell_nothing_are_refused():
    with pytest.raises(ValueError, match="no feature of X"):
        learning_curve_ranking(np.ones_like(X), Y, qid=QID)


def test_one_fold_has_no_verdict():
    assert curve_of([[0.5], [0.6], [0.7]]).verdict.startswith("With one fold, it is unclear")


def test_folds_without_a_pair_to_judge_by_are_left_out():
    labels = np.where(QID < 8, Y, 0)
    rows = [np.flatnonzero(np.isin(QID % 4, k)) for k in range(2)]
    folds = [(np.setdiff1d(np.arange(len(Y)), test), test) for test in rows]
    without = (np.flatnonzero(QID < 8), np.flatnonzero(QID >= 8))
    with pytest.warns(UserWarning, match="ndcg@10 .*fold 3 of 3"):
        curve = learning_curve_ranking(X, labels, qid=QID, cv=[*folds, without], sizes=[2, 4])
    assert np.isnan(curve.valid_scores[:, 2]).all()
    np.testing.assert_allclose(curve.valid_mean, curve.valid_scores[:, :2].mean(axis=1))


@pytest.mark.parametrize(
    "parameters", [{}, {"scale": "range"}, {"normalization": "query"}], ids=str
)
def test_the_last_size_is_a_plain_fit_of_the_queries_with_pairs(parameters):
    X, y, qid = make_ranking(60, 10, 8, random_state=0)
    X[qid < 15] *= 3.0
    y[qid < 15] = 0
    V, v, valid_qid = make_ranking(30, 10, 8, random_state=5)
    v[valid_qid < 8] = 0
    options = {"C": 0.1, "tol": 1e-10, **parameters}
    curve = learning_curve_ranking(X, y, qid=qid, validation=(V, v, valid_qid), cv=1, **options)
    rows, judged = qid >= 15, valid_qid >= 8
    scores = RankSVM(**options).fit(X[rows], y[rows], qid=qid[rows]).predict(V[judged])
    expected = metrics.ndcg(v[judged], scores, qid=valid_qid[judged], k=10)
    assert curve.valid_scores[-1, 0] == pytest.approx(expected, rel=1e-12)


def test_the_last_size_of_a_fold_is_a_fit_with_c_by_pairs_of_all_data():
    X, y, qid = make_ranking(60, 10, 8, random_state=0)
    data = RankingData(X, y, qid)
    train, test = np.flatnonzero(qid < 30), np.flatnonzero(qid >= 30)
    curve = learning_curve_ranking(data, cv=[(train, test)], C=0.1, tol=1e-10)
    C = 0.1 * data.n_pairs / curve.n_pairs[-1, 0]
    model = RankSVM(C=C, tol=1e-10).fit(X[train], y[train], qid=qid[train])
    expected = metrics.ndcg(y[test], model.predict(X[test]), qid=qid[test], k=10)
    assert curve.valid_scores[-1, 0] == pytest.approx(expected, rel=1e-12)
