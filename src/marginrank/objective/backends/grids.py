"""Grids of two features beside the curves of a matrix."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.types import Floats, Integers
from marginrank.data.grids import (
    CLASSES,
    MOST_NODES,
    Grid,
    axis_places,
    with_grids,
)
from marginrank.data.knots import WHOLE, Knots, Places
from marginrank.objective.backends.curves import CurveMatrix
from marginrank.objective.curve_basis import sample
from marginrank.objective.grid_basis import Axis, make_grid_block

BINS = 16  # of an axis
CATEGORIES = MOST_NODES  # that have a row of their own; others are where missing values are


def add_grids(
    matrix: CurveMatrix,
    pairs: Sequence[tuple[int, int]],
    smoothness: float,
    scale: Floats | None,
    threads: int,
) -> CurveMatrix:
    """Return a matrix of curves with the basis functions of grids behind.

    Parameters
    ----------
    matrix : CurveMatrix
        The curves.
    pairs : sequence of (int, int)
        The features of each grid.
    smoothness, scale
        As in :func:`~marginrank.objective.curve_basis.make_basis`.
    threads : int
        Number of threads.
    """
    knots, places = matrix.knots, matrix.places
    grids, corners, blocks = [], [], []
    for pair in pairs:
        grid = Grid(
            pair,
            (axis_knots(knots, places, pair[0]), axis_knots(knots, places, pair[1])),
            (bool(knots.categorical[pair[0]]), bool(knots.categorical[pair[1]])),
        )
        axes = axis_places(grid, knots, places, threads)
        rows, columns = (
            Axis(
                scale_ratio(matrix, k, scale),
                used_nodes(axes, side, grid.shape[side]),
                grid.categorical[side],
            )
            for side, k in enumerate(pair)
        )
        grids.append(grid)
        corners.append(grid.corners(axes))
        blocks.append(make_grid_block(grid, sample(axes), rows, columns, smoothness))
    return CurveMatrix.of(
        with_grids(places, corners),
        knots,
        matrix.basis.and_grids(blocks),
        (*matrix.grids, *grids),
    )


def axis_knots(knots: Knots, places: Places, k: int) -> Floats:
    """Return the knots of a feature that are nodes of grids: some of equal rank, or frequent."""
    of_feature = knots.of(k)
    if not knots.categorical[k]:
        kept = np.unique(np.linspace(0, of_feature.size - 1, BINS + 1).round().astype(np.int64))
    else:
        counts = column_counts(knots, places, k)[1:]
        kept = np.sort(np.argsort(-counts, kind="stable")[:CATEGORIES])
    some: Floats = of_feature[kept]
    return some


def nearest_columns(places: Places, k: int) -> Integers:
    """Return the column of a feature that each value is nearest to."""
    return places.codes[:, k].astype(np.int64) + (places.steps[:, k] >= WHOLE // 2)


def column_counts(knots: Knots, places: Places, k: int) -> Integers:
    """Return how many values are nearest to each column of a feature."""
    n_columns = knots.of(k).size + 1
    return np.bincount(nearest_columns(places, k), minlength=n_columns)


def used_nodes(axes: Places, side: int, n_nodes: int) -> NDArray[np.bool_]:
    """Return which nodes of an axis have documents."""
    left, steps = axes.codes[:, side].astype(np.int64), axes.steps[:, side]
    used = np.zeros(n_nodes, dtype=bool)
    used[left[steps < WHOLE]] = True
    used[left[steps > 0] + 1] = True
    return used


def scale_ratio(matrix: CurveMatrix, k: int, scale: Floats | None) -> float:
    """Return (σ / τ)² of a feature, 1 for categories."""
    if matrix.knots.categorical[k]:
        return 1.0
    sigma = 1.0 if scale is None else float(scale[k])
    return (sigma / float(matrix.basis.deviations[k])) ** 2


def grid_values(matrix: CurveMatrix, at_columns: Floats) -> list[Floats]:
    """Return the values of all grids at their nodes, from those at all columns."""
    starts = matrix.starts[matrix.knots.n_features : -1 : CLASSES]
    return [
        at_columns[first + grid.columns].reshape(grid.shape)
        for first, grid in zip(starts, matrix.grids, strict=True)
    ]
