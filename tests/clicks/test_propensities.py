"""Estimated propensities: exact on exact click rates, within their errors on simulated logs."""

import numpy as np
import pytest
from helpers.tables import each

from marginrank import ClickLog, estimate_propensities, make_clicks, make_ranking
from marginrank.clicks.propensities import METHODS

X, Y, QID = make_ranking(40, 10, 4, random_state=0)
TRUE = 1 / np.arange(1, 6)


@each("method", METHODS)
def test_estimates_are_within_their_standard_errors(method):
    log = make_clicks(Y, qid=QID, n_sessions=40_000, eta=1.0, random_state=5)
    found = estimate_propensities(log, method, n_positions=5)
    assert found.propensity[0] == pytest.approx(1.0)
    assert found.standard_error[0] == pytest.approx(0.0, abs=1e-12)
    away = np.abs(found.propensity - TRUE)[1:] / found.standard_error[1:]
    assert (found.standard_error[1:] < 0.05).all()
    assert away.max() < 3.0


@each("method", METHODS)
def test_exact_click_rates_give_exact_propensities(method):
    # A document of relevance 1/2, shown 60 times at each of 3 positions of propensity 1, 1/2, 1/3.
    clicks = [30, 15, 10]
    position = np.repeat([1, 2, 3], 60)
    click = np.concatenate([np.arange(60) < c for c in clicks]).astype(float)
    n = 180
    log = ClickLog.of(
        session=np.arange(2 * n),
        query=np.repeat(["a", "b"], n),
        document=np.repeat(["x", "y"], n),
        position=np.tile(position, 2),
        click=np.tile(click, 2),
    )
    found = estimate_propensities(log, method, n_positions=3)
    np.testing.assert_allclose(found.propensity, [1, 1 / 2, 1 / 3], rtol=1e-3)
    np.testing.assert_allclose(found.of([1, 3, 9]), [1, 1 / 3, 1 / 3], rtol=1e-3)


def test_a_log_without_interventions_is_rejected():
    log = make_clicks(Y, qid=QID, scores=X[:, 0], n_sessions=500, random_state=6)
    for method in METHODS:
        with pytest.raises(ValueError, match="at position 2"):
            estimate_propensities(log, method)


def test_wrong_logs_are_named():
    good = {"session": [0, 0], "query": [1, 1], "document": [1, 2], "position": [1, 2]}
    for wrong, message in (
        ({"position": [0, 1]}, r"position\[0\] is 0"),
        ({"position": [1, 2.5]}, r"position\[1\] is 2.5; positions are whole numbers"),
        ({"position": [1]}, "position has 1 entries and needs 2"),
        ({"position": [2, 2]}, r"position\[1\] is 2, but another document"),
        ({"click": [0, 2]}, r"click\[1\] is 2"),
        ({"query": [1]}, "query has shape"),
    ):
        with pytest.raises(ValueError, match=message):
            ClickLog.of(**{**good, "click": [0, 1], **wrong})
    empty = ClickLog.of(session=[], query=[], document=[], position=[], click=[])
    assert empty.n_sessions == 0


# Of ultr-bias-toolkit 0.0.5, whose all-pairs estimator is right for up to five positions: from six
# on, pairs with the same product of positions, such as (1, 6) and (2, 3), share a click rate there.
REFERENCE = {
    "pivot": [1.0, 0.567828, 0.365566, 0.232242, 0.157800],
    "adjacent": [1.0, 0.567828, 0.479507, 0.322045, 0.199617],
    "all_pairs": [1.0, 0.502271, 0.370841, 0.241455, 0.178640],
}


@each("method", METHODS)
def test_estimates_agree_with_another_library(method):
    legacy = np.random.RandomState(0)  # its numbers never change
    document = legacy.randint(20, size=4000)
    position = (document + legacy.choice([0, 1, 3], size=4000)) % 5 + 1  # three of the five
    click = legacy.uniform(size=4000) < (0.2 + 0.03 * document) / position
    log = ClickLog.of(
        session=np.arange(4000),
        query=document % 2,
        document=document,
        position=position,
        click=click,
    )
    found = estimate_propensities(log, method, n_positions=5)
    np.testing.assert_allclose(found.propensity, REFERENCE[method], atol=2e-6)
