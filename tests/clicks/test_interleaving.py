"""Team-draft interleaving: fair in every position, and a test of its outcome."""

import numpy as np
import pytest

from marginrank import interleave, interleaving_test

FIRST, SECOND = list("abcdef"), list("cbagha")


def test_each_ranking_contributes_its_best_documents():
    for seed in range(50):
        shown = interleave(FIRST, SECOND, length=5, random_state=seed)
        assert len(set(shown.documents)) == 5
        for k in range(5):
            ranking = (FIRST, SECOND)[shown.team[k]]
            left = [d for d in ranking if d not in shown.documents[:k]]
            assert shown.documents[k] == left[0]
        assert abs(sum(shown.team[:4]) - 2) == 0  # both picked in each round


def test_both_have_the_same_chance_at_every_position():
    rng = np.random.default_rng(0)
    other = list("ghijkl")
    teams = np.array(
        [interleave(FIRST, other, length=6, random_state=rng).team for _ in range(2000)]
    )
    np.testing.assert_allclose(teams.mean(axis=0), 0.5, atol=0.05)


def test_all_documents_of_short_lists_are_shown():
    shown = interleave(["a"], ["a", "b"], length=10, random_state=0)
    assert sorted(shown.documents) == ["a", "b"]
    with pytest.raises(ValueError, match="length=0"):
        interleave(FIRST, SECOND, length=0)


def test_the_sign_test_is_exact():
    session = np.repeat(np.arange(10), 2)
    team = np.tile([0, 1], 10)
    click = np.zeros(20)
    click[::2][:8] = 1  # the first wins 8 sessions
    click[1::2][8:9] = 1  # the second wins one; one is a tie
    found = interleaving_test(team, click, session)
    assert found[:3] == (8, 1, 1)
    assert found.p_value == pytest.approx(2 * (1 + 9) / 2**9)
    assert found.preference == pytest.approx(8 / 9)
    assert np.isnan(interleaving_test([0, 1], [0, 0], [1, 1]).preference)
    with pytest.raises(ValueError, match=r"team\[1\] is 2"):
        interleaving_test([0, 2], [0, 0], [1, 1])
