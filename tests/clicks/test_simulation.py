"""Simulated clicks have the probabilities of their model."""

import numpy as np
import pytest

from marginrank import make_clicks, make_ranking

X, Y, QID = make_ranking(30, 12, 4, n_levels=3, random_state=0)


def rates(log, of=None):
    """Return the click rate of each position, of all or some documents."""
    some = slice(None) if of is None else of[log.document]
    total = np.bincount(log.position[some], minlength=11)[1:]
    return np.bincount(log.position[some], log.click[some], 11)[1:] / total


def test_a_position_is_examined_by_its_power():
    log = make_clicks(Y, qid=QID, n_sessions=60_000, eta=1.0, noise=0.2, random_state=1)
    assert log.position.max() == 10
    found = rates(log, Y.max() == Y)  # always attractive
    np.testing.assert_allclose(found, 1 / np.arange(1, 11), atol=0.015)
    np.testing.assert_allclose(rates(log, Y == 0), 0.2 / np.arange(1, 11), atol=0.015)
    np.testing.assert_allclose(log.propensity, 1 / log.position)


def test_a_cascade_has_at_most_one_click():
    log = make_clicks(Y, qid=QID, n_sessions=2000, model="cascade", random_state=2)
    per_session = np.bincount(log.session, log.click)
    assert set(per_session) == {0.0, 1.0}
    assert log.propensity is None
    attractive = rates(log, Y.max() == Y)
    assert attractive[0] == 1.0
    assert attractive[9] < 0.2


def test_trust_raises_the_clicks_on_irrelevant_documents_at_the_top():
    plain, trust = (
        make_clicks(Y, qid=QID, n_sessions=20_000, model=model, noise=0.1, random_state=3)
        for model in ("position", "trust")
    )
    irrelevant = Y == 0
    assert rates(trust, irrelevant)[0] == pytest.approx(0.1 + 0.65 * 0.9, abs=0.02)
    assert rates(plain, irrelevant)[0] == pytest.approx(0.1, abs=0.02)


def test_scores_order_the_lists_and_temperature_changes_them():
    log = make_clicks(Y, qid=QID, scores=X[:, 0], shown=5, n_sessions=300, random_state=4)
    for s in range(300):
        shown = log.document[log.session == s]
        assert shown.size == 5
        assert (np.diff(X[shown, 0]) <= 0).all()
        assert np.unique(QID[shown]).size == 1
    noisy = make_clicks(Y, qid=QID, scores=X[:, 0], temperature=1.0, n_sessions=300, random_state=4)
    assert any((np.diff(X[noisy.document[noisy.session == s], 0]) > 0).any() for s in range(20))
    again = make_clicks(Y, qid=QID, scores=X[:, 0], shown=5, n_sessions=300, random_state=4)
    np.testing.assert_array_equal(log.click, again.click)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "random"}, "model='random'"),
        ({"noise": 1.5}, "noise=1.5"),
        ({"n_sessions": 0}, "n_sessions=0"),
        ({"scores": [1.0]}, "scores has 1 entries"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make_clicks(Y, qid=QID, **options)
    with pytest.raises(ValueError, match="label -1"):
        make_clicks(Y - 1, qid=QID)
