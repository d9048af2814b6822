"""Estimates of the clicks of another ranking, against simulated clicks on that ranking."""

import numpy as np
import pytest
from helpers.tables import each

from marginrank import estimate_clicks, make_clicks, make_ranking
from marginrank.clicks.propensities import Propensities

X, Y, QID = make_ranking(40, 10, 4, random_state=0)
TRUE = Propensities(1 / np.arange(1, 11), np.zeros(10))
LOG = make_clicks(Y, qid=QID, scores=-X[:, 0], temperature=1.0, n_sessions=20_000, random_state=1)
NEW = Y + 0.01 * X[:, 0]
# The clicks that the new order gets on the same queries, without their noise.
ATTRACTION = 0.1 + 0.9 * (2.0**Y - 1) / (2.0 ** Y.max() - 1)


def expected():
    total = 0.0
    sessions = np.bincount(QID[LOG.document[LOG.position == 1]], minlength=40)
    for q, rows in enumerate(np.arange(len(Y)).reshape(40, 10)):
        best = rows[np.argsort(-NEW[rows], kind="stable")]
        total += sessions[q] * np.sum(ATTRACTION[best] / np.arange(1, 11))
    return total / LOG.n_sessions


@each("method", ["ips", "snips", "dr"])
def test_estimates_are_within_their_errors(method):
    given = {"relevance": np.full(LOG.click.size, 0.3)} if method == "dr" else {}
    found = estimate_clicks(LOG, NEW[LOG.document], TRUE, method=method, clip=100.0, **given)
    assert abs(found.value - expected()) < 4 * found.standard_error
    assert found.logged == pytest.approx(LOG.click.sum() / 20_000)
    assert found.clipped == 0.0
    assert found.value > found.logged


def test_clipping_lowers_the_value_and_a_relevance_model_repairs_it():
    plain = estimate_clicks(LOG, NEW[LOG.document], TRUE, method="ips", clip=100.0)
    clipped = estimate_clicks(LOG, NEW[LOG.document], TRUE, method="ips", clip=1.0)
    assert clipped.clipped > 0.1
    assert clipped.value < plain.value - 4 * plain.standard_error
    robust = estimate_clicks(
        LOG, NEW[LOG.document], TRUE, method="dr", clip=1.0, relevance=ATTRACTION[LOG.document]
    )
    assert abs(robust.value - expected()) < 4 * robust.standard_error
    same = estimate_clicks(LOG, -LOG.position.astype(float), TRUE, method="snips")
    assert same.value == pytest.approx(same.logged)


def test_ties_count_as_in_random_order():
    """Not as in the log: a ranking that knows nothing has not the clicks of the logged one."""
    clicked = LOG.position[LOG.click > 0]
    found = estimate_clicks(LOG, np.zeros(LOG.click.size), TRUE, method="ips", clip=1e3)
    mean = np.sum(np.mean(TRUE.propensity) * clicked) / LOG.n_sessions
    assert found.value == pytest.approx(mean)
    pairs = -(LOG.position // 2).astype(float)  # positions 2 and 3 are tied, then 4 and 5, ...
    both = [
        estimate_clicks(LOG, pairs + sign * 1e-3 * LOG.position, TRUE, method="ips", clip=1e3)
        for sign in (-1.0, 1.0)
    ]
    tied = estimate_clicks(LOG, pairs, TRUE, method="ips", clip=1e3)
    assert tied.value == pytest.approx((both[0].value + both[1].value) / 2)
    assert both[0].value != both[1].value


def test_few_clicks_are_a_warning():
    few = make_clicks(Y, qid=QID, n_sessions=20, random_state=2)
    with pytest.warns(UserWarning, match="effective clicks"):
        estimate_clicks(few, NEW[few.document], TRUE)
    with pytest.raises(ValueError, match="relevance"):
        estimate_clicks(LOG, NEW[LOG.document], TRUE, method="dr")
