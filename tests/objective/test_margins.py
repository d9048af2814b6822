"""Margins of pairs."""

import numpy as np
import pytest

from marginrank import RankingData
from marginrank.models.parameters import check_margin
from marginrank.objective.pair_weights import margin_offsets

Y = np.array([0.0, 2.0, 1.0])
ONE = np.zeros(3, dtype=np.int64)


def test_margins_by_name_and_callable():
    np.testing.assert_array_equal(margin_offsets("label", Y, ONE), Y - 1.0)
    np.testing.assert_array_equal(margin_offsets("gain", Y, ONE), [-1.0, 2.0, 0.0])
    np.testing.assert_array_equal(margin_offsets(np.sqrt, Y, ONE), np.sqrt(Y) - 1.0)


def differences(offsets, qid):
    documents = range(len(qid))
    return [offsets[i] - offsets[j] for i in documents for j in documents if qid[i] == qid[j]]


@pytest.mark.parametrize("margin", ["label", lambda y: y])
def test_a_common_offset_of_the_labels_of_a_query_costs_no_digits(margin):
    qid = np.array([0, 1, 0, 1, 1])
    y = np.array([0.125, 2.0, 3.0, 0.5, 1.0])
    offsets = margin_offsets(margin, y + np.array([1e15, -1e14])[qid], qid)
    assert np.abs(offsets).max() < 10
    assert differences(offsets, qid) == differences(y, qid)


@pytest.mark.parametrize("base", [2**60, 2**63, 2**80])
def test_differences_of_large_integer_labels_are_exact(base):
    data = RankingData(np.eye(3), [base, base + 1, base + 3])
    offsets = margin_offsets("label", data.y, data.qid)
    assert differences(offsets, data.qid) == differences([0, 1, 3], data.qid)


@pytest.mark.parametrize("margin", ["no", None, 2.0])
def test_wrong_margins_are_named(margin):
    with pytest.raises(ValueError, match=r"margin=.* must be 'unit', 'label', 'gain' or"):
        check_margin(margin)


@pytest.mark.parametrize("margin", [lambda y: y[:1], lambda y: y / 0.0])
def test_what_a_callable_returns_is_checked(margin):
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"margin\(y\) must return"):
        margin_offsets(margin, Y, ONE)
