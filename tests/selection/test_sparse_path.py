"""Paths of sparse models."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.objectives import make_objective
from helpers.plain_defaults import plain_problem, plain_sparse, plain_sparse_path

from marginrank import RankingData, StopReason, make_ranking, metrics
from marginrank.fit.sparse import first_C, first_radius, fit_sparse
from marginrank.objective.losses import LOSSES
from marginrank.selection.sparse_paths import SparseLearner

X, Y, QID = make_ranking(60, (5, 25), 12, correlation=0.3, random_state=0)
DATA = RankingData(X, Y, QID)
LOSS = make_objective(DATA, LOSSES["squared_hinge"], normalization="pairs", ridge=0.0)


@pytest.mark.parametrize(
    "options",
    [{}, {"l1_ratio": 0.5}, {"positive": True}, {"loss": "huber"}, {"parameter": "radius"}],
    ids=str,
)
def test_every_model_is_the_one_fitted_alone(options):
    path = plain_sparse_path(DATA, n_points=8, tol=1e-8, **options)
    assert path.stop_reasons == [StopReason.CERTIFIED] * 8
    parameters = {name: value for name, value in options.items() if name != "parameter"}
    for k, value in enumerate(path.values):
        alone = fit_sparse(DATA, plain_problem(tol=1e-9, **{path.parameter: value}, **parameters))
        assert path.objectives[k] == pytest.approx(alone.report.objective, rel=1e-7)
        w = path.coefs[[k]].toarray()[0]
        largest = max(np.abs(alone.coef).max(), 1e-9)
        np.testing.assert_allclose(w, alone.coef, atol=1e-3 * largest)
        assert path.gaps[k] <= 1e-8 * path.objectives[k]
        assert path.sparsity[k] == np.count_nonzero(w) / 12
        assert path.norms[k] == pytest.approx(np.abs(w).sum())


def test_the_grid_begins_where_it_matters():
    path = plain_sparse_path(DATA, n_points=10)
    assert path.parameter == "C"
    assert path.values[0] == pytest.approx(first_C(LOSS))
    assert path.values[-1] == pytest.approx(1000 * first_C(LOSS))
    np.testing.assert_allclose(np.diff(np.log(path.values)), np.log(1000) / 9)
    assert path.sparsity[0] == 0
    assert path.sparsity[1] > 0
    radii = plain_sparse_path(DATA, n_points=5, parameter="radius")
    assert radii.values[0] == pytest.approx(first_radius(LOSS))
    assert np.all(radii.norms <= radii.values)


def test_a_grid_of_ones_own_says_what_it_is_of():
    for given, parameter in (("Cs", "C"), ("radii", "radius")):
        for default in ("C", "radius"):
            path = plain_sparse_path(DATA, **{given: [0.5]}, parameter=default)
            assert path.parameter == parameter
            np.testing.assert_array_equal(path.values, [0.5])


def test_a_grid_of_ones_own_is_sorted():
    path = plain_sparse_path(X, Y, qid=QID, radii=[2.0, 0.5])
    np.testing.assert_array_equal(path.values, [0.5, 2.0])
    assert path.parameter == "radius"
    assert np.all(path.norms <= path.values)
    path = plain_sparse_path(X, Y, qid=QID, Cs=[100.0, 1.0])
    np.testing.assert_array_equal(path.values, [1.0, 100.0])
    assert path.objectives[0] < path.objectives[1]


def test_models_are_scored_on_validation_data():
    held_out = make_ranking(30, 20, 12, correlation=0.3, random_state=0)
    path = plain_sparse_path(DATA, n_points=6, validation=held_out, metric="average_precision")
    assert path.metric == "average_precision"
    for k in range(6):
        scores = held_out[0] @ path.coefs[[k]].toarray()[0]
        expected = metrics.average_precision(held_out[1], scores, qid=held_out[2], ties="average")
        assert path.scores[k] == pytest.approx(expected)
    assert path.best_index == int(np.argmax(path.scores))
    assert plain_sparse_path(DATA, n_points=2, validation=DATA).metric == "ndcg@10"


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ((X[:, :4], Y, QID), "validation has 4 features, but X has 12"),
        ((X, Y, QID, None, None), r"validation must be a tuple \(X, y\) or \(X, y, qid\)"),
        (X, r"validation must be a tuple"),
        (
            RankingData(X, Y, QID, feature_names=[*"bacdefghijkl"]),
            "feature 1 of validation is 'b', but 'a' in X",
        ),
    ],
)
def test_other_validation_data_is_refused_before_any_fit(validation, message, monkeypatch):
    monkeypatch.setattr("marginrank.selection.sparse_paths.SparseLearner.fit_paths", None)
    named = RankingData(X, Y, QID, feature_names=[*"abcdefghijkl"])
    with pytest.raises(ValueError, match=message):
        plain_sparse_path(named, n_points=2, validation=validation)


def test_a_path_without_validation_has_no_best_model():
    path = plain_sparse_path(DATA, n_points=2)
    assert path.scores is None
    with pytest.raises(ValueError, match="validation data"):
        _ = path.best_index


def test_a_path_costs_less_than_its_models_alone():
    X, y, qid = make_ranking(1500, 20, 20, correlation=0.3, random_state=0)
    data = RankingData(X, y, qid)
    objective = make_objective(data, LOSSES["squared_hinge"], normalization="pairs", ridge=0.0)
    before = objective.sweeps
    parameters = plain_problem(tol=1e-4)
    grid = np.geomspace(1.01 * first_C(objective), 1000 * first_C(objective), 20)
    list(SparseLearner("C").walk(objective, parameters, grid, 0))
    path_sweeps = objective.sweeps - before
    histories = [fit_sparse(data, plain_problem(C=C, tol=1e-4)).report.history for C in grid[3:]]
    alone = [history[-1].sweeps for history in histories]
    assert path_sweeps <= 12 * max(alone)
    assert path_sweeps <= 0.8 * sum(alone)


def test_many_features():
    X, y, qid = make_ranking(30, 20, 2000, density=0.02, random_state=0)
    path = plain_sparse_path(sp.csr_array(X), y, qid=qid, n_points=5, tol=1e-6)
    assert path.stop_reasons == [StopReason.CERTIFIED] * 5
    assert path.coefs.shape == (5, 2000)
    for k in (1, 3):
        alone = fit_sparse(RankingData(X, y, qid), plain_problem(C=path.values[k], tol=1e-8))
        assert path.objectives[k] == pytest.approx(alone.report.objective, rel=2e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"Cs": [1.0], "radii": [1.0]}, "Cs and radii"),
        ({"Cs": []}, "^Cs must be a list of numbers with at least one entry"),
        ({"Cs": [[1.0]]}, "^Cs must be a list of numbers with at least one entry"),
        ({"radii": ["wide"]}, "^radii must be a list of numbers with at least one entry"),
        ({"Cs": [1.0, np.nan]}, "^Cs=nan must be"),
        ({"radii": [0.0, 1.0]}, "^radii=0.0 must be"),
        ({"parameter": "lambda"}, "parameter='lambda' must be one of"),
        ({"n_points": 0}, "n_points=0 must be"),
        ({"l1_ratio": 0.0}, "pass Cs"),
        ({"metric": "fun"}, "metric 'fun' is not known"),
        ({"loss": "fun"}, "loss='fun' must be one of"),
    ],
)
def test_wrong_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        plain_sparse_path(DATA, **options)


def test_labels_are_needed_with_a_matrix():
    with pytest.raises(ValueError, match="y is None"):
        plain_sparse_path(X)
    with pytest.raises(ValueError, match="no feature of X"):
        plain_sparse_path(np.ones((4, 2)), [0, 1, 2, 3])


@pytest.mark.parametrize("metric", ["ndcg@10", "average_precision", "err", "letor_mean_ndcg"])
def test_the_order_of_validation_rows_does_not_choose(metric):
    held_out = make_ranking(30, 20, 12, correlation=0.3, random_state=0)
    by_label = np.lexsort((-held_out[1], held_out[2]))
    orders = [slice(None), by_label, by_label[::-1], np.random.default_rng(0).permutation(600)]
    paths = [
        plain_sparse_path(
            DATA, n_points=8, validation=[part[rows] for part in held_out], metric=metric
        )
        for rows in orders
    ]
    for path in paths:
        np.testing.assert_allclose(path.scores, paths[0].scores, rtol=1e-12)
        assert path.best_index == paths[0].best_index > 0


def test_rows_sorted_by_label_do_not_choose_the_empty_model():
    """A model of zeros ties all documents; in the order of the labels it would be perfect."""
    rows = np.lexsort((-Y, QID))
    path = plain_sparse_path(DATA, n_points=8, validation=(X[rows], Y[rows], QID[rows]))
    assert path.sparsity[0] == 0
    zeros = np.zeros(len(Y))
    assert metrics.ndcg(Y[rows], zeros, qid=QID[rows], k=10) > path.scores.max() + 0.01
    assert path.scores[0] < path.scores.max() - 0.1
    assert path.best_index > 0
    in_order = metrics.get_metric("ndcg@10", ties="order")
    flattered = plain_sparse_path(
        DATA, n_points=8, validation=(X[rows], Y[rows], QID[rows]), metric=in_order
    )
    assert flattered.best_index == 0


def test_scores_that_differ_by_rounding_are_equal():
    path = plain_sparse_path(DATA, n_points=4)
    scores = np.array([np.nan, 0.7, 0.7 + 1e-15, 0.6])
    assert replace(path, scores=scores).best_index == 1
    assert replace(path, scores=scores + np.array([0, 0, 1e-9, 0])).best_index == 2


@pytest.mark.parametrize("parameter", ["C", "radius"])
def test_a_path_of_scaled_features(parameter):
    X, y, qid = make_ranking(30, 10, 6, random_state=0)
    X = X * 10.0 ** np.arange(-3, 3)
    scale = np.ptp(X, axis=0)
    path = plain_sparse_path(
        X, y, qid=qid, n_points=6, parameter=parameter, scale="range", tol=1e-6
    )
    other = plain_sparse_path(X / scale, y, qid=qid, n_points=6, parameter=parameter, tol=1e-6)
    np.testing.assert_allclose(path.values, other.values, rtol=1e-10)
    np.testing.assert_allclose(path.objectives, other.objectives, rtol=1e-5)
    np.testing.assert_allclose(path.norms, other.norms, rtol=1e-2)
    np.testing.assert_array_equal(path.sparsity, other.sparsity)
    np.testing.assert_array_equal(path.scale, scale)
    k = 4
    value = {parameter: path.values[k]}
    single = plain_sparse(scale="range", tol=1e-8, **value).fit(X, y, qid=qid)
    w = path.coefs[[k]].toarray().ravel()
    np.testing.assert_allclose(w * scale, single.coef_ * scale, atol=1e-2 * path.norms[k])


def test_a_path_without_a_scale_has_none():
    X, y, qid = make_ranking(10, 10, 3, random_state=0)
    assert plain_sparse_path(X, y, qid=qid, n_points=2).scale is None


def test_models_that_stop_early_are_one_warning():
    with pytest.warns(UserWarning, match="of 3 models of the path did not") as caught:
        path = plain_sparse_path(X, Y, qid=QID, n_points=3, max_iter=1)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert str(caught[0].message).startswith(f"{path.n_unfinished} of 3")


def test_features_without_effect_are_one_warning():
    with pytest.warns(UserWarning, match="Features without effect") as caught:
        plain_sparse_path(np.c_[X, QID], Y, qid=QID, n_points=3, scale="standard")
    assert len(caught) == 1
    assert caught[0].filename == __file__
