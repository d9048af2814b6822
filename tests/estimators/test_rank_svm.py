"""RankSVM as scikit-learn users meet it."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from helpers.brute_force import explicit_pairs
from helpers.objectives import make_objective
from helpers.tables import each
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginrank import RankingData, RankSVM, StopReason, load_model, make_ranking
from marginrank.estimators import base as _linear
from marginrank.objective.losses import LOSSES

X, Y, QID = make_ranking(30, (5, 25), 6, random_state=0)


@parametrize_with_checks([RankSVM()])
def test_scikit_learn_compatibility(estimator, check):
    check(estimator)


def test_fit_stores_what_it_found():
    model = RankSVM(C=0.5, tol=1e-8).fit(X, Y, qid=QID)
    data = RankingData(X, Y, QID)
    point = make_objective(data, LOSSES["squared_hinge"], C=0.5).at(model.coef_)
    assert model.objective_ == pytest.approx(point.value, rel=1e-12)
    assert model.gap_ == pytest.approx(point.gap, rel=1e-6, abs=1e-12 * model.objective_)
    assert model.n_pairs_ == data.n_pairs
    assert model.n_iter_ == sum(line.fraction == 1 for line in model.history_) > 0
    assert model.stop_reason_.converged
    assert model.n_features_in_ == 6


def test_parameters_survive_a_clone():
    model = RankSVM(C=3.0, loss="huber", solver="tron", normalization="query", n_jobs=2)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.set_params(C=5.0).C == 5.0


def test_parameters_are_keyword_only():
    with pytest.raises(TypeError):
        RankSVM(1.0)


def test_a_pickle_predicts_the_same():
    model = RankSVM().fit(X, Y, qid=QID)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    assert copy.stop_reason_ is model.stop_reason_
    assert copy.history_ == model.history_


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_column_names_of_frames(frame):
    names = [f"feature {i}" for i in range(6)]
    table = frame(dict(zip(names, X.T, strict=True)))
    model = RankSVM().fit(table, Y, qid=QID)
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(model.predict(table), model.predict(table[names]))
    np.testing.assert_allclose(model.coef_, RankSVM().fit(X, Y, qid=QID).coef_, rtol=1e-12)
    with pytest.raises(ValueError, match=r"feature names|feature 0 .* is 'feature 5'"):
        model.predict(table[names[::-1]])


def test_labels_and_queries_may_be_columns_of_a_frame():
    table = pd.DataFrame({"y": Y.astype(int), "qid": [f"q{q}" for q in QID]})
    model = RankSVM().fit(X, table["y"], qid=table["qid"])
    np.testing.assert_array_equal(model.coef_, RankSVM().fit(X, Y, qid=QID).coef_)
    model = RankSVM().fit(X, pl.Series(Y), qid=pl.Series(QID))
    np.testing.assert_array_equal(model.coef_, RankSVM().fit(X, Y, qid=QID).coef_)


def test_group_is_another_way_to_give_queries():
    sizes = np.bincount(QID)
    by_group = RankSVM().fit(X, Y, group=sizes)
    np.testing.assert_array_equal(by_group.coef_, RankSVM().fit(X, Y, qid=QID).coef_)
    assert by_group.score(X, Y, group=sizes) == by_group.score(X, Y, qid=QID)


def test_sparse_and_dense_features_give_the_same():
    dense = RankSVM(tol=1e-12).fit(X, Y, qid=QID)
    sparse = RankSVM(tol=1e-12).fit(sp.csr_array(X), Y, qid=QID)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-6)
    np.testing.assert_allclose(sparse.predict(sp.csc_array(X)), sparse.predict(X), rtol=1e-12)


@pytest.mark.parametrize("normalization", ["none", "pairs", "query"])
def test_weights_equal_repeated_rows(normalization):
    times = np.random.default_rng(0).integers(1, 4, size=len(Y))
    parameters = {"normalization": normalization, "tol": 1e-12}
    weighted = RankSVM(**parameters).fit(X, Y, qid=QID, sample_weight=times)
    rows = np.repeat(np.arange(len(Y)), times)
    repeated = RankSVM(**parameters).fit(X[rows], Y[rows], qid=QID[rows])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-5, atol=1e-8)
    assert weighted.score(X, Y, qid=QID, sample_weight=times) == pytest.approx(
        repeated.score(X[rows], Y[rows], qid=QID[rows])
    )


def test_queries_of_weight_zero_do_not_count():
    keep = QID >= 10
    weighted = RankSVM(tol=1e-12).fit(X, Y, qid=QID, query_weight=(np.arange(30) >= 10) * 1.0)
    without = RankSVM(tol=1e-12).fit(X[keep], Y[keep], qid=QID[keep])
    np.testing.assert_allclose(weighted.coef_, without.coef_, rtol=1e-6)


# Model selection


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def offset_queries():
    """Data whose order between queries misleads: without qid another model is best."""
    rng = np.random.default_rng(1)
    qid = np.repeat(np.arange(30), 10)
    offset = 3.0 * rng.normal(size=30)[qid]
    features = rng.normal(size=(300, 3))
    labels = features[:, 0] + offset + rng.normal(size=300)
    features[:, 1] = offset
    return features, labels, qid


def by_hand(features, labels, qid, model):
    scores = []
    for train, test in GroupKFold(3).split(features, labels, qid):
        fitted = clone(model).fit(features[train], labels[train], qid=qid[train])
        scores.append(fitted.score(features[test], labels[test], qid=qid[test]))
    return scores


@pytest.mark.usefixtures("routing")
def test_cross_validation_passes_the_queries_on(offset_queries):
    features, labels, qid = offset_queries
    cv = GroupKFold(3).set_split_request(groups=True)
    scores = cross_val_score(RankSVM(), features, labels, cv=cv, params={"qid": qid, "groups": qid})
    np.testing.assert_allclose(scores, by_hand(features, labels, qid, RankSVM()))
    without = cross_val_score(RankSVM(), features, labels, cv=cv, params={"groups": qid})
    assert np.all(scores < without - 0.05)


@pytest.mark.usefixtures("routing")
def test_queries_reach_fit_too(offset_queries):
    features, labels, qid = offset_queries
    cv = GroupKFold(3).set_split_request(groups=True)
    params = {"qid": qid, "groups": qid}
    result = cross_validate(
        RankSVM(), features, labels, cv=cv, params=params, return_estimator=True
    )
    train, _ = next(GroupKFold(3).split(features, labels, qid))
    model = result["estimator"][0]
    assert model.n_pairs_ == RankingData(features[train], labels[train], qid[train]).n_pairs


@pytest.mark.usefixtures("routing")
def test_grid_search_passes_the_queries_on(offset_queries):
    features, labels, qid = offset_queries
    grid = {"C": [1e-4, 1.0]}
    search = GridSearchCV(RankSVM(), grid, cv=GroupKFold(3).set_split_request(groups=True))
    search.fit(features, labels, qid=qid, groups=qid)
    expected = [np.mean(by_hand(features, labels, qid, RankSVM(C=C))) for C in grid["C"]]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected)
    assert search.best_estimator_.n_pairs_ == RankingData(features, labels, qid).n_pairs


@pytest.mark.usefixtures("routing")
def test_sample_weight_is_routed_on_request(offset_queries):
    features, labels, qid = offset_queries
    weight = np.random.default_rng(2).uniform(size=len(labels))
    model = RankSVM().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    search = GridSearchCV(model, {"C": [1.0]}, cv=GroupKFold(3).set_split_request(groups=True))
    search.fit(features, labels, qid=qid, groups=qid, sample_weight=weight)
    expected = RankSVM().fit(features, labels, qid=qid, sample_weight=weight)
    np.testing.assert_array_equal(search.best_estimator_.coef_, expected.coef_)


@pytest.mark.usefixtures("routing")
def test_a_pipeline_passes_the_queries_on():
    model = make_pipeline(StandardScaler(), RankSVM()).fit(X, Y, qid=QID)
    expected = RankSVM().fit(StandardScaler().fit_transform(X), Y, qid=QID)
    np.testing.assert_array_equal(model[-1].coef_, expected.coef_)
    assert model.score(X, Y, qid=QID) == pytest.approx(
        expected.score(model[0].transform(X), Y, qid=QID)
    )


# Invariances


BIG = {
    "dense": ((1000, (5, 40), 30), {"dtype": np.float32}),
    "csr": ((1000, (5, 40), 500), {"density": 0.02}),
    "csr, many features": ((1000, (5, 40), 70_000), {"density": 1e-4}),
    "one query": ((1, 21_000, 10), {"dtype": np.float32, "n_levels": None}),
    "unsorted": ((1000, (5, 40), 10), {"shuffle": True}),
}


@pytest.mark.parametrize("solver", ["newton", "tron"])
@pytest.mark.parametrize(("shape", "kind"), BIG.values(), ids=BIG)
def test_any_number_of_threads_gives_bitwise_the_same(shape, kind, solver):
    features, labels, qid = make_ranking(*shape, **kind, random_state=3)
    assert len(labels) >= 20_000
    coefs = [
        RankSVM(n_jobs=n_jobs, C=1e-3, solver=solver, tol=1e-4).fit(features, labels, qid=qid).coef_
        for n_jobs in (1, 2, 8)
    ]
    assert coefs[0].any()
    for coef in coefs[1:]:
        assert coef.tobytes() == coefs[0].tobytes()


@pytest.mark.parametrize("loss", LOSSES)
def test_the_order_of_the_rows_does_not_matter(loss):
    order = np.random.default_rng(4).permutation(len(Y))
    model = RankSVM(loss=loss, tol=1e-9 if loss == "hinge" else 1e-12)
    coef = clone(model).fit(X, Y, qid=QID).coef_
    permuted = clone(model).fit(X[order], Y[order], qid=QID[order]).coef_
    np.testing.assert_allclose(permuted, coef, atol=1e-4 if loss == "hinge" else 1e-6)


def test_the_names_of_the_queries_do_not_matter():
    names = np.random.default_rng(5).permutation(30)
    model = RankSVM(tol=1e-12)
    coef = clone(model).fit(X, Y, qid=QID).coef_
    np.testing.assert_allclose(clone(model).fit(X, Y, qid=names[QID]).coef_, coef, atol=1e-6)
    words = np.array([f"query {name}" for name in names])[QID]
    np.testing.assert_allclose(clone(model).fit(X, Y, qid=words).coef_, coef, atol=1e-6)


def test_order_and_names_do_not_matter_for_samples_either():
    """Enough documents for progressive sampling, which draws other queries for another order."""
    features, labels, qid = make_ranking(1500, 20, 5, random_state=6)
    order = np.random.default_rng(6).permutation(len(labels))
    model = RankSVM(tol=1e-12)
    coef = clone(model).fit(features, labels, qid=qid).coef_
    permuted = clone(model).fit(features[order], labels[order], qid=-qid[order]).coef_
    np.testing.assert_allclose(permuted, coef, atol=1e-6)


def test_an_increasing_map_of_the_labels_does_not_matter():
    coef = RankSVM().fit(X, Y, qid=QID).coef_
    np.testing.assert_array_equal(RankSVM().fit(X, np.exp(Y) - 7, qid=QID).coef_, coef)


def test_float32_features_are_close_to_float64():
    coef = RankSVM(tol=1e-10).fit(X, Y, qid=QID).coef_
    single = RankSVM(tol=1e-10).fit(X.astype(np.float32), Y, qid=QID).coef_
    np.testing.assert_allclose(single, coef, rtol=1e-4, atol=1e-5)


# Predictions


def with_coef(*coef):
    model = RankSVM()
    model.coef_ = np.array(coef, dtype=float)
    model.n_features_in_ = len(coef)
    return model


def test_predict_is_the_product_with_the_weights():
    model = RankSVM().fit(X, Y, qid=QID)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_, rtol=1e-12)
    with pytest.raises(NotFittedError):
        RankSVM().predict(X)


def test_rank_inside_each_query():
    column = np.array([[1.0], [3.0], [2.0], [9.0], [5.0]])
    model = with_coef(1.0)
    assert model.rank(column).tolist() == [5, 3, 4, 1, 2]
    assert model.rank(column, group=[3, 2]).tolist() == [3, 1, 2, 1, 2]
    assert model.rank(column, qid=["b", "a", "b", "a", "b"]).tolist() == [3, 2, 2, 1, 1]


def test_ties_are_ranked_in_the_order_of_the_rows():
    model = with_coef(1.0)
    assert model.rank([[1.0], [2.0], [1.0], [2.0], [1.0]]).tolist() == [3, 1, 4, 2, 5]
    tied = model.rank([[0.0]] * 6, qid=[2, 1, 2, 1, 1, 2])
    assert tied.tolist() == [1, 1, 2, 2, 3, 3]


def test_score_is_the_pairwise_accuracy():
    model = RankSVM().fit(X, Y, qid=QID)
    scores = np.round(model.predict(X), 1)
    pairs = (QID[:, None] == QID) & (Y[:, None] > Y)
    rounded = with_coef(1.0).score(scores[:, None], Y, qid=QID)
    assert rounded == pytest.approx((scores[:, None] > scores)[pairs].mean(), rel=1e-12)
    scores = model.predict(X)
    expected = (scores[:, None] > scores)[pairs].mean()
    assert model.score(X, Y, qid=QID) == pytest.approx(expected, rel=1e-12)
    assert model.score(X, Y) != pytest.approx(expected, rel=1e-3)


# How a fit goes


def test_verbose_prints_a_line_an_iteration(capsys):
    model = RankSVM(verbose=1).fit(X, Y, qid=QID)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(model.history_)
    assert all(line.startswith("iter") for line in lines)
    RankSVM().fit(X, Y, qid=QID)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("solver", ["newton", "tron"])
def test_too_few_iterations_warn(solver):
    model = RankSVM(solver=solver, max_iter=1, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match=r"max_iter.* \d\.\de"):
        model.fit(X, Y, qid=QID)
    assert model.stop_reason_ is StopReason.MAX_ITER
    assert model.n_iter_ == 1


def test_warm_start_continues():
    cold = RankSVM(tol=1e-9).fit(X, Y, qid=QID)
    warm = RankSVM(tol=1e-9, warm_start=True).fit(X, Y, qid=QID)
    before = warm.coef_.copy()
    warm.fit(X, Y, qid=QID)
    assert warm.n_iter_ <= 1 < cold.n_iter_
    np.testing.assert_allclose(warm.coef_, before, atol=1e-4)
    assert warm.objective_ == pytest.approx(cold.objective_, rel=1e-8)
    again = cold.fit(X, Y, qid=QID)
    assert again.n_iter_ > 1


def test_warm_start_with_other_features():
    model = RankSVM(warm_start=True).fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match=r"X has 5 features but warm_start.* 6"):
        model.fit(X[:, :5], Y, qid=QID)


@pytest.mark.parametrize("solver", ["newton", "tron"])
def test_an_interrupt_stores_the_best_weights_and_is_raised(solver, monkeypatch):
    def interrupt(line):
        raise KeyboardInterrupt

    monkeypatch.setattr(_linear, "print_iteration", interrupt)
    model = RankSVM(solver=solver, tol=1e-12, verbose=1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, qid=QID)
    assert model.stop_reason_ is StopReason.INTERRUPTED
    assert np.isfinite(model.coef_).all()
    assert model.coef_.any()
    assert model.score(X, Y, qid=QID) > 0.6


def test_equal_random_states_give_bitwise_the_same():
    features, labels, qid = make_ranking(1500, 20, 5, random_state=7)
    a, b, c = (
        RankSVM(random_state=seed, tol=1e-4).fit(features, labels, qid=qid)
        for seed in (0, 0, np.random.RandomState(5))
    )
    np.testing.assert_array_equal(a.coef_, b.coef_)
    assert np.any(a.coef_ != c.coef_)


# What is refused


@each(("name", "value"),
    [
        ("C", 0.0), ("C", -1.0), ("C", np.nan), ("C", np.inf), ("C", "1"), ("C", None), ("C", True),
        ("tol", 0.0), ("tol", -1e-3), ("tol", np.nan), ("tol", "small"),
        ("max_iter", 0), ("max_iter", 1.5), ("max_iter", True), ("max_iter", None),
        ("loss", "hinge loss"), ("loss", None), ("loss", ["huber"]),
        ("solver", "sgd"), ("solver", len),
        ("pair_selection", "some"), ("pair_selection", None),
        ("normalization", "mean"), ("normalization", 1),
        ("n_jobs", 0), ("n_jobs", 1.5), ("n_jobs", "2"), ("n_jobs", True), ("n_jobs", 2**40),
        ("random_state", "seed"), ("random_state", -1),
    ],)  # fmt: skip
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=name):
        RankSVM(**{name: value}).fit(X, Y, qid=QID)


@pytest.mark.parametrize("normalization", ["none", "pairs", "query"])
@pytest.mark.parametrize("pair_selection", ["all", "adjacent"])
def test_no_pairs(normalization, pair_selection):
    model = RankSVM(normalization=normalization, pair_selection=pair_selection)
    with pytest.raises(ValueError, match=r"\bpair"):
        model.fit(X, np.ones(len(Y)), qid=QID)
    with pytest.raises(ValueError, match=r"\bpair"):
        model.fit(X, Y, qid=np.arange(len(Y)))


@pytest.mark.parametrize("normalization", ["none", "pairs", "query"])
@pytest.mark.parametrize("name", ["sample_weight", "query_weight"])
def test_no_pair_of_positive_weight(normalization, name):
    with pytest.raises(ValueError, match=rf"{name}.* zero"):
        RankSVM(normalization=normalization).fit(X, Y, qid=QID, **{name: np.zeros(len(Y))})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": np.where(np.eye(len(Y), 6) > 0, np.nan, X)}, r"X\[0, 0\] is NaN"),
        ({"X": X[:0]}, r"X has 0 sample"),
        ({"X": X[0]}, r"X has 1 dimension"),
        ({"y": Y[:-1]}, r"y has \d+ entries and needs \d+"),
        ({"y": np.array(["good"] * len(Y))}, r"y must hold real numbers"),
        ({"qid": QID[:-1]}, r"qid has \d+ entries"),
        ({"sample_weight": -np.ones(len(Y))}, r"sample_weight\[0\] is -1"),
        ({"query_weight": np.ones(3)}, r"query_weight has 3 entries and needs 30"),
    ],
)
def test_bad_data_is_named(arguments, message):
    model = RankSVM()
    with pytest.raises(ValueError, match=message):
        model.fit(**({"X": X, "y": Y, "qid": QID} | arguments))
    assert not hasattr(model, "coef_")


def test_bad_features_in_predict_are_named():
    model = RankSVM().fit(X, Y, qid=QID)
    bad = X.copy()
    bad[4, 2] = np.inf
    with pytest.raises(ValueError, match=r"X\[4, 2\] is infinity"):
        model.predict(bad)
    with pytest.raises(ValueError, match="5 features"):
        model.predict(X[:, :5])
    with pytest.raises(ValueError, match=r"qid has 3 entries"):
        model.rank(X, qid=[1, 2, 3])


COSTS = {
    "gain": lambda a, b: 2.0**a - 2.0**b,
    "callable": lambda a, b: (a - b) ** 2,
}


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("name", COSTS)
def test_pair_costs_are_those_of_explicit_pairs(name, loss):
    cost = name if name == "gain" else COSTS[name]
    pairs = explicit_pairs(Y, QID, pair_weight=COSTS[name])
    model = RankSVM(C=0.1, loss=loss, pair_cost=cost, tol=1e-8).fit(X, Y, qid=QID)
    listed = np.column_stack([pairs.preferred, pairs.other])
    other = RankSVM(C=0.1, loss=loss, tol=1e-8).fit(X, pairs=listed, pair_weight=pairs.weight)
    assert model.objective_ == pytest.approx(other.objective_, rel=2e-8)


def test_a_cost_matrix_is_saved(tmp_path):
    labels = np.unique(Y)
    matrix = np.subtract.outer(labels, labels).clip(0)
    model = RankSVM(pair_cost=matrix, margin=np.sqrt).fit(X, Y - Y.min(), qid=QID)
    model.save(tmp_path / "m.json")
    again = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(again.pair_cost, matrix)
    with pytest.raises(ValueError, match=r"margin was a callable \(sqrt\)"):
        again.fit(X, Y - Y.min(), qid=QID)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_margin_rescaling_is_that_of_explicit_pairs():
    pairs = explicit_pairs(Y, QID, margin=Y)
    model = RankSVM(C=0.1, margin="label", tol=1e-10).fit(X, Y, qid=QID)
    differences = X[pairs.preferred] - X[pairs.other]
    slack = np.maximum(0, pairs.shift - differences @ model.coef_)
    expected = 0.5 * model.coef_ @ model.coef_ + 0.1 * slack @ slack
    assert model.objective_ == pytest.approx(expected, rel=1e-11)
    gradient = model.coef_ - 0.2 * differences.T @ slack
    assert np.abs(gradient).max() <= 1e-3


def test_propensities_divide_the_weight_of_the_preferred_side():
    propensity = np.random.default_rng(0).uniform(0.1, 1.0, len(Y))
    pairs = explicit_pairs(Y, QID)
    model = RankSVM(C=0.1, tol=1e-9).fit(X, Y, qid=QID, propensity=propensity)
    listed = np.column_stack([pairs.preferred, pairs.other])
    weight = 1 / propensity[pairs.preferred]
    other = RankSVM(C=0.1, tol=1e-9).fit(X, pairs=listed, pair_weight=weight)
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-8)
    with pytest.raises(ValueError, match=r"propensity\[2\] is 0"):
        RankSVM().fit(X, Y, qid=QID, propensity=np.where(np.arange(len(Y)) == 2, 0.0, 1.0))


@pytest.mark.parametrize(
    ("parameters", "arguments"),
    [
        ({"pair_cost": "gain"}, {}),
        ({"margin": "label"}, {}),
        ({}, {"propensity": np.ones(len(Y))}),
    ],
)
def test_what_needs_labels_does_not_go_with_pairs(parameters, arguments):
    with pytest.raises(ValueError, match=r"\bpairs"):
        RankSVM(**parameters).fit(X, pairs=[[0, 1]], **arguments)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_lambda_is_the_parameter_of_tree_rank_svm(loss):
    """The minimum of λ‖w‖² + mean loss."""
    lam = 0.03
    model = RankSVM(lam=lam, loss=loss, normalization="pairs", tol=1e-9).fit(X, Y, qid=QID)
    by_c = RankSVM(C=1 / (2 * lam), loss=loss, normalization="pairs", tol=1e-9).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(model.coef_, by_c.coef_)
    pairs = explicit_pairs(Y, QID)

    def objective(w):
        t = (X[pairs.preferred] - X[pairs.other]) @ w
        return lam * w @ w + LOSSES[loss].value(t).mean()

    best = objective(model.coef_)
    for direction in np.random.default_rng(0).normal(size=(20, X.shape[1])):
        assert objective(model.coef_ + 1e-2 * direction) >= best * (1 - 1e-8)
