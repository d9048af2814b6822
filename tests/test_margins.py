"""Margins of pairs."""

import numpy as np
import pytest

from marginrank.margins import margin_offsets

Y = np.array([0.0, 2.0, 1.0])


def test_margins_by_name_and_callable():
    assert margin_offsets("unit", Y) is None
    np.testing.assert_array_equal(margin_offsets("label", Y), Y)
    np.testing.assert_array_equal(margin_offsets("gain", Y), [1.0, 4.0, 2.0])
    np.testing.assert_array_equal(margin_offsets(np.sqrt, Y), np.sqrt(Y))


@pytest.mark.parametrize("margin", ["no", None, 2.0])
def test_wrong_margins_are_named(margin):
    with pytest.raises(ValueError, match=r"margin=.* must be 'unit', 'label', 'gain' or"):
        margin_offsets(margin, Y)


@pytest.mark.parametrize("margin", [lambda y: y[:1], lambda y: y / 0.0])
def test_what_a_callable_returns_is_checked(margin):
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"margin\(y\) must return"):
        margin_offsets(margin, Y)
