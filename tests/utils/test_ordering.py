"""The largest of many values: the same ones whatever sorts them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marginrank._utils.ordering import places_of_largest


@given(st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 2.0, np.inf]), min_size=1), st.integers(1, 9))
def test_of_equal_values_the_first_are_taken(values, k):
    values = np.array(values)
    expected = np.sort(np.argsort(-values, kind="stable")[:k])
    np.testing.assert_array_equal(places_of_largest(values, k), expected)


@pytest.mark.parametrize("k", [1, 30, 999])
def test_many_equal_values(k):
    np.testing.assert_array_equal(places_of_largest(np.ones(1000), k), np.arange(k))
