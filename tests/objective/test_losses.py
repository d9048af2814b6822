"""Losses as sums of hinge pieces."""

import numpy as np
import pytest

from marginrank.objective.losses import LOSSES, Loss, Piece, get_loss, logistic

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


def test_hinge_is_its_formula():
    np.testing.assert_array_equal(LOSSES["hinge"].value(T), np.maximum(0, 1 - T))


@pytest.mark.parametrize("error", [0.1, 0.01, 0.001, 1e-4])
def test_logistic_is_within_its_error(error):
    t = np.linspace(-60.0, 60.0, 100_001)
    loss = logistic(error)
    assert loss.smooth
    assert np.max(np.abs(loss.value(t) - np.logaddexp(0.0, -t))) <= error
    assert loss.value(60.0) == 0.0
    assert loss.value(-1e6) == pytest.approx(1e6, rel=1e-9)


def test_logistic_by_name():
    assert get_loss("logistic") == logistic(0.01)
    assert get_loss("logistic@0.003") == logistic(0.003)
    assert get_loss("huber") is LOSSES["huber"]


@pytest.mark.parametrize(
    "name", ["logistic@", "logistic@x", "logistic@2", "logistic@nan", "hinge@0.1", "no", None, 3]
)
def test_unknown_losses_are_refused_by_name(name):
    with pytest.raises(ValueError, match=f"loss={name!r} "):
        get_loss(name)


@pytest.mark.parametrize("width", [2.0, 0.1])
def test_smoothing_rounds_the_kink_only(width):
    hinge, smooth = LOSSES["hinge"], LOSSES["hinge"].smoothed(width)
    t = np.linspace(-3.0, 5.0, 1001)
    difference = smooth.value(t) - hinge.value(t)
    outside = np.abs(t - 1.0) >= width / 2
    np.testing.assert_allclose(difference[outside], 0.0, atol=1e-13 / width)
    assert np.max(difference) == pytest.approx(width / 8, rel=1e-2)
    assert np.min(difference) >= -1e-13 / width
    assert smooth.smooth


def test_shifted():
    loss = LOSSES["huber"]
    np.testing.assert_allclose(loss.shifted(-0.5).value(T - 0.5), loss.value(T), atol=1e-14)
    assert loss.shifted(-loss.margin).margin == 0.0


def test_kinds_of_losses():
    kinds = {name: (loss.smooth, loss.piecewise_linear) for name, loss in LOSSES.items()}
    assert kinds["hinge"] == (False, True)
    assert {kinds[name] for name in kinds if name != "hinge"} == {(True, False)}
    mixed = Loss("mixed", (Piece(1.0, 1.0, 2), Piece(1.0, 1.0, 1)))
    assert (mixed.smooth, mixed.piecewise_linear) == (False, False)


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
