"""linear_path: models over C."""

import numpy as np
import pytest

from marginrank import RankingData, RankSVM, linear_path, make_ranking, metrics

X, Y, QID = make_ranking(40, (5, 25), 8, noise=1.0, random_state=0)
HELD_OUT = make_ranking(30, 20, 8, noise=1.0, random_state=1)
CS = [10.0, 0.001, 0.1]


def test_each_model_is_a_rank_svm():
    path = linear_path(X, Y, qid=QID, Cs=CS, tol=1e-8)
    np.testing.assert_array_equal(path.values, sorted(CS))
    for C, w, objective, gap in zip(
        path.values, path.coefs, path.objectives, path.gaps, strict=True
    ):
        alone = RankSVM(C=C, tol=1e-8).fit(X, Y, qid=QID)
        assert objective == pytest.approx(alone.objective_, rel=1e-7)
        assert objective - alone.objective_ <= gap * (1 + 1e-9)
        np.testing.assert_allclose(w, alone.coef_, rtol=1e-2, atol=1e-4)
    assert all(stop.converged for stop in path.stop_reasons)
    assert path.parameter == "C"


def test_scores_are_those_of_the_validation_data():
    path = linear_path(RankingData(X, Y, QID), Cs=CS, validation=HELD_OUT, metric="ndcg@5")
    expected = [
        metrics.ndcg(HELD_OUT[1], HELD_OUT[0] @ w, qid=HELD_OUT[2], k=5, ties="average")
        for w in path.coefs
    ]
    np.testing.assert_allclose(path.scores, expected, atol=1e-12)
    assert path.metric == "ndcg@5"
    assert path.best_index == np.argmax(expected)


def test_of_equals_the_smallest_C_is_the_best():
    path = linear_path(
        X, Y, qid=QID, Cs=[1.0, 2.0], validation=(X[:1], Y[:1]), metric="pairwise_accuracy"
    )
    with pytest.raises(ValueError, match="has no value on the validation data"):
        _ = path.best_index
    held_out = ([[0.0] * 8, [0.0] * 8], [0, 1])
    assert linear_path(X, Y, qid=QID, Cs=[1.0, 2.0], validation=held_out).best_index == 0


def test_without_validation_data_there_is_no_best():
    with pytest.raises(ValueError, match="pass validation data"):
        _ = linear_path(X, Y, qid=QID, Cs=CS).best_index


def test_norms_grow_with_C():
    path = linear_path(X, Y, qid=QID, tol=1e-8)
    assert len(path.values) == 21
    assert np.all(np.diff(path.norms) > 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"Cs": [0.0]}, "Cs"),
        ({"loss": "nothing"}, "nothing"),
        ({"n_points": -1}, "n_points"),
        ({"metric": "nothing", "validation": HELD_OUT}, "nothing"),
        ({"validation": (HELD_OUT[0][:, :3], *HELD_OUT[1:])}, "validation has 3 features"),
    ],
    ids=str,
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        linear_path(X, Y, qid=QID, **options)


def test_models_that_stop_early_are_one_warning():
    n = len(CS)
    with pytest.warns(UserWarning, match=f"{n} of {n} models of the path did not") as caught:
        linear_path(X, Y, qid=QID, Cs=CS, loss="hinge", solver="bmrm", max_iter=2)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_features_without_effect_are_one_warning():
    with pytest.warns(UserWarning, match=r"Features without effect.* f9\.") as caught:
        linear_path(np.c_[X, QID], Y, qid=QID, Cs=CS, scale="standard")
    assert len(caught) == 1
    assert caught[0].filename == __file__
