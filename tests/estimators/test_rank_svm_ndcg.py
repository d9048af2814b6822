"""RankSVM with NDCG as the goal, as scikit-learn users meet it."""

import json

import numpy as np
import pytest
from sklearn.base import clone

from marginrank import KernelRankSVM, RankSVM, StopReason, load_model, make_ranking
from marginrank.estimators import base as _linear
from marginrank.metrics import ndcg

X, Y, QID = make_ranking(30, (1, 25), 6, noise=2.0, random_state=0)
GOAL = RankSVM(objective="ndcg@5", C=0.1)


@pytest.fixture(scope="module")
def model():
    return clone(GOAL).fit(X, Y, qid=QID)


def at_5(model):
    return ndcg(Y, model.predict(X), qid=QID, k=5, ties="average")


def test_fit_ranks_the_training_queries_better_than_the_fixed_cost(model):
    fixed = RankSVM(pair_cost="ndcg", C=0.1).fit(X, Y, qid=QID)
    assert at_5(model) > at_5(fixed)
    assert model.n_rounds_ > 1
    assert not hasattr(fixed, "n_rounds_")
    assert model.stop_reason_.converged
    assert model.gap_ <= 1e-4 * model.objective_
    assert model.n_iter_ == sum(line.fraction == 1 for line in model.history_) >= model.n_rounds_


def test_a_model_file_has_it_all(model, tmp_path):
    model.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.get_params() == model.get_params()
    assert (loaded.n_rounds_, loaded.history_) == (model.n_rounds_, model.history_)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_damaged_number_of_rounds_is_refused(model, tmp_path):
    model.save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    content["training"]["n_rounds"] = "many"
    (tmp_path / "model.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="'n_rounds'"):
        load_model(tmp_path / "model.json")


def test_a_file_without_the_parameter_is_one_of_pairs(tmp_path):
    RankSVM().fit(X, Y, qid=QID).save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    assert "n_rounds" not in content["training"]
    del content["parameters"]["objective"]  # as written by earlier versions
    (tmp_path / "model.json").write_text(json.dumps(content))
    assert load_model(tmp_path / "model.json").objective == "pairs"


def test_the_rounds_of_an_earlier_fit_are_forgotten():
    model = clone(GOAL).fit(X, Y, qid=QID)
    model.set_params(objective="pairs").fit(X, Y, qid=QID)
    assert not hasattr(model, "n_rounds_")


def test_a_warm_start_begins_where_the_last_fit_ended(model):
    again = clone(GOAL).set_params(warm_start=True).fit(X, Y, qid=QID)
    first = again.coef_
    again.fit(X, Y, qid=QID)
    # The first problem is solved from there, but it is the same problem, and so are the others.
    np.testing.assert_allclose(again.coef_, first, rtol=1e-2)


def test_scaled_features_have_the_solution_of_features_that_were_divided():
    stretched = X * [1.0, 10.0, 100.0, 0.1, 3.0, 7.0]
    scaled = RankSVM(objective="ndcg@5", scale="standard", tol=1e-10).fit(stretched, Y, qid=QID)
    divided = RankSVM(objective="ndcg@5", tol=1e-10).fit(stretched / scaled.scale_, Y, qid=QID)
    np.testing.assert_allclose(scaled.coef_ * scaled.scale_, divided.coef_, rtol=1e-4)


def test_an_interrupt_stores_the_best_weights_and_is_raised(model, monkeypatch):
    lines = []

    def interrupt(line):
        lines.append(line)
        if line.iteration == len(model.history_):
            raise KeyboardInterrupt

    monkeypatch.setattr(_linear, "print_iteration", interrupt)
    stopped = clone(GOAL).set_params(verbose=1)
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, Y, qid=QID)
    assert stopped.stop_reason_ is StopReason.INTERRUPTED
    assert stopped.n_rounds_ == model.n_rounds_
    np.testing.assert_array_equal(stopped.coef_, model.coef_)


def test_kernels_take_it_as_well():
    fixed = KernelRankSVM(pair_cost="ndcg", C=0.01, n_components=40).fit(X, Y, qid=QID)
    model = KernelRankSVM(objective="ndcg@5", C=0.01, n_components=40).fit(X, Y, qid=QID)
    assert at_5(model) >= at_5(fixed)
    assert model.linear_.n_rounds_ > 1
