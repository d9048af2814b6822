"""RankSVMCV: what it chooses, by fits of RankSVM without each fold."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginrank import (
    AdditiveRankSVMCV,
    RankingData,
    RankSVM,
    RankSVMCV,
    SparseRankSVMCV,
    learning_curve_ranking,
    linear_path,
    load_model,
    make_ranking,
    metrics,
    sparse_path,
)
from marginrank.estimators.base import check_seed
from marginrank.selection.folds import query_folds
from marginrank.selection.linear_paths import LinearLearner

X, Y, QID = make_ranking(40, (5, 25), 12, correlation=0.3, noise=1.0, random_state=0)
CS = 2.0 ** np.arange(-10, 4, 2)


# With one value to choose from, weights are repeated rows: see SparseRankSVMCV. With two folds, a
# check of scikit-learn before 1.8 has a fold without pairs.
@parametrize_with_checks([RankSVMCV(Cs=[1.0], cv=3)])
def test_scikit_learn_compatibility(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def model():
    return RankSVMCV(Cs=CS, cv=4).fit(X, Y, qid=QID)


def means(model):
    return model.cv_results_["mean_test_score"]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"loss": "logistic", "scoring": "average_precision", "normalization": "query"},
        {"loss": "hinge", "pair_cost": "gain", "normalization": "pairs"},
        {"scale": "standard", "margin": "label", "solver": "tron"},
        {"scale": "query", "pair_selection": "adjacent", "scoring": "pairwise_accuracy"},
    ],
    ids=str,
)
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_scores_are_those_of_models_fitted_without_the_fold(options, layout):
    features = layout(X)
    Cs = [0.01, 1.0]
    model = RankSVMCV(Cs=Cs, cv=3, tol=1e-8, **options).fit(features, Y, qid=QID)
    metric = metrics.get_metric(model.scoring)
    own = {name: value for name, value in options.items() if name != "scoring"}
    for f, fold in enumerate(query_folds(RankingData(X, Y, QID), 3, seed=check_seed(0))):
        for k, C in enumerate(Cs):
            alone = RankSVM(C=C, tol=1e-8, **own)
            alone.fit(features[fold.train], Y[fold.train], qid=QID[fold.train])
            scores = alone.predict(features[fold.test])
            expected = metric(Y[fold.test], scores, qid=QID[fold.test])
            assert model.cv_results_[f"split{f}_test_score"][k] == pytest.approx(expected, abs=1e-3)


def test_the_last_fit_is_a_rank_svm_with_the_best_value(model):
    best = int(np.argmax(means(model)))
    assert model.best_index_ == best
    assert model.best_params_ == {"C": CS[best]}
    assert model.best_score_ == means(model)[best]
    alone = RankSVM(C=CS[best]).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    assert model.objective_ == alone.objective_
    assert model.score(X, Y, qid=QID) == alone.score(X, Y, qid=QID)


def test_it_picks_what_a_grid_search_picks():
    model = RankSVMCV(Cs=CS, cv=GroupKFold(4)).fit(X, Y, qid=QID)

    def ndcg(estimator, rows, labels):
        return metrics.ndcg(labels, estimator.predict(X[rows]), qid=QID[rows], k=10, ties="average")

    class OnRows(RankSVM):
        """RankSVM on numbers of rows, which bring their queries along."""

        def fit(self, rows, y):
            return super().fit(X[rows.ravel()], Y[rows.ravel()], qid=QID[rows.ravel()])

        def predict(self, X):
            return super().predict(X)

    search = GridSearchCV(
        OnRows(tol=1e-8),
        {"C": CS},
        cv=GroupKFold(4),
        scoring=lambda estimator, rows, labels: ndcg(estimator, rows.ravel(), labels),
        refit=False,
    ).fit(np.arange(len(Y))[:, None], Y, groups=QID)
    np.testing.assert_allclose(means(model), search.cv_results_["mean_test_score"], atol=2e-3)
    assert model.best_params_ == search.best_params_


def test_several_losses_normalisations_and_scales(model):
    model = RankSVMCV(
        n_points=3,
        cv=3,
        loss=["squared_hinge", "hinge"],
        normalization=["none", "query"],
        scale=["none", "standard"],
    ).fit(X, Y, qid=QID)
    params = model.cv_results_["params"]
    assert len(params) == 3 * 2 * 2 * 2
    assert set(params[0]) == {"C", "loss", "normalization", "scale"}
    assert len({tuple(sorted(p.items())) for p in params}) == len(params)
    chosen = model.best_params_
    assert chosen == params[int(np.argmax(means(model)))]
    alone = RankSVM(**chosen).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(model.coef_, alone.coef_)


def test_one_standard_error_takes_a_smaller_C(model):
    simple = RankSVMCV(Cs=CS, cv=4, rule="one_se").fit(X, Y, qid=QID)
    error = model.search_.error[model.best_index_]
    near = CS[means(model) >= model.best_score_ - error]
    assert simple.best_params_["C"] == near.min() < model.best_params_["C"]


def test_one_standard_error_needs_two_folds():
    rows = np.arange(len(Y))
    first = QID[0] == QID
    with pytest.raises(ValueError, match="rule='one_se'"):
        RankSVMCV(Cs=CS, cv=[(rows[~first], rows[first])], rule="one_se").fit(X, Y, qid=QID)


def test_the_choice_does_not_depend_on_the_order_of_rows(model):
    order = np.random.default_rng(0).permutation(len(Y))
    shuffled = RankSVMCV(Cs=CS, cv=4).fit(X[order], Y[order], qid=QID[order])
    np.testing.assert_allclose(means(shuffled), means(model), atol=1e-3)
    assert shuffled.best_params_ == model.best_params_


def test_the_choice_does_not_depend_on_the_threads(model):
    one, three = (RankSVMCV(Cs=CS, cv=4, n_jobs=n).fit(X, Y, qid=QID) for n in (1, 3))
    np.testing.assert_array_equal(one.search_.scores, three.search_.scores)
    np.testing.assert_array_equal(one.coef_, three.coef_)


def test_a_comparison_with_the_runner_up(model):
    second = means(model).copy()
    second[model.best_index_] = -np.inf
    assert model.search_.runner_up == np.argmax(second)
    found = model.comparison_
    assert found.metric == "ndcg@10"
    assert found.difference >= 0
    assert found.n_queries == 40
    assert 0 < found.randomization_p <= 1


def test_a_single_query_is_divided_by_documents():
    features, labels, _ = make_ranking(1, 90, 5, noise=1.0, random_state=0)
    options = {"n_points": 4, "cv": 3, "scale": None, "normalization": "none"}
    model = RankSVMCV(**options, scoring="pairwise_accuracy").fit(features, labels)
    assert model.search_.scores.shape == (4, 3)
    assert model.best_score_ > 0.6
    assert model.comparison_.n_queries == 3  # its parts


def test_by_default_normalizations_and_scales_are_tried_with_grids_of_their_own():
    model = RankSVMCV(n_points=3, cv=2).fit(X, Y, qid=QID)
    tried = {(p["normalization"], p["scale"]) for p in model.cv_results_["params"]}
    assert tried == {(n, s) for n in ("none", "query") for s in ("none", "query")}
    assert len({(p["normalization"], p["C"]) for p in model.cv_results_["params"]}) >= 6
    assert len({p["C"] for p in model.cv_results_["params"]}) > 3
    alone = RankSVM(**model.best_params_).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    # A C that is given means what it does in RankSVM.
    assert set(RankSVMCV(Cs=CS, cv=2).fit(X, Y, qid=QID).best_params_) == {"C"}


def test_without_refit_there_is_a_choice_and_no_model(tmp_path):
    model = RankSVMCV(Cs=CS, cv=3, refit=False).fit(X, Y, qid=QID)
    assert model.best_params_["C"] in CS
    for use in (
        lambda: model.predict(X),
        lambda: model.rank(X),
        lambda: model.score(X, Y, qid=QID),
        lambda: model.save(tmp_path / "model.json"),
    ):
        with pytest.raises(NotFittedError, match="refit=False"):
            use()


def test_without_refit_the_model_of_an_earlier_fit_is_gone():
    model = RankSVMCV(Cs=CS[:2], cv=2).fit(X, Y, qid=QID)
    model.set_params(refit=False).fit(-X, Y, qid=QID)
    assert not hasattr(model, "best_estimator_")
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "stop_reason_")


def test_before_a_fit_there_is_no_model():
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        RankSVMCV(refit=False).predict(X)


def test_the_saved_model_is_the_last_fit(model, tmp_path):
    model.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert isinstance(loaded, RankSVM)
    assert model.best_params_["C"] == loaded.C
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_weights_count(model):
    weight = np.where(QID % 2, 1.0, 0.1)
    weighted = RankSVMCV(Cs=CS, cv=4).fit(X, Y, qid=QID, query_weight=weight)
    assert not np.array_equal(weighted.search_.scores, model.search_.scores)


def test_a_default_grid_goes_from_one_side_to_the_other():
    """At its ends, the loss hardly matters, and the regulariser hardly does."""
    for normalization in ("none", "pairs"):
        model = RankSVMCV(cv=2, normalization=normalization, scale=None).fit(X, Y, qid=QID)
        Cs = [p["C"] for p in model.cv_results_["params"]]
        assert len(Cs) == 21
        below, lowest, highest, above = (
            RankSVM(C=C, normalization=normalization, tol=1e-12).fit(X, Y, qid=QID).coef_
            for C in (Cs[0] / 100, Cs[0], Cs[-1], 100 * Cs[-1])
        )
        np.testing.assert_allclose(lowest, 100 * below, atol=0.25 * np.abs(lowest).max())
        assert np.linalg.norm(highest - above) < 0.02 * np.linalg.norm(above)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rule": "worst"}, "rule='worst'"),
        ({"Cs": [1.0, -1.0]}, "Cs"),
        ({"Cs": []}, "Cs must be a list"),
        ({"Cs": 5}, "Cs must be a list"),
        ({"Cs": "0.1"}, "Cs must be a list"),
        ({"n_points": 0}, "n_points"),
        ({"loss": ["squared_hinge", "nothing"]}, "nothing"),
        ({"scale": ["standard", "nothing"]}, "nothing"),
        ({"scoring": "nothing"}, "nothing"),
        ({"cv": 1}, "cv"),
        ({"cv": 50}, "50 folds need as many queries, and there are 40"),
        ({"loss": "hinge", "solver": "newton"}, "solver='newton' .*loss='hinge'"),
        ({"tol": 0.0}, "tol"),
    ],
    ids=str,
)
def test_wrong_parameters_are_refused_by_name(options, words):
    with pytest.raises(ValueError, match=words):
        RankSVMCV(**options).fit(X, Y, qid=QID)


def test_a_fold_without_pairs_is_refused_by_its_number():
    labels = np.where(QID[0] == QID, Y, 0.0)
    rows = np.arange(len(Y))
    first, second = rows[QID[0] == QID], rows[QID[-1] == QID]
    with pytest.raises(ValueError, match="fold 2"):
        RankSVMCV(cv=[(first, second), (second, first)]).fit(X, labels, qid=QID)


def test_a_value_that_is_listed_twice_is_tried_once():
    model = RankSVMCV(Cs=[1.0, 0.1, 1.0], cv=2).fit(X, Y, qid=QID)
    assert [p["C"] for p in model.cv_results_["params"]] == [0.1, 1.0]


def test_clone_keeps_what_was_given():
    model = RankSVMCV(Cs=[0.1, 1.0], scale=["none", "standard"], rule="one_se")
    assert clone(model).get_params() == model.get_params()


def test_folds_without_a_pair_to_judge_by_are_left_out():
    labels = np.where(QID < 2, 0, Y)  # NDCG is 0, not nan, where nothing is relevant
    folds = list(GroupKFold(3).split(X, labels, QID))
    without = (np.flatnonzero(QID > 1), np.flatnonzero(QID < 2))
    model = RankSVMCV(Cs=CS, cv=[*folds, without])
    with pytest.warns(UserWarning, match=r"ndcg@10.*fold 4 of 4") as caught:
        model.fit(X, labels, qid=QID)
    assert caught[0].filename == __file__
    assert np.isnan(model.cv_results_["split3_test_score"]).all()
    splits = [model.cv_results_[f"split{k}_test_score"] for k in range(3)]
    np.testing.assert_allclose(means(model), np.mean(splits, axis=0))


def ndcg_of_long_weights(y, scores, qid=None, per_query=False):
    """Return NDCG, which has no value for small scores."""
    values = metrics.ndcg(y, scores, qid=qid, per_query=True)
    values = values if np.ptp(scores) > 0.1 else np.full_like(values, np.nan)
    return values if per_query else float(np.mean(values))


def test_candidates_without_a_mean_come_last():
    model = RankSVMCV(Cs=[1e-30, 1e-20, 0.1, 1.0], cv=3, scoring=ndcg_of_long_weights)
    model.fit(X, Y, qid=QID)
    assert np.isnan(means(model)[:2]).all()
    assert model.cv_results_["rank_test_score"].tolist()[:2] == [3, 3]
    assert sorted(model.cv_results_["rank_test_score"][2:]) == [1, 2]
    assert model.comparison_.difference >= 0


def test_fits_to_folds_that_stop_early_are_one_warning():
    model = RankSVMCV(Cs=[0.1, 1.0], cv=3, loss="hinge", solver="bmrm", max_iter=5, refit=False)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, Y, qid=QID)
    (told,) = caught
    assert str(told.message).startswith("6 of 6 fits to folds did not reach")
    assert "max_iter or tol" in str(told.message)
    assert told.filename == __file__


@pytest.mark.parametrize("kind", [RankSVMCV, SparseRankSVMCV])
@pytest.mark.parametrize(
    ("scoring", "name"),
    [
        (metrics.make_ranking_scorer("ndcg@5"), "ndcg@5(ties='average')"),
        (metrics.ndcg, "ndcg"),
    ],
)
def test_scorers_and_functions_are_metrics(kind, scoring, name):
    model = kind(cv=3, scoring=scoring, Cs=CS).fit(X, Y, qid=QID)
    named = kind(cv=3, scoring=name.partition("(")[0], Cs=CS).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(model.coef_, named.coef_)
    assert model.search_.metric == name


def test_a_scorer_judges_paths_and_curves():
    scorer = metrics.make_ranking_scorer("ndcg@5")
    valid = {"validation": (X, Y, QID), "metric": scorer}
    for path in (
        linear_path(X, Y, qid=QID, Cs=CS, **valid),
        sparse_path(X, Y, qid=QID, Cs=CS, **valid),
    ):
        assert path.metric.startswith("ndcg@5")
    curve = learning_curve_ranking(X, Y, qid=QID, cv=2, sizes=[5, 10], metric=scorer)
    assert curve.metric.startswith("ndcg@5")


def test_results_are_laid_out_as_those_of_a_grid_search():
    model = RankSVMCV(Cs=CS[:2], cv=2, scale=[None, "standard"], refit=False).fit(X, Y, qid=QID)
    grid = {"C": CS[:2], "scale": [None, "standard"]}
    search = GridSearchCV(RankSVM(), grid, cv=2, refit=False).fit(X, Y)
    found, expected = model.cv_results_, search.cv_results_
    assert set(expected) - set(found) == {
        f"{which}_{what}_time" for which in ("mean", "std") for what in ("fit", "score")
    }
    assert set(found) <= set(expected)
    for name, values in found.items():
        assert type(values) is type(expected[name])
        assert len(values) == 4
    for k, params in enumerate(found["params"]):
        assert params == {"C": found["param_C"][k], "scale": found["param_scale"][k]}
    assert not np.ma.getmaskarray(found["param_scale"]).any()
    assert found["param_scale"].dtype == expected["param_scale"].dtype


@pytest.mark.parametrize("normalization", ["none", "query", "pairs"])
def test_the_selection_is_that_of_closer_fits_up_to_ties(normalization, monkeypatch):
    """On heavy tails, folds share Hessians; scores move by less than folds differ."""
    options = {"heavy_tail": 1.5, "correlation": 0.5, "noise": 2.0, "informative": 5}
    data = RankingData(*make_ranking(80, 25, 30, random_state=1, **options))

    def searched():
        search = RankSVMCV(n_points=12, cv=3, normalization=normalization, scale="none", tol=1e-9)
        return search.set_params(refit=False).fit(data)

    usual = searched()
    monkeypatch.setattr(LinearLearner, "search_tol", 1e-9)
    closer = searched()
    moved = np.abs(means(usual) - means(closer)).max()
    assert moved < 2e-3
    assert means(closer)[usual.best_index_] >= means(closer).max() - 2.0 * moved
    lost = means(closer).max() - means(closer)[usual.best_index_]
    assert lost < 0.1 * closer.search_.error[closer.best_index_]


def test_leave_one_out_scores_each_query_without_it():
    X, y, qid = make_ranking(20, 15, 5, random_state=3)
    model = RankSVMCV(Cs=[1e-3, 1e-2, 1e-1], cv="loo").fit(X, y, qid=qid)
    folds = RankSVMCV(Cs=[1e-3, 1e-2, 1e-1], cv=20).fit(X, y, qid=qid)  # one query each
    assert model.n_splits_ == 1
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], folds.cv_results_["mean_test_score"], atol=2e-3
    )
    assert model.best_params_ == folds.best_params_
    assert model.coef_.tolist() == folds.coef_.tolist()


def test_leave_one_out_needs_one_smooth_fit_without_folds():
    X, y, qid = make_ranking(5, 10, 3, random_state=0)
    for model, message in (
        (RankSVMCV(cv="loo", rule="one_se"), "rule='one_se' requires folds .* cv='loo'"),
        (RankSVMCV(cv="loo", loss="hinge"), "loss='hinge' .* second derivative"),
        (SparseRankSVMCV(cv="loo"), "cv='loo' is for RankSVMCV"),
        (AdditiveRankSVMCV(cv="loo"), "cv='loo' is for RankSVMCV"),
        (RankSVMCV(cv="LOO"), "cv='LOO' must be a number of folds, .*'loo' in RankSVMCV"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, qid=qid)
