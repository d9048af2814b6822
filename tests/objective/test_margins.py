"""Margins of pairs."""

import numpy as np
import pytest

from marginrank import RankingData
from marginrank.models.parameters import check_margin, takes_two_labels
from marginrank.objective.losses import LOSSES
from marginrank.objective.pair_margins import LabelMargins, margin_offsets

HINGE = LOSSES["hinge"]
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
    with pytest.raises(ValueError, match=r"margin=.* must be 'unit', 'label', 'gain', a matrix"):
        check_margin(margin)


@pytest.mark.parametrize("margin", [lambda y: y[:1], lambda y: y / 0.0])
def test_what_a_callable_returns_is_checked(margin):
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"margin\(y\) must return"):
        margin_offsets(margin, Y, ONE)


def test_a_matrix_or_a_callable_of_two_labels_is_known_by_its_form():
    assert takes_two_labels([[0.0, 0.0], [1.0, 0.0]])
    assert takes_two_labels(np.eye(2))
    assert takes_two_labels(lambda a, b: a - b)
    assert takes_two_labels(np.subtract)
    for margin in ("label", np.sqrt, lambda y: y, lambda y, power=2: y**power):
        assert not takes_two_labels(margin)


def test_pairs_are_divided_by_their_margin():
    y = np.array([0.0, 5.0, 2.0, 5.0, 3.0])
    table = np.array([[9, 9, 9, 9], [1, 9, 9, 9], [1, 2, 9, 9], [4, 2, 2, 9]], dtype=float)
    margins = LabelMargins.of_labels(table, y)
    (preferred, other), pieces, ranks = margins.windowed(None, HINGE)
    np.testing.assert_array_equal(pieces[:, 1], HINGE.margin + np.array([1.0, 2.0, 4.0]))
    i, j = np.nonzero(y[:, None] > y)
    a, b = (np.searchsorted(np.unique(y), y[rows]) for rows in (i, j))
    np.testing.assert_array_equal(margins.between(i, j), table[a, b])
    for margin, (first, last) in zip([1.0, 2.0, 4.0], ranks, strict=True):
        weight = np.sum((preferred[i] * other[j])[:, first:last], axis=1)
        np.testing.assert_array_equal(weight, table[a, b] == margin)


@pytest.mark.parametrize(
    ("margin", "n_windows", "n_sums"),
    [
        (lambda a, b: 1.0, 1, 5),
        (lambda a, b: a, 5, 5),
        (lambda a, b: a - b, 5, 15),
    ],
)
def test_equal_margins_share_a_window(margin, n_windows, n_sums):
    factors, pieces, _ = LabelMargins.of_labels(margin, np.arange(6.0)).windowed(None, HINGE)
    assert (len(pieces), factors.preferred.shape[1]) == (n_windows, n_sums)


@pytest.mark.parametrize(
    ("margin", "message"),
    [
        (np.zeros((2, 2)), r"margin has shape \(2, 2\).* 3 distinct labels"),
        (lambda a, b: -a, "margin is -1 for the labels 1 and 0"),
        ([[0, 0, 0], [1, 0, 0], [1, np.nan, 0]], "margin is nan for the labels 2 and 1"),
    ],
)
def test_wrong_margins_of_two_labels_are_named(margin, message):
    with pytest.raises(ValueError, match=message):
        LabelMargins.of_labels(margin, Y)


def test_margins_of_two_labels_need_few_labels():
    with pytest.raises(ValueError, match=r"17 distinct labels; margin .* at most 16"):
        LabelMargins.of_labels(lambda a, b: 1.0, np.arange(17.0))
