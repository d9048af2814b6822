"""SparseRankSVM as scikit-learn users meet it, and on real data."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.brute_force import explicit_pairs
from helpers.objectives import make_objective
from helpers.oracle import SparseOracle
from helpers.plain_defaults import plain_problem, plain_sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginrank import (
    RankingData,
    RankSVM,
    SparseRankSVM,
    StopReason,
    load_model,
    make_ranking,
    sparse_path,
)
from marginrank.fit import rounds
from marginrank.fit.linear import make_objective as objective_of
from marginrank.fit.sparse import SparseParameters, first_C
from marginrank.metrics import ndcg
from marginrank.metrics.ranking import ranks
from marginrank.objective.losses import LOSSES

X, Y, QID = make_ranking(30, (5, 25), 6, random_state=0)


@parametrize_with_checks([plain_sparse()])
def test_scikit_learn_compatibility(estimator, check):
    check(estimator)


def test_fit_stores_what_it_found():
    model = plain_sparse(C=5.0).fit(X, Y, qid=QID)
    loss = make_objective(
        RankingData(X, Y, QID), LOSSES["squared_hinge"], normalization="pairs", ridge=0.0
    )
    mean = loss.at(model.coef_).value
    assert model.objective_ == pytest.approx(np.abs(model.coef_).sum() + 5.0 * mean, rel=1e-12)
    assert model.gap_ <= 1e-6 * model.objective_
    assert model.stop_reason_ is StopReason.CERTIFIED
    assert model.sparsity_ == np.count_nonzero(model.coef_) / 6
    assert model.n_iter_ == len(model.history_) > 0
    assert model.n_pairs_ == RankingData(X, Y, QID).n_pairs
    assert model.n_features_in_ == 6


def test_the_objective_and_the_gap_over_explicit_pairs():
    """The ball form, and its gap as Frank-Wolfe's with the best multiple of the dual point."""
    model = plain_sparse(radius=0.4, tol=1e-3).fit(X, Y, qid=QID)
    pairs = explicit_pairs(Y, QID)
    K = X[pairs.preferred] - X[pairs.other]
    slack = np.maximum(0, 1 - K @ model.coef_)
    value = np.mean(slack**2)
    gradient = -2 * K.T @ slack / len(slack)
    gap = gradient @ model.coef_ + 0.4 * np.abs(gradient).max()
    assert model.objective_ == pytest.approx(value, rel=1e-12)
    assert model.gap_ == pytest.approx(gap - gap**2 / (4 * value), rel=1e-6, abs=1e-14)


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("loss", ["squared_hinge", "huber"])
def test_without_l1_it_is_a_rank_svm(C, loss):
    sparse = plain_sparse(C=C, l1_ratio=0.0, loss=loss, tol=1e-12).fit(X, Y, qid=QID)
    dense = RankSVM(C=C, loss=loss, normalization="pairs", tol=1e-12).fit(X, Y, qid=QID)
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-11)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-6)


def test_parameters_survive_a_clone():
    model = plain_sparse(radius=2.0, positive=True, solver="fenchel", variant="away")
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(TypeError):
        plain_sparse(1.0)


def test_predict_rank_and_score():
    model = plain_sparse(radius=1.0).fit(X, Y, qid=QID)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_)
    np.testing.assert_allclose(model.predict(sp.csr_array(X)), X @ model.coef_)
    assert model.score(X, Y, qid=QID) > 0.8
    assert sorted(model.rank(X, qid=QID)[QID == 0]) == list(range(1, np.sum(QID == 0) + 1))


@pytest.mark.parametrize("parameters", [{"radius": 0.5, "positive": True}, {"C": 3.0}])
def test_a_saved_model_predicts_the_same(parameters, tmp_path):
    model = plain_sparse(**parameters).fit(X, Y, qid=QID)
    model.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert isinstance(loaded, SparseRankSVM)
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.objective_ == model.objective_


def test_a_warm_start_continues():
    model = plain_sparse(C=3.0, warm_start=True).fit(X, Y, qid=QID)
    model.fit(X, Y, qid=QID)
    assert model.n_iter_ == 0
    cold = plain_sparse(C=3.5, tol=1e-9).fit(X, Y, qid=QID)
    warm = model.set_params(C=3.5, tol=1e-9).fit(X, Y, qid=QID)
    assert warm.objective_ == pytest.approx(cold.objective_, rel=1e-8)
    # A smaller ball than that of the last weights.
    model = plain_sparse(radius=1.0, warm_start=True).fit(X, Y, qid=QID)
    model.set_params(radius=0.1).fit(X, Y, qid=QID)
    assert np.abs(model.coef_).sum() <= 0.1


def test_a_fit_that_does_not_converge_warns():
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        plain_sparse(radius=2.0, solver="fenchel", max_iter=2).fit(X, Y, qid=QID)


def test_an_objective_of_zero_is_no_error():
    model = plain_sparse(radius=100.0).fit([[0.0], [1.0]], [0, 1])
    assert 0.0 <= model.objective_ <= 1e-12  # a millionth of tol times the loss at zero, which is 1
    assert model.stop_reason_.converged


def test_model_selection():
    search = GridSearchCV(plain_sparse(), {"radius": [0.01, 1.0]}, cv=GroupKFold(3), refit=True)
    search.fit(X, Y, groups=QID, qid=QID)
    assert search.best_params_["radius"] == 1.0


def test_weights_equal_repeated_rows():
    times = np.random.default_rng(0).integers(1, 4, size=len(Y))
    weighted = plain_sparse(C=5.0, tol=1e-11).fit(X, Y, qid=QID, sample_weight=times)
    rows = np.repeat(np.arange(len(Y)), times)
    repeated = plain_sparse(C=5.0, tol=1e-11).fit(X[rows], Y[rows], qid=QID[rows])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)


# Real data


@pytest.fixture(scope="module")
def mq2008(real_data):
    return real_data("MQ2008/S1.txt.gz", "MQ2008/S2.txt.gz", "MQ2008/S3.txt.gz")


@pytest.fixture(scope="module")
def mq2008_differences(mq2008):
    """Return the features of each pair's preferred document less those of the other."""
    X, y, qid = mq2008
    pairs = explicit_pairs(y, qid)
    return (X[pairs.preferred] - X[pairs.other]).astype(np.float64)


def over_explicit_pairs(differences, loss, w):
    """Return the mean loss and its gradient."""
    t = differences @ w
    return LOSSES[loss].value(t).mean(), differences.T @ LOSSES[loss].derivative(t) / len(t)


@pytest.mark.parametrize("radius", [4.0, 16.0, 64.0])
@pytest.mark.parametrize("loss", ["squared_hinge", "huber"])
def test_certified_optimum_of_mq2008(mq2008, mq2008_differences, radius, loss):
    X, y, qid = mq2008
    model = plain_sparse(radius=radius, loss=loss).fit(X, y, qid=qid)
    assert model.stop_reason_ is StopReason.CERTIFIED
    assert model.gap_ <= 1e-6 * model.objective_
    assert np.abs(model.coef_).sum() <= radius
    finer = plain_sparse(radius=radius, loss=loss, tol=1e-12).fit(X, y, qid=qid)
    assert finer.stop_reason_ is StopReason.CERTIFIED
    # Over explicit pairs: the value, and a dual point that bounds the optimum from below.
    value, _ = over_explicit_pairs(mq2008_differences, loss, model.coef_)
    assert model.objective_ == pytest.approx(value, rel=1e-12)
    at_finer, gradient = over_explicit_pairs(mq2008_differences, loss, finer.coef_)
    bound = at_finer - (finer.coef_ @ gradient + radius * np.abs(gradient).max())
    assert value - bound <= 1e-6 * bound
    # Features without a value in the data, and those the ball leaves no room for.
    assert np.all(model.coef_[np.ptp(X, axis=0) == 0] == 0)
    parameters = plain_problem(radius=radius, loss=loss)
    objective = objective_of(RankingData(X, y, qid), parameters)
    pull = np.abs(objective.at(finer.coef_).gradient)
    left_out = pull < 0.99 * pull.max()
    assert radius > 4 or left_out.any()
    assert np.abs(finer.coef_).sum() < 0.999 * radius or np.all(model.coef_[left_out] == 0)


def test_the_largest_ball_is_inactive_on_mq2008(mq2008):
    """There it must find the optimum of the loss alone, which RankSVM approaches as C grows."""
    X, y, qid = mq2008
    model = plain_sparse(radius=64.0, tol=1e-9).fit(X, y, qid=qid)
    assert np.abs(model.coef_).sum() < 64.0
    C = 1e9
    dense = RankSVM(C=C, normalization="pairs", tol=1e-12).fit(X, y, qid=qid)
    mean_loss = (dense.objective_ - 0.5 * dense.coef_ @ dense.coef_) / C
    assert model.objective_ == pytest.approx(mean_loss, rel=1e-6)


def test_raw_features_of_mslr(real_data):
    X, y, qid = real_data("MSLR-sample/train.txt.gz")
    radii = [{"radius": radius} for radius in (1e-4, 1.0, 10.0, 100.0)]
    for parameters in ({"C": 1e-2}, {"C": 100.0}, *radii):
        model = plain_sparse(**parameters).fit(X, y, qid=qid)
        assert model.stop_reason_ is StopReason.CERTIFIED


def test_a_file_keeps_the_sparsity(tmp_path):
    model = plain_sparse(C=5.0).fit(X, Y, qid=QID)
    model.save(tmp_path / "m.json")
    assert load_model(tmp_path / "m.json").sparsity_ == model.sparsity_ > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "fenchel"}, "solver='fenchel' .*loss='squared_hinge' with a penalty"),
        (
            {"solver": "truncated_gradient", "radius": 1.0},
            "solver='truncated_gradient' .* in an l1 ball",
        ),
    ],
)
def test_a_solver_that_does_not_take_the_problem_is_refused_before_the_data(options, message):
    with pytest.raises(ValueError, match=message):
        plain_sparse(**options).fit("no matrix at all", None)


def test_without_a_C_it_is_a_multiple_of_the_first_that_matters(tmp_path):
    X, y, qid = make_ranking(30, 10, 8, random_state=0)
    # Features of any scale, of which C = 1 would make no use.
    model = SparseRankSVM().fit(1e-3 * X, y, qid=qid)
    assert model.sparsity_ > 0
    scaled = X / X.std(axis=0)
    first = first_C(objective_of(RankingData(scaled, y, qid), SparseParameters(C=1.0)))
    assert pytest.approx(50 * first) == model.C_
    with pytest.warns(UserWarning, match="weights are zero"):
        assert SparseRankSVM(C=model.C_ / 51).fit(X, y, qid=qid).sparsity_ == 0
    same = SparseRankSVM(C=model.C_).fit(1e-3 * X, y, qid=qid)
    np.testing.assert_array_equal(same.coef_, model.coef_)
    assert same.C_ == model.C_
    model.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert (loaded.C, loaded.C_) == (None, model.C_)
    assert SparseRankSVM(radius=1.0).fit(X, y, qid=qid).C_ is None


def test_an_empty_model_is_warned_of_and_not_exported(tmp_path):
    X, y, qid = make_ranking(10, 10, 4, random_state=0)
    with pytest.warns(UserWarning, match=r"weights are zero.*C=1e-09"):
        model = SparseRankSVM(C=1e-9).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="zero"):
        model.export(tmp_path / "model.py", "python")
    with pytest.warns(UserWarning, match="No feature"):
        SparseRankSVM().fit(np.zeros_like(X), y, qid=qid)


def test_a_C_that_nobody_gave_is_not_blamed():
    X, y, qid = make_ranking(10, 10, 4, random_state=0)
    with pytest.raises(ValueError, match=r"\bC\b.*scale"):
        SparseRankSVM(scale=None).fit(1e-150 * X, y, qid=qid)


def test_an_ndcg_objective_without_an_l1_term_is_that_of_a_rank_svm():
    for k in (3, 10):
        options = {"C": 5.0, "objective": f"ndcg@{k}", "tol": 1e-10}
        sparse = plain_sparse(l1_ratio=0.0, **options).fit(X, Y, qid=QID)
        dense = RankSVM(normalization="pairs", **options).fit(X, Y, qid=QID)
        assert sparse.n_rounds_ == dense.n_rounds_ > 1
        np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-4)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_the_second_problem_of_an_ndcg_objective_over_explicit_pairs(loss, monkeypatch):
    """Its weights come from the ranks of the first solution, and sum to the same."""
    k, C = 3, 20.0
    first = plain_sparse(C=C, loss=loss, pair_cost="ndcg", tol=1e-8).fit(X, Y, qid=QID)
    monkeypatch.setattr(rounds, "MOST_ROUNDS", 2)
    model = plain_sparse(C=C, loss=loss, objective=f"ndcg@{k}", tol=1e-8).fit(X, Y, qid=QID)
    assert model.n_rounds_ == 2
    rank = ranks(first.coef_ @ X.T, qid=QID)
    discount = np.where(rank <= k, 1.0 / np.log2(1.0 + rank), 0.0)
    pairs = explicit_pairs(Y, QID)
    i, j = pairs.preferred, pairs.other
    gains = {q: np.sort(2.0 ** Y[q == QID] - 1.0)[::-1][:k] for q in np.unique(QID)}
    ideal = {q: g @ (1.0 / np.log2(np.arange(2, g.size + 2))) for q, g in gains.items()}
    weight = (2.0 ** Y[i] - 2.0 ** Y[j]) * (discount[i] + discount[j])
    pairs.weight = weight / [ideal[q] for q in QID[i]]
    pairs.weight /= pairs.weight.sum()
    judge = SparseOracle(X, pairs, LOSSES[loss], C, l1=1.0)
    assert model.history_[-1].objective == pytest.approx(float(judge.solution[1]), rel=1e-6)


def test_an_ndcg_objective_ranks_the_training_queries_better_than_the_fixed_cost(tmp_path):
    X, y, qid = make_ranking(30, (5, 25), 6, noise=2.0, random_state=0)
    fixed, model = (
        SparseRankSVM(**one).fit(X, y, qid=qid)
        for one in ({"pair_cost": "ndcg"}, {"objective": "ndcg@5"})
    )
    of_fixed, of_model = (
        ndcg(y, one.predict(X), qid=qid, k=5, ties="average") for one in (fixed, model)
    )
    assert of_model > of_fixed
    assert not hasattr(fixed, "n_rounds_")
    model.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert (loaded.objective, loaded.n_rounds_) == ("ndcg@5", model.n_rounds_)


def test_the_hinge_loss_is_certified_and_sparse():
    model = plain_sparse(C=5.0, loss="hinge").fit(X, Y, qid=QID)
    assert model.stop_reason_ is StopReason.CERTIFIED
    assert model.gap_ <= 1e-6 * model.objective_
    assert 0 < model.sparsity_ < 1
    path = sparse_path(X, Y, qid=QID, loss="hinge", n_points=4, parameter="radius")
    assert np.all(path.gaps <= 1e-4 * path.objectives)
