"""AdditiveRankSVM with a penalty that makes whole features leave."""

import numpy as np
import pytest
from helpers.plain_defaults import plain_curves
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from marginrank import AdditiveRankSVMCV, RankSVM, load_model
from marginrank.objective.losses import LOSSES

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 6))
Y = np.round(-2 * np.abs(X[:, 0]) + X[:, 1] + 0.5 * RNG.normal(size=400), 1)
QID = np.arange(400) // 20
pytestmark = pytest.mark.filterwarnings("ignore:All curves are zero")


def in_use(model):
    return [k for k, curve in enumerate(model.curves_) if curve.missing or curve.values.any()]


@pytest.mark.parametrize("loss", LOSSES)
def test_features_leave_and_those_that_tell_something_stay(loss, tmp_path):
    options = {"C": 10.0, "normalization": "pairs", "loss": loss}
    used = []
    for l1 in (0.0, 0.5, 1e3):
        model = plain_curves(group_l1=l1, **options).fit(X, Y, qid=QID)
        assert model.gap_ <= 1.01e-6 * model.objective_
        used.append(in_use(model))
    assert used[0] == [0, 1, 2, 3, 4, 5]
    assert used[1][:2] == [0, 1]
    assert len(used[1]) <= 3
    assert used[2] == []
    model.save(tmp_path / "m.json")
    assert load_model(tmp_path / "m.json").group_l1 == 1e3
    assert_array_equal(model.predict(X), np.zeros(len(X)))


def test_the_objective_is_the_one_of_the_definition():
    """With two knots a feature, a curve is a line, and its norm is σ |w|."""
    few = RNG.integers(0, 2, size=(400, 3)) * [1.0, 3.0, 0.1]
    y = few @ [1.0, 0.5, 0.0] + RNG.normal(size=400)
    options = {"C": 0.001, "scale": "range", "tol": 1e-10}
    model = plain_curves(max_bins=1, group_l1=0.7, **options).fit(few, y, qid=QID)
    slopes = np.array([np.diff(c.values)[0] / np.diff(c.knots)[0] for c in model.curves_])
    plain = RankSVM(**options, max_iter=1).fit(few, y, qid=QID)
    sizes = model.scale_ * np.abs(slopes)
    t = np.array([
        (few[i] - few[j]) @ slopes
        for q in range(20)
        for i in range(20 * q, 20 * q + 20)
        for j in range(20 * q, 20 * q + 20)
        if y[i] > y[j]
    ])  # fmt: skip
    assert t.size == plain.n_pairs_
    loss = np.sum(np.maximum(0.0, 1.0 - t) ** 2)
    expected = 0.5 * sizes @ sizes + 0.7 * sizes.sum() + 0.001 * loss
    assert model.objective_ == pytest.approx(expected, rel=1e-9)
    assert 0 < np.count_nonzero(slopes) < 3


def test_at_the_least_l1_without_any_feature_all_have_left():
    """Pulls at zero are at most what a feature of one group alone has: found by halving."""
    model = plain_curves(normalization="pairs")
    low, high = 0.0, 10.0
    for _ in range(20):
        middle = 0.5 * (low + high)
        left = not in_use(model.set_params(group_l1=middle).fit(X, Y, qid=QID))
        low, high = (low, middle) if left else (middle, high)
    assert in_use(model.set_params(group_l1=0.98 * low).fit(X, Y, qid=QID)) in ([0], [1])


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_with_next_to_no_l1_it_is_the_fit_without(loss):
    without = plain_curves(C=0.1, loss=loss).fit(X, Y, qid=QID)
    model = plain_curves(C=0.1, loss=loss, group_l1=1e-300).fit(X, Y, qid=QID)
    assert model.gap_ <= 1e-6 * model.objective_
    assert model.objective_ == pytest.approx(without.objective_, rel=2e-6)


def test_categories_and_missing_values_belong_to_their_feature():
    rng = np.random.default_rng(0)
    x = np.c_[X[:, :2], rng.integers(0, 4, 400), rng.integers(0, 4, 400)]
    x[rng.random(400) < 0.2, 1] = np.nan
    y = Y + 2.0 * (x[:, 2] == 1)
    options = {"C": 10.0, "normalization": "pairs", "categorical_features": [2, 3]}
    model = plain_curves(group_l1=1.0, **options).fit(x, y, qid=QID)
    assert in_use(model) == [0, 1, 2]
    assert model.curves_[3].values.tolist() == [0.0] * 4
    assert model.curves_[1].missing != 0.0


def test_exports_leave_out_what_has_left(tmp_path):
    model = plain_curves(C=10.0, normalization="pairs", group_l1=1.0).fit(X, Y, qid=QID)
    names = ["abe", "bob", "cat", "dan", "eve", "fay"]
    model.export(tmp_path / "m.sql", "sqlite", names=names)
    text = (tmp_path / "m.sql").read_text()
    assert [name for name in names if name in text] == ["abe", "bob"]


def test_ndcg_as_the_goal_listed_pairs_and_folds():
    y = np.clip(np.round(Y), 0, 4)
    options = {"C": 10.0, "normalization": "pairs", "group_l1": 0.5}
    goal = plain_curves(objective="ndcg@10", **options).fit(X, y, qid=QID)
    assert goal.n_rounds_ > 1
    assert len(in_use(goal)) < 6
    listed = plain_curves(C=1.0, group_l1=5.0).fit(X, pairs=[(i, i + 1) for i in range(0, 400, 2)])
    assert len(in_use(listed)) < 6
    search = AdditiveRankSVMCV(Cs=[1, 10], smoothness=[1.0], cv=2, group_l1=0.5).fit(X, y, qid=QID)
    assert search.best_estimator_.group_l1 == 0.5


def test_a_limit_on_the_iterations():
    options = {"C": 100.0, "group_l1": 0.1, "normalization": "pairs"}
    model = plain_curves(**options).fit(X, Y, qid=QID)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        cut = plain_curves(max_iter=1, **options).fit(X, Y, qid=QID)
    assert cut.n_iter_ == 1 < model.n_iter_ == len(model.history_)
    assert cut.gap_ >= cut.objective_ - model.objective_ > 0


def test_the_same_bits_for_any_number_of_threads():
    models = [plain_curves(group_l1=0.5, C=10.0, normalization="pairs", n_jobs=n) for n in (1, 2)]
    one, two = (model.fit(X, Y, qid=QID).predict(X) for model in models)
    assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"group_l1": -1.0}, "group_l1=-1.0"),
        ({"loss": "hinge", "solver": "ocas"}, "solver='ocas'.* group_l1; .*'smoothing'"),
        ({"solver": "tron"}, "solver='tron'.* group_l1; .*'newton'"),
        ({"monotonic_cst": {0: 1}}, "group_l1=1.0 .*monotonic_cst"),
    ],
)
def test_what_does_not_go_with_it(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        plain_curves(**{"group_l1": 1.0} | options).fit(X, Y, qid=QID)


@pytest.mark.filterwarnings("default:All curves are zero")
def test_an_empty_model_is_warned_of():
    advice = r"All curves are zero.*Decrease group_l1=1000000.0 or increase C=1.0"
    with pytest.warns(UserWarning, match=advice):
        plain_curves(group_l1=1e6).fit(X, Y, qid=QID)
