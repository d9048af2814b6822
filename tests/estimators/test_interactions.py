"""Pairs of features that act together: found, learned, explained, saved."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.plain_defaults import plain_curves
from numpy.testing import assert_allclose, assert_array_equal

from marginrank import AdditiveRankSVMCV, RankingData, RankSVM, load_model
from marginrank.additive import curve_basis
from marginrank.additive.fit import AdditiveParameters, fit_additive, prepare
from marginrank.models.additive_model import importance
from marginrank.objective.losses import LOSSES

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1200, 6))
X[:, 5] = RNG.integers(0, 4, 1200)  # categories
QID = np.arange(1200) // 20
Y = np.round(4 + X[:, 0] + 2 * X[:, 1] * X[:, 3] - X[:, 4] ** 2 / 2).clip(0, 8)
OPTIONS = {"normalization": "pairs", "C": 100.0, "smoothness": 0.1, "max_bins": 8}


@pytest.fixture(scope="module")
def model():
    return plain_curves(interactions=1, **OPTIONS).fit(X, Y, qid=QID)


def between(knots, values, categorical, x):
    """The row of a grid at x, or that of missing values."""
    if np.isnan(x) or (categorical and x not in knots):
        return values[0]
    if categorical:
        return values[1 + np.flatnonzero(knots == x)[0]]
    return np.array([np.interp(x, knots, column) for column in values[1:].T])


def added(pair, x):
    """What a pair adds to one document, straight from what it means."""
    row = between(pair.knots[0], pair.values, pair.categorical[0], x[pair.features[0]])
    return between(pair.knots[1], row[:, None], pair.categorical[1], x[pair.features[1]])[0]


def test_finds_the_pair_that_acts_together(model):
    assert [pair.features for pair in model.interactions_] == [(1, 3)]
    curves = plain_curves(**OPTIONS).fit(X, Y, qid=QID)
    assert curves.interactions_ == []
    assert curves.score(X, Y, qid=QID) < 0.8
    assert model.score(X, Y, qid=QID) > 0.9
    pair = model.interactions_[0]
    corners = pair.values[[1, 1, -1, -1], [1, -1, 1, -1]]
    assert (np.sign(corners) == [1, -1, -1, 1]).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_finds_it_with_any_loss(loss):
    model = plain_curves(interactions=1, loss=loss, **OPTIONS | {"tol": 1e-3}).fit(X, Y, qid=QID)
    assert model.interactions_[0].features == (1, 3)


def test_several_pairs_are_found_one_after_the_other():
    y = 2 * X[:, 1] * X[:, 3] + X[:, 0] * X[:, 4] + X[:, 2] * (X[:, 5] - 1.5)
    model = plain_curves(interactions=3, categorical_features=[5], **OPTIONS).fit(X, y, qid=QID)
    assert [pair.features for pair in model.interactions_] == [(1, 3), (2, 5), (0, 4)]
    assert model.interactions_[1].categorical == (False, True)
    many = plain_curves(interactions=6, **OPTIONS).fit(X, y, qid=QID)
    assert {(1, 3), (2, 5), (0, 4)} < {pair.features for pair in many.interactions_}
    assert len(many.interactions_) == 6


def test_there_are_no_more_pairs_than_there_are():
    model = plain_curves(interactions=9, **OPTIONS).fit(X[:, :3], Y, qid=QID)
    assert sorted(pair.features for pair in model.interactions_) == [(0, 1), (0, 2), (1, 2)]
    assert plain_curves(interactions=2).fit(X[:, :1], Y, qid=QID).interactions_ == []


def test_the_optimum_is_that_of_rank_svm_on_the_basis_functions():
    parameters = AdditiveParameters(
        C=0.01, normalization="none", smoothness=0.1, max_bins=8, interactions=2, tol=1e-10
    )
    data = RankingData(X, Y, QID, allow_nan=True)
    problem = prepare(data, parameters).with_interactions(data, parameters)
    functions = problem.matrix.values(np.arange(problem.matrix.n_features))
    found = fit_additive(data, parameters)
    line = RankSVM(C=0.01, tol=1e-10).fit(functions, Y, qid=QID)
    assert len(found.interactions) == 2
    assert found.report.objective == pytest.approx(line.objective_, rel=1e-8)
    assert 0.0 <= found.report.gap <= 1e-8 * line.objective_


def test_predictions_are_sums_over_curves_and_pairs():
    at = X.copy()
    at[::5, 1] = np.nan
    at[::7, 5] = np.nan
    options = OPTIONS | {"categorical_features": [5]}
    model = plain_curves(interactions=15, **options).fit(at, Y, qid=QID)
    new = np.vstack([at[:50], 10 * at[:50], np.full((1, 6), np.nan), np.full((1, 6), 7.0)])
    alone = plain_curves(**options)
    alone.curves_, alone.interactions_, alone.n_features_in_ = model.curves_, [], 6
    expected = alone.predict(new)
    expected += [sum(added(pair, x) for pair in model.interactions_) for x in new]
    assert_allclose(model.predict(new), expected, rtol=1e-12, atol=1e-12)
    assert_allclose(
        model.predict(sp.csr_matrix(np.nan_to_num(new))), model.predict(np.nan_to_num(new))
    )


def test_what_the_fit_did_not_see_adds_nothing(model):
    pair = model.interactions_[0]
    assert not pair.values[0].any()
    assert not pair.values[:, 0].any()


def test_missing_values_may_act_together_with_others():
    """Where one feature is missing, another one turns around."""
    x = X[:, :3].copy()
    x[::3, 0] = np.nan
    y = np.where(np.isnan(x[:, 0]), -x[:, 1], x[:, 1])
    model = plain_curves(interactions=1, **OPTIONS).fit(x, y, qid=QID)
    assert model.interactions_[0].features == (0, 1)
    assert model.score(x, y, qid=QID) > 0.95
    missing = model.interactions_[0].values[0, 1:]
    assert missing[0] > 0 > missing[-1]


def test_features_of_two_values_and_constants():
    two = np.c_[X[:, :2] > 0, np.full(len(Y), 3.0), X[:, 2]].astype(float)
    y = (two[:, 0] == two[:, 1]).astype(int)
    model = plain_curves(interactions=6, **OPTIONS).fit(two, y, qid=QID)
    assert model.interactions_[0].features == (0, 1)
    assert all(2 not in pair.features for pair in model.interactions_)
    assert model.score(two, y, qid=QID) > 0.99
    values = model.interactions_[0].values[1:, 1:]
    assert values[0, 0] > 0 > values[0, 1]


def test_threads_do_not_change_the_bits():
    one, two = (
        plain_curves(interactions=3, n_jobs=n, **OPTIONS).fit(X, Y, qid=QID) for n in (1, 2)
    )
    assert_array_equal(one.predict(X), two.predict(X))
    for a, b in zip(one.interactions_, two.interactions_, strict=True):
        assert a.features == b.features
        assert_array_equal(a.values, b.values)


def test_order_of_rows_does_not_change_what_is_found(model):
    order = RNG.permutation(len(Y))
    again = plain_curves(interactions=1, **OPTIONS).fit(X[order], Y[order], qid=QID[order])
    assert again.interactions_[0].features == (1, 3)
    assert again.objective_ == pytest.approx(model.objective_, rel=1e-4)


def test_a_sample_of_the_documents_finds_it_too(monkeypatch):
    monkeypatch.setattr("marginrank.additive.interactions.DOCUMENTS", 600)
    monkeypatch.setattr("marginrank.additive.interactions.FEATURES", 4)
    y = Y + X[:, 1] + X[:, 3]  # so that the features with curves are among the first four
    model = plain_curves(interactions=2, **OPTIONS).fit(X, y, qid=QID)
    assert model.interactions_[0].features == (1, 3)
    assert model.predict(X).shape == (1200,)


def test_explanations_name_the_pair(model):
    frame = pd.DataFrame(X, columns=list("abcdef"))
    named = plain_curves(interactions=1, **OPTIONS).fit(frame, Y, qid=QID)
    reasons = named.explain(X[3], X[4])
    scores = named.predict(frame.iloc[[3, 4]])
    assert sum(reason.difference for reason in reasons) == pytest.approx(scores[0] - scores[1])
    [pair] = [reason for reason in reasons if reason.feature == (1, 3)]
    assert pair.name == "b × d"
    assert pair.preferred == (X[3, 1], X[3, 3])
    assert pair.other == (X[4, 1], X[4, 3])
    assert len(reasons) == 7
    names = {reason.feature: reason.name for reason in model.explain(X[3], X[4])}
    assert (names[0], names[1, 3]) == ("f1", "f2 × f4")


def test_importance_counts_pairs(model):
    spread = importance(model.to_additive_model(), X, QID).spread
    assert spread.shape == (7,)
    pair = model.interactions_[0]
    of_pair = np.array([added(pair, x) for x in X]).reshape(60, 20)
    deviation = of_pair - of_pair.mean(axis=1, keepdims=True)
    assert spread[6] == pytest.approx(np.sqrt((deviation**2).mean()))
    assert np.argmax(spread) == 6


def test_what_is_loaded_predicts_the_same_bits(model, tmp_path):
    model.save(tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    at = np.vstack([3 * X, np.full((1, 6), np.nan)])
    assert_array_equal(loaded.predict(at), model.predict(at))
    assert loaded.get_params() == model.get_params()
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "m.json").read_bytes()


def test_weights_goals_and_lists_of_pairs():
    options = {"interactions": 1, **OPTIONS}
    weight = RNG.integers(1, 3, 1200).astype(float)
    listed = np.array([(i, j) for q in range(60) for i in range(20 * q, 20 * q + 19)
                       for j in [i + 1] if Y[i] > Y[j]])  # fmt: skip
    fits = [
        plain_curves(**options).fit(X, Y, qid=QID, sample_weight=weight),
        plain_curves(objective="ndcg@10", **options).fit(X, Y, qid=QID),
        plain_curves(**options).fit(X, pairs=listed),
    ]
    assert [fit.interactions_[0].features for fit in fits] == [(1, 3)] * 3
    assert fits[1].n_rounds_ >= 1


def test_choosing_by_folds_takes_interactions():
    search = AdditiveRankSVMCV(
        Cs=[10, 100], smoothness=[0.1], max_bins=8, cv=2, interactions=1
    ).fit(X, Y, qid=QID)
    plain = AdditiveRankSVMCV(Cs=[10, 100], smoothness=[0.1], max_bins=8, cv=2).fit(X, Y, qid=QID)
    assert search.interactions_[0].features == (1, 3)
    means = [model.cv_results_["mean_test_score"] for model in (search, plain)]
    assert (means[0] > means[1] + 0.05).all()
    assert_array_equal(search.predict(X), search.best_estimator_.predict(X))


@pytest.mark.parametrize("wrong", [-1, 1.5, "two"])
def test_wrong_numbers_are_refused(wrong):
    with pytest.raises(ValueError, match="interactions="):
        plain_curves(interactions=wrong).fit(X, Y, qid=QID)


def test_monotone_features_are_in_no_pair():
    """Otherwise scores would not rise where curves do."""
    rising = plain_curves(interactions=2, monotonic_cst={1: +1}, **OPTIONS).fit(X, Y, qid=QID)
    assert len(rising.interactions_) == 2
    assert all(1 not in pair.features for pair in rising.interactions_)
    higher = X.copy()
    higher[:, 1] += RNG.uniform(0, 1, len(X))
    assert (rising.predict(higher) >= rising.predict(X)).all()
    assert rising.gap_ <= 1e-6 * rising.objective_


def test_pairs_leave_as_features_do():
    """The norm of a pair's function is one of those that l1 weighs."""
    noise = RNG.integers(0, 3, len(X))
    few = plain_curves(interactions=2, group_l1=1e3, **OPTIONS).fit(X[:, :3], noise, qid=QID)
    assert not any(pair.values.any() for pair in few.interactions_)
    assert few.gap_ <= 1e-6 * few.objective_
    some = plain_curves(interactions=1, group_l1=0.1, **OPTIONS).fit(X, Y, qid=QID)
    assert some.interactions_[0].features == (1, 3)
    assert some.interactions_[0].values.any()
    assert some.gap_ <= 1e-6 * some.objective_


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("shape", [{"group_l1": 0.5}, {"monotonic_cst": {1: 1, 3: -1}}])
def test_grids_of_any_size_on_faces(shape, loss):
    """Where weights are fewer, basis functions of grids are still those of grids."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(600, 6))
    features[:, 4:] = features[:, 4:] > 0
    agree = features[:, 4] == features[:, 5]
    y = np.round(3 + 3 * features[:, 0] * features[:, 2] + features[:, 1] + 2 * agree).clip(0, 8)
    model = plain_curves(
        C=10, normalization="pairs", interactions=2, loss=loss, tol=1e-3, **shape
    ).fit(features, y, qid=np.arange(600) // 20)
    assert {pair.features for pair in model.interactions_} == {(0, 2), (4, 5)}
    assert model.gap_ <= 1e-3 * model.objective_


def test_features_without_partners_have_curves_alone():
    alone = plain_curves(interactions=3, monotonic_cst=dict.fromkeys(range(6), 1), **OPTIONS)
    assert alone.fit(X, Y, qid=QID).interactions_ == []
    one = plain_curves(interactions=1, **OPTIONS).fit(X[:, :1], Y, qid=QID)
    assert one.interactions_ == []


@pytest.mark.parametrize("rare", [1.0, np.nan])
def test_a_feature_that_is_constant_in_the_sample(rare, monkeypatch):
    """Samples that tell how much features vary may miss the few documents that differ."""
    monkeypatch.setattr(curve_basis, "SAMPLE", 100)
    few = X[:, :4].copy()
    few[:, 2] = 0.0 if rare == 1.0 else np.nan
    few[[5, 700], 2] = 1.0, 2.0
    model = plain_curves(interactions=6, **OPTIONS).fit(few, Y, qid=QID)
    assert len(model.interactions_) == 6
    assert np.isfinite(model.predict(few)).all()
    assert model.stop_reason_.converged
    assert model.gap_ <= 1e-4 * model.objective_
