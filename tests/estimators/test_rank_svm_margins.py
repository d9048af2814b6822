"""Margins of two labels and of listed pairs, and pairs of close levels, in the estimators."""

import numpy as np
import pytest

from marginrank import RankSVM, RankSVMCV, SGDRankSVM, load_model, make_ranking
from marginrank.objective.losses import LOSSES, exact

X, Y, QID = make_ranking(30, (5, 25), 6, shuffle=True, random_state=0)
PAIRS = np.argwhere((QID[:, None] == QID) & (Y[:, None] > Y))
LABELS = np.unique(Y)
TABLE = np.abs(np.random.default_rng(1).normal(size=(LABELS.size, LABELS.size)))


def margin(a, b):
    return TABLE[np.searchsorted(LABELS, a), np.searchsorted(LABELS, b)]


MARGINS = np.array([margin(Y[i], Y[j]) for i, j in PAIRS])


@pytest.mark.parametrize("loss", [name for name, loss in LOSSES.items() if not loss.error])
def test_a_matrix_a_callable_and_listed_margins_are_the_same(loss):
    parameters = {"loss": loss, "tol": 1e-4 if loss == "hinge" else 1e-10}
    listed = RankSVM(**parameters).fit(X, pairs=PAIRS, pair_margin=MARGINS, qid=QID)
    for value in (TABLE, margin):
        model = RankSVM(margin=value, **parameters).fit(X, Y, qid=QID)
        assert model.objective_ == pytest.approx(listed.objective_, rel=2 * parameters["tol"])
        assert model.n_pairs_ == listed.n_pairs_ == len(PAIRS)


def test_unit_margins_and_differences_of_labels_are_special_cases():
    for margin, same in [(lambda a, b: 1.0, "unit"), (lambda a, b: a - b, "label")]:
        model = RankSVM(margin=margin, tol=1e-11).fit(X, Y, qid=QID)
        expected = RankSVM(margin=same, tol=1e-11).fit(X, Y, qid=QID)
        assert model.objective_ == pytest.approx(expected.objective_, rel=1e-10)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)


def test_folds_may_lack_labels_of_a_matrix():
    fewer = np.where(QID % 3 == 0, np.minimum(Y, 1), Y)  # one fold without the highest labels
    found = [
        RankSVMCV(Cs=[0.01, 1.0], cv=3, margin=value, random_state=0).fit(X, fewer, qid=QID)
        for value in (TABLE, margin)
    ]
    assert found[0].best_params_ == found[1].best_params_
    np.testing.assert_array_equal(found[0].coef_, found[1].coef_)


def test_a_matrix_is_saved_with_the_model(tmp_path):
    model = RankSVM(margin=TABLE, pair_selection="label-within:2").fit(X, Y, qid=QID)
    model.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.margin, TABLE)
    assert loaded.pair_selection == "label-within:2"
    np.testing.assert_array_equal(loaded.fit(X, Y, qid=QID).coef_, model.coef_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", ["query", "pair"])
def test_online_steps_come_to_the_same_optimum(method):
    steps = {"method": method, "max_iter": 300, "tol": 0.0 if method == "pair" else 1e-3}
    exact = RankSVM(margin=TABLE).fit(X, Y, qid=QID)
    online = SGDRankSVM(margin=TABLE, **steps).fit(X, Y, qid=QID)
    listed = SGDRankSVM(**steps).fit(X, pairs=PAIRS, pair_margin=MARGINS, qid=QID)
    for model in (online, listed):
        assert model.objective_ == pytest.approx(exact.objective_, rel=0.02)


def test_close_pairs_are_chosen_by_level_or_by_label():
    y = np.array([0.0, 4.0, 5.0, 9.0])
    counts = {
        "all": 6, "adjacent": 3, "within:1": 3, "within:2": 5, "within:3": 6, "within:999": 6,
        "label-within:1": 1, "label-within:4": 3, "label-within:5": 5, "label-within:9": 6,
    }  # fmt: skip
    for selection, count in counts.items():
        assert RankSVM(pair_selection=selection).fit(np.eye(4), y).n_pairs_ == count, selection


def test_label_distances_of_huge_integers_are_exact():
    y = [2**80, 2**80 + 1, 2**80 + 3]
    assert RankSVM(pair_selection="label-within:2").fit(np.eye(3), y).n_pairs_ == 2


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({"pair_selection": "label-within:1"}, [0.0, 0.5], r"y\[1\] is 0.5; .*whole numbers"),
        ({"pair_selection": "label-within:1"}, [0, 2], "no pair to learn from"),
        ({"pair_selection": "within:0"}, [0, 1], "pair_selection='within:0' must be"),
        ({"pair_selection": "near"}, [0, 1], "pair_selection='near' must be"),
        ({"margin": [[0.0]]}, [0, 1], r"margin has shape \(1, 1\)"),
        ({"margin": 3.0}, [0, 1], "margin=3.0 must be"),
    ],
)
def test_wrong_values_are_named(parameters, y, message):
    with pytest.raises(ValueError, match=message):
        RankSVM(**parameters).fit(np.eye(2), y)


def test_wrong_margins_of_pairs_are_named():
    with pytest.raises(ValueError, match="pair_margin requires pairs"):
        RankSVM().fit(X, Y, qid=QID, pair_margin=MARGINS)
    with pytest.raises(ValueError, match=r"pair_margin\[0\] is -1; it must be zero or more"):
        RankSVM().fit(X, pairs=PAIRS, pair_margin=MARGINS - MARGINS[0] - 1.0)
    with pytest.raises(ValueError, match=r"margin cannot be combined with pairs.*pair_margin"):
        RankSVM(margin=TABLE).fit(X, pairs=PAIRS)


@pytest.mark.parametrize(
    "parameters",
    [{"margin": TABLE}, {"pair_selection": "within:2"}],
    ids=lambda one: next(iter(one)),
)
def test_devices_say_what_they_do_not_support(parameters):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match=f"{next(iter(parameters))} .* devices do not support"):
        RankSVM(device="cpu", **parameters).fit(X, Y, qid=QID)


def test_margins_of_pairs_on_a_device():
    pytest.importorskip("torch")
    expected = RankSVM().fit(X, pairs=PAIRS, pair_margin=MARGINS)
    model = RankSVM(device="cpu").fit(X, pairs=PAIRS, pair_margin=MARGINS)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_support_pairs_are_the_pairs_inside_their_margin(loss):
    reach = max(piece.theta for piece in LOSSES[loss].pieces)
    i, j = PAIRS.T
    weight = np.random.default_rng(0).uniform(size=len(Y))
    plain = RankSVM(loss=loss, C=0.01).fit(X, Y, qid=QID, sample_weight=weight)
    rescaled = RankSVM(loss=loss, C=0.01, margin=TABLE).fit(X, Y, qid=QID)
    listed = RankSVM(loss=loss, C=0.01).fit(X, pairs=PAIRS, pair_margin=MARGINS, qid=QID)
    cases = [(plain, reach), (rescaled, MARGINS), (listed, MARGINS)]
    if np.isinf(exact(LOSSES[loss]).reach):  # every listed pair has a slope
        assert cases.pop()[0].support_pairs_ == len(PAIRS)
    for model, shift in cases:
        scores = model.predict(X)
        own = reach - LOSSES[loss].margin if shift is MARGINS else 0.0
        inside = scores[i] - scores[j] - shift - own < 0
        on_the_margin = np.abs(scores[i] - scores[j] - shift - own) < 1e-9
        assert abs(model.support_pairs_ - np.count_nonzero(inside)) <= on_the_margin.sum()
        assert 0 < model.support_pairs_ <= model.n_pairs_
