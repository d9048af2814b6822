"""The small problem of the bundle methods, against an interior-point method and by its gap."""

import clarabel
import numpy as np
import pytest
from helpers.tables import each
from scipy import sparse

from marginrank.solvers.hinge.lowest_point import ROUNDING, lowest_point

COUNTS = [(1, 20), (3, 2), (3, 20), (8, 300), (40, 10), (40, 200)]  # features, planes


def hinge_planes(n, k, scale, spread, rng):
    """Return planes that touch a sum of hinges at points near and far, and the zero plane."""
    X = rng.normal(size=(200, n)) * 10.0 ** rng.uniform(-spread, spread, n)
    points = rng.normal(size=(k - 1, n)) * 10.0 ** rng.uniform(-4, 2, (k - 1, 1))
    short = scale * (points / np.abs(X).max(axis=0) @ X.T < 1.0)
    return np.vstack([np.zeros(n), -short @ X]), np.append(0.0, short.sum(axis=1))


def solve(slopes, intercepts):
    return lowest_point(slopes, intercepts, np.eye(1, len(slopes))[0])


def bound(slopes, intercepts, beta):
    v = -(beta @ slopes)
    return beta @ intercepts - 0.5 * v @ v


def rounding(slopes, intercepts, v, beta):
    """Return what rounding may do to the heights of planes, and to the bound."""
    height = (np.abs(intercepts) + np.linalg.norm(slopes, axis=1) * np.linalg.norm(v)).max()
    of_sum = 4 * ROUNDING * (beta @ np.abs(slopes))
    return 4 * ROUNDING * height + np.abs(v) @ of_sum + of_sum @ of_sum


def interior_point(slopes, intercepts):
    """Return the weights that Clarabel finds, with slopes of at most one."""
    k = len(slopes)
    size = np.abs(slopes).max()
    scaled = slopes / size
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(scaled @ scaled.T)),
        -intercepts / size**2,
        sparse.vstack([np.ones((1, k)), -np.eye(k)], format="csc"),
        np.append(1.0, np.zeros(k)),
        [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(k)],
        settings,
    ).solve()
    beta = np.maximum(solution.x, 0.0)
    return beta / beta.sum()


@each(("n", "k"), COUNTS)
@each("scale", [1e-8, 1e-4, 1.0, 1e4, 1e9, 1e15])
@each("spread", [0, 3])
def test_no_plane_is_higher_than_those_in_use(n, k, scale, spread):
    slopes, intercepts = hinge_planes(n, k, scale, spread, np.random.default_rng(0))
    v, beta = solve(slopes, intercepts)
    assert beta.min() >= 0.0
    assert beta.sum() == pytest.approx(1.0, abs=1e-14)
    highest = (intercepts + slopes @ v).max()
    gap = 0.5 * v @ v + highest - bound(slopes, intercepts, beta)
    assert abs(gap) <= rounding(slopes, intercepts, v, beta)


@pytest.mark.parametrize(("n", "k"), COUNTS)
@each("scale", [1e-4, 1e-2, 1.0])
def test_an_interior_point_method_finds_the_same_bound(n, k, scale):
    """On scales on which it finds one."""
    slopes, intercepts = hinge_planes(n, k, scale, 0, np.random.default_rng(1))
    _, beta = solve(slopes, intercepts)
    expected = bound(slopes, intercepts, interior_point(slopes, intercepts))
    assert bound(slopes, intercepts, beta) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e9])
def test_planes_given_twice_change_nothing(scale):
    slopes, intercepts = hinge_planes(5, 30, scale, 0, np.random.default_rng(2))
    once, _ = solve(slopes, intercepts)
    twice, beta = solve(np.repeat(slopes, 2, axis=0), np.repeat(intercepts, 2))
    np.testing.assert_allclose(twice, once, rtol=1e-9)
    assert np.count_nonzero(beta) <= 6  # affinely independent


def test_parallel_planes_leave_the_highest():
    slopes = np.tile([3.0, 4.0], (5, 1))
    v, beta = solve(slopes, np.array([1.0, 5.0, 2.0, 4.0, 3.0]))
    np.testing.assert_array_equal(beta, [0, 1, 0, 0, 0])
    np.testing.assert_array_equal(v, [-3, -4])


def test_planes_without_a_dimension():
    v, beta = solve(np.zeros((3, 0)), np.array([0.0, 2.0, 1.0]))
    assert v.size == 0
    np.testing.assert_array_equal(beta, [0, 1, 0])


def test_weights_of_fewer_planes_are_a_start():
    slopes, intercepts = hinge_planes(8, 100, 1.0, 0, np.random.default_rng(3))
    beta = np.eye(1, 100)[0]
    for size in range(2, 101):
        _, some = lowest_point(slopes[:size], intercepts[:size], beta[:size])
        beta[:size] = some
    expected, _ = solve(slopes, intercepts)
    np.testing.assert_allclose(-(beta @ slopes), expected, rtol=1e-9)
