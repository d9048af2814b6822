"""Sums of doubles as sums of integers."""

import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from marginrank.operators.torch.fixed_point import Segments, exact_total, prefix_sums


@given(
    st.lists(
        st.lists(st.floats(-1e200, 1e200, allow_subnormal=False), min_size=0, max_size=9),
        min_size=1,
        max_size=6,
    )
)
def test_sums_are_right_to_the_last_digit(lists):
    values = torch.tensor([v for some in lists for v in some], dtype=torch.float64)
    offsets = torch.as_tensor(np.cumsum([0, *map(len, lists)]))
    found = Segments.of(offsets).sum(values).tolist()
    for total, some in zip(found, lists, strict=True):
        size = max(map(abs, some), default=0.0)
        assert abs(total - math.fsum(some)) <= 2.0**-52 * abs(math.fsum(some)) + 2.0**-80 * size


def test_large_sums_wrap_around_and_come_back():
    """Prefix sums pass 2⁶³ many times; differences are right all the same."""
    values = torch.full((40, 5), 3.0, dtype=torch.float64).ravel()
    segments = Segments.of(torch.arange(0, 201, 5))
    encoded = segments.encode(values)
    assert int(encoded.integers.max()) >= 2**58
    assert prefix_sums(encoded.integers).min() < 0
    torch.testing.assert_close(segments.sum(values), torch.full((40,), 15.0, dtype=torch.float64))


def test_a_nan_is_that_of_its_segment_alone():
    values = torch.tensor([1.0, math.nan, 2.0, 3.0, math.inf], dtype=torch.float64)
    found = Segments.of(torch.tensor([0, 2, 4, 5])).sum(values)
    assert found.isnan().tolist() == [True, False, True]
    assert found[1] == 5.0
    assert exact_total(values).isnan().all()


def test_order_does_not_matter():
    rng = np.random.default_rng(0)
    values = rng.normal(size=1000) * 10.0 ** rng.integers(-9, 9, 1000)
    totals = {float(exact_total(torch.as_tensor(rng.permutation(values)))) for _ in range(10)}
    assert totals == {math.fsum(values)}
