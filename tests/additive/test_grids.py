"""Grids of two features: nodes in four classes, and values between them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from marginrank import _core
from marginrank.additive.grid_basis import node_weights
from marginrank.additive.grids import (
    CLASSES,
    MOST_NODES,
    FeatureGrid,
    axis_codes,
    hat_starts,
    with_grids,
)
from marginrank.additive.knots import choose_knots, encode
from marginrank.data.knots import Knots
from marginrank.models.additive_model import Interaction, interaction_scores

RNG = np.random.default_rng(0)
X = np.c_[RNG.normal(size=300), RNG.exponential(size=300), RNG.integers(0, 5, 300)].astype(float)
X[::11, 0] = np.nan
X[::13, 2] = np.nan
X[3, [0, 2]] = np.nan
GRIDS = {
    "numbers": FeatureGrid(
        (0, 1), (np.array([-1.0, 0.0, 0.5]), np.array([0.0, 1.0, 2.0, 4.0])), (False, False)
    ),
    "categories": FeatureGrid(
        (2, 1), (np.array([0.0, 2.0, 3.0]), np.array([0.5, 1.0])), (True, False)
    ),
    "both": FeatureGrid((2, 0), (np.array([1.0, 4.0]), np.array([-0.5, 0.0, 0.5])), (True, False)),
}


def grid_scores(grids, values, X, threads):
    interactions = [
        Interaction(grid.features, grid.axes, at_nodes, grid.categorical)
        for grid, at_nodes in zip(grids, values, strict=True)
    ]
    return interaction_scores(interactions, X, threads)


def axis_weights(knots, categorical, x):
    """The weight of each row of an axis, straight from what it means."""
    weights = np.zeros(knots.size + 1)
    if np.isnan(x) or (categorical and x not in knots):
        weights[0] = 1.0
    elif categorical:
        weights[1 + np.flatnonzero(knots == x)[0]] = 1.0
    else:
        for k in range(knots.size):
            weights[1 + k] = np.interp(x, knots, np.eye(knots.size)[k])
    return weights


def brute_force(grid, values, X):
    a, b = grid.features
    return np.array(
        [
            axis_weights(grid.axes[0], grid.categorical[0], row[a])
            @ values
            @ axis_weights(grid.axes[1], grid.categorical[1], row[b])
            for row in X
        ]
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_bilinear_and_stay_what_they_are_at_the_edge(dtype):
    x = np.vstack([X, 100 * X]).astype(dtype)
    values = [RNG.normal(size=grid.shape) for grid in GRIDS.values()]
    expected = sum(brute_force(g, v, x) for g, v in zip(GRIDS.values(), values, strict=True))
    for threads in (1, 2):
        assert_allclose(grid_scores(list(GRIDS.values()), values, x, threads), expected, atol=1e-12)


def test_without_grids_scores_are_zero():
    assert_array_equal(grid_scores([], [], X, 1), np.zeros(len(X)))


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
def test_classes_hold_the_corners_of_every_document(grid):
    """Products with hat functions of the classes are values of the grid, but for rounding."""
    knots = choose_knots(X, 32, [2])
    axes = axis_codes(grid, knots, encode(knots, X, 1), 1)
    values = RNG.normal(size=grid.shape)
    expected = brute_force(grid, values, X)
    size = np.abs(values).max()
    assert_allclose(node_weights(grid, axes) @ values.ravel(), expected, atol=1e-4 * size)
    by_column = np.zeros(grid.widths.sum())
    by_column[grid.columns] = values.ravel()
    corners = grid.corners(axes)
    starts = np.concatenate([[0], np.cumsum(grid.widths)])
    found = _core.Matrix.hats(corners.codes, corners.steps, starts).dot(by_column, None, 1)
    assert_allclose(found, expected, atol=1e-3 * size)


def test_every_node_has_a_column_of_its_own():
    for shape in [(2, 2), (2, 5), (MOST_NODES, MOST_NODES), (7, 4)]:
        grid = FeatureGrid(
            (0, 1), (np.arange(float(shape[0])), np.arange(float(shape[1]))), (False, False)
        )
        columns = grid.columns
        assert np.unique(columns).size == columns.size == np.prod(grid.shape)
        assert (columns % 2 == 1).all()
        assert columns.max() < grid.widths.sum() == 2 * columns.size
        assert grid.widths.max() <= 256


def test_classes_follow_the_features():
    knots, grid = Knots.of_features([np.arange(3.0), np.arange(2.0)]), GRIDS["numbers"]
    assert_array_equal(hat_starts(knots, [grid]), np.cumsum([0, 4, 3, *grid.widths]))
    x = np.c_[np.linspace(0, 2, 5), np.linspace(0, 1, 5)]
    places = encode(knots, x, 1)
    corners = grid.corners(encode(grid.knots, x, 1))
    both = with_grids(places, [corners])
    assert both.codes.shape == (5, 2 + CLASSES)
    assert_array_equal(both.codes[:, :2], places.codes)
    assert_array_equal(both.steps[:, 2:], corners.steps)


def test_sums_by_the_cells_of_each_two_features():
    codes = RNG.integers(0, 4, size=(3, 50)).astype(np.uint8)
    z = RNG.normal(size=50)
    sums = _core.cell_sums(codes, z, 4, 2).reshape(3, 4, 4)
    for found, (a, b) in zip(sums, [(0, 1), (0, 2), (1, 2)], strict=True):
        expected = np.zeros((4, 4))
        np.add.at(expected, (codes[a], codes[b]), z)
        assert_allclose(found, expected, atol=1e-14)
    with pytest.raises(ValueError, match="codes must be less than the width"):
        _core.cell_sums(codes, z, 3, 1)


def test_native_scores_refuse_what_does_not_fit():
    grid = GRIDS["numbers"]
    with pytest.raises(ValueError, match="one entry per node"):
        grid_scores([grid], [np.zeros((2, 2))], X, 1)
    with pytest.raises(ValueError, match="columns of x"):
        grid_scores([grid], [np.zeros(grid.shape)], X[:, :1], 1)
