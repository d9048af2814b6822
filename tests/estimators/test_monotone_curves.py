"""AdditiveRankSVM with curves that may only rise or fall."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers.plain_defaults import plain_curves
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from marginrank import AdditiveRankSVMCV, load_model
from marginrank.objective.losses import LOSSES

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = np.round(-2 * np.abs(X[:, 0]) + X[:, 1] + 0.5 * RNG.normal(size=400), 1)
QID = np.arange(400) // 20
UP_AND_DOWN = {0: 1, 1: 1, 2: -1}


def along(model, k, n=20_001):
    """Return the scores of documents that differ in one feature alone, which rises."""
    grid = np.repeat(X[:1], n, axis=0)
    grid[:, k] = np.linspace(3 * X[:, k].min(), 3 * X[:, k].max(), n)
    grid[: len(X), k] = X[:, k]
    grid[:, k].sort()
    return model.predict(grid)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_curves_rise_and_fall_exactly(loss, C, tmp_path):
    options = {"C": C, "loss": loss, "normalization": "pairs", "smoothness": 0.1}
    model = plain_curves(monotonic_cst=UP_AND_DOWN, **options).fit(X, Y, qid=QID)
    free = plain_curves(**options).fit(X, Y, qid=QID)
    assert model.gap_ <= 1.01e-6 * model.objective_
    assert model.objective_ - model.gap_ > free.objective_ - free.gap_
    model.save(tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert loaded.monotonic_cst == UP_AND_DOWN
    for k, sign in UP_AND_DOWN.items():
        assert np.all(sign * np.diff(loaded.curves_[k].values) >= 0)
        assert np.all(sign * np.diff(along(loaded, k)) >= 0)
    assert np.ptp(free.curves_[0].values) > 0
    assert np.any(np.diff(along(free, 0)) < 0)


def test_curves_that_are_monotone_anyway_are_the_same():
    y = X[:, 1] - X[:, 2]
    options = {"C": 0.1, "smoothness": 10.0, "tol": 1e-10}
    free = plain_curves(**options).fit(X[:, 1:], y, qid=QID)
    model = plain_curves(monotonic_cst={0: 1, 1: -1}, **options).fit(X[:, 1:], y, qid=QID)
    assert model.objective_ == pytest.approx(free.objective_, rel=1e-9)
    assert_allclose(model.predict(X[:, 1:]), free.predict(X[:, 1:]), atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_feature_that_only_wants_to_fall_is_flat(loss):
    model = plain_curves(monotonic_cst={0: 1}, loss=loss).fit(X[:, :1], -X[:, 0], qid=QID)
    assert_array_equal(model.curves_[0].values, np.zeros_like(model.curves_[0].values))
    assert model.gap_ <= 1e-6 * model.objective_
    assert model.stop_reason_.name == "CERTIFIED"


@pytest.mark.parametrize("solver", ["newton", "tron"])
def test_solvers_agree_and_huge_smoothness_is_a_line(solver):
    options = {"C": 1.0, "normalization": "pairs", "monotonic_cst": UP_AND_DOWN, "tol": 1e-9}
    first = plain_curves(**options).fit(X, Y, qid=QID)
    other = plain_curves(solver=solver, **options).fit(X, Y, qid=QID)
    assert other.objective_ == pytest.approx(first.objective_, rel=2e-9)
    line = plain_curves(smoothness=1e9, solver=solver, **options).fit(X, Y, qid=QID)
    bent = line.curves_[1].values - np.polyval(
        np.polyfit(*line.curves_[1][:2], 1), line.curves_[1].knots
    )
    assert np.abs(bent).max() < 1e-4 * np.ptp(line.curves_[1].values)
    assert line.gap_ <= 1.01e-9 * line.objective_


def test_missing_values_are_free():
    x = X.copy()
    gone = RNG.random(len(x)) < 0.3
    x[gone, 0] = np.nan
    y = np.where(gone, 3.0, X[:, 0])
    model = plain_curves(monotonic_cst={0: 1}).fit(x, y, qid=QID)
    assert model.curves_[0].missing > model.curves_[0].values.max()
    assert np.all(np.diff(model.curves_[0].values) >= 0)


def test_by_name_as_text_and_with_ndcg_as_the_goal():
    frame = pd.DataFrame({"bm25": X[:, 0], "age": X[:, 1]})
    y = np.clip(np.round(Y), 0, 4)
    options = {"C": 1.0, "objective": "ndcg@10", "normalization": "pairs"}
    by_name = plain_curves(monotonic_cst={"bm25": +1, "age": -1}, **options).fit(frame, y, qid=QID)
    as_text = plain_curves(monotonic_cst="bm25:+1, age:-1", **options).fit(frame, y, qid=QID)
    by_number = plain_curves(monotonic_cst="1:1,2:-1", **options).fit(frame.to_numpy(), y, qid=QID)
    assert by_name.n_rounds_ > 1
    assert_array_equal(by_name.predict(frame), as_text.predict(frame))
    assert_array_equal(by_name.predict(frame), by_number.predict(frame.to_numpy()))
    assert np.all(np.diff(by_name.curves_[0].values) >= 0)
    assert np.all(np.diff(by_name.curves_[1].values) <= 0)


def test_listed_pairs_and_folds():
    pairs = [(i, i + 1) for i in range(0, 400, 2)]
    listed = plain_curves(monotonic_cst={0: 1}).fit(X, pairs=pairs)
    assert np.all(np.diff(listed.curves_[0].values) >= 0)
    search = AdditiveRankSVMCV(Cs=[1, 10], smoothness=[1.0], cv=2, monotonic_cst={0: 1})
    search.fit(X, np.clip(Y, 0, None), qid=QID)
    assert np.all(np.diff(search.curves_[0].values) >= 0)
    assert search.best_estimator_.monotonic_cst == {0: 1}


def test_a_constant_feature_has_nothing_to_rise():
    x = np.c_[np.ones(400), X[:, 1]]
    plain = plain_curves().fit(x, Y, qid=QID)
    model = plain_curves(monotonic_cst={0: 1}).fit(x, Y, qid=QID)
    assert_array_equal(model.predict(x), plain.predict(x))


def test_history_and_a_limit_on_the_iterations():
    options = {"C": 10.0, "monotonic_cst": UP_AND_DOWN, "smoothness": 0.1}
    model = plain_curves(**options).fit(X, Y, qid=QID)
    assert model.n_iter_ == len(model.history_) > 1
    assert model.history_[-1].gap == model.gap_
    assert min(line.objective for line in model.history_) == model.objective_
    with pytest.warns(ConvergenceWarning, match="max_iter was reached"):
        cut = plain_curves(max_iter=1, **options).fit(X, Y, qid=QID)
    assert cut.gap_ >= cut.objective_ - model.objective_ > 0
    assert np.all(np.diff(cut.curves_[0].values) >= 0)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_bits_for_any_number_of_threads(threads):
    options = {"monotonic_cst": UP_AND_DOWN, "C": 1.0, "normalization": "pairs"}
    one = plain_curves(n_jobs=1, **options).fit(X, Y, qid=QID)
    other = plain_curves(n_jobs=threads, **options).fit(X, Y, qid=QID)
    assert_array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize(
    ("monotone", "sentence"),
    [
        ({"no": 1}, "monotonic_cst='no' .*'a'"),
        ({2: 1}, "monotonic_cst=2 .* 2 features"),
        ({"a": 2}, r"monotonic_cst=\{'a': 2\} must map"),
        ({"a": 0.5}, "monotonic_cst="),
        ({"a": True}, "monotonic_cst="),
        (["a"], "monotonic_cst="),
        ("a", "monotonic_cst="),
        ("a:1,b", "monotonic_cst="),
        ("a:1,a:-1", "monotonic_cst='a:1,a:-1' .*twice"),
        ({np.True_: 1}, "monotonic_cst="),
        ({"b": 1}, "monotonic_cst='b' is categorical"),
        ({"a": 1, 0: -1}, "monotonic_cst=0 is listed with both signs"),
        ([1, 0, 0], r"monotonic_cst=\[1, 0, 0\] has 3 entries for 2 features"),
        ([2, 0], r"monotonic_cst=\[2, 0\]"),
    ],
)
def test_what_cannot_be_monotone(monotone, sentence):
    frame = pd.DataFrame({"a": X[:, 0], "b": np.round(X[:, 1])})
    with pytest.raises(ValueError, match=sentence):
        plain_curves(monotonic_cst=monotone, categorical_features=["b"]).fit(frame, Y, qid=QID)


@pytest.mark.parametrize("signs", [[1, -1], np.array([1, -1]), {"a": 1, "b": -1}, {0: 1, 1: -1}])
def test_forms_of_scikit_learn(signs, tmp_path):
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    expected = plain_curves(monotonic_cst="a:+1,b:-1").fit(frame, Y, qid=QID)
    model = plain_curves(monotonic_cst=signs).fit(frame, Y, qid=QID)
    assert_array_equal(model.predict(frame), expected.predict(frame))
    model.save(tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert_array_equal(loaded.fit(frame, Y, qid=QID).predict(frame), expected.predict(frame))


def test_features_with_a_zero_are_free():
    plain = plain_curves(group_l1=0.1).fit(X, Y, qid=QID)
    free = plain_curves(group_l1=0.1, monotonic_cst=[0] * X.shape[1]).fit(X, Y, qid=QID)
    assert_array_equal(free.predict(X), plain.predict(X))


def test_a_solver_that_knows_no_cones():
    model = plain_curves(monotonic_cst={0: 1}, loss="hinge", solver="ocas")
    with pytest.raises(ValueError, match=r"solver='ocas' .*loss='hinge' with mono"):
        model.fit(X, Y, qid=QID)


def test_files_with_other_directions_are_damaged(tmp_path):
    path = tmp_path / "m.json"
    plain_curves(monotonic_cst={np.int64(0): -1}).fit(X, Y, qid=QID).save(path)
    content = json.loads(path.read_text())
    assert content["parameters"]["monotonic_cst"] == [[0, -1]]
    for wrong in ([[0, 3]], [3], [[0]], 5):
        content["parameters"]["monotonic_cst"] = wrong
        path.write_text(json.dumps(content))
        with pytest.raises(ValueError, match="is damaged: 'parameters' are invalid for Addi"):
            load_model(path)
