"""Losses as sums of hinge pieces."""

import numpy as np
import pytest

from marginrank.losses import LOSSES, Loss, Piece

T = np.linspace(-3.0, 3.0, 61) + 0.017  # no kink of any loss


@pytest.fixture(params=LOSSES.values(), ids=LOSSES)
def loss(request):
    return request.param


def test_squared_hinge_is_its_formula():
    np.testing.assert_allclose(
        LOSSES["squared_hinge"].value(T), np.maximum(0, 1 - T) ** 2, rtol=1e-15
    )


def test_huber_is_quadratic_then_linear():
    expected = np.where(T > 1, 0.0, np.where(T > 0, (1 - T) ** 2, 1 - 2 * T))
    np.testing.assert_allclose(LOSSES["huber"].value(T), expected, rtol=1e-13, atol=1e-15)


def test_every_loss_is_convex_and_decreasing(loss):
    assert np.all(loss.derivative(T) <= 0)
    assert np.all(np.diff(loss.derivative(T)) >= -1e-12)
    assert np.all(loss.curvature(T) >= 0)


def test_derivatives_are_those_of_the_value(loss):
    h = 1e-6
    slope = (loss.value(T + h) - loss.value(T - h)) / (2 * h)
    curvature = (loss.derivative(T + h) - loss.derivative(T - h)) / (2 * h)
    np.testing.assert_allclose(loss.derivative(T), slope, atol=1e-8)
    np.testing.assert_allclose(loss.curvature(T), curvature, atol=1e-8)


def test_at_a_kink_derivatives_are_those_from_the_right():
    hinge = Loss("hinge", (Piece(2.0, 1.0, 1),))
    np.testing.assert_array_equal(hinge.derivative([0.999, 1.0]), [-2.0, 0.0])
    np.testing.assert_array_equal(LOSSES["squared_hinge"].curvature([0.999, 1.0]), [2.0, 0.0])


def test_only_quadratic_pieces_are_smooth(loss):
    assert loss.smooth
    assert not Loss("hinge", (Piece(1.0, 1.0, 2), Piece(1.0, 1.0, 1))).smooth


def test_pieces_become_rows():
    np.testing.assert_array_equal(LOSSES["huber"].as_array(), [[1, 1, 2], [-1, 0, 2]])


def test_names_are_what_users_write():
    assert all(name == loss.name for name, loss in LOSSES.items())


def test_the_squared_derivative_is_a_sum_of_pieces():
    three = Loss("three", (Piece(1.0, 1.0, 2), Piece(-0.4, 0.3, 2), Piece(-0.6, -0.5, 2)))
    for each in (LOSSES["squared_hinge"], LOSSES["huber"], three):
        np.testing.assert_allclose(
            each.squared_derivative().value(T), each.derivative(T) ** 2, rtol=1e-12, atol=1e-12
        )


def test_the_largest_curvature():
    assert LOSSES["squared_hinge"].largest_curvature == 2.0
    assert LOSSES["huber"].largest_curvature == 2.0
    assert Loss("half", (Piece(0.5, 1.0, 2), Piece(-0.25, 0.0, 2))).largest_curvature == 1.0
