"""Grids of two features beside the curves of a matrix."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.types import Floats, Integers
from marginrank.additive.curve_basis import sample
from marginrank.additive.curve_matrix import CurveMatrix
from marginrank.additive.grid_basis import GridAxis, make_grid_block
from marginrank.additive.grids import CLASSES, MOST_NODES, FeatureGrid, axis_codes, with_grids
from marginrank.additive.knots import WHOLE, HatCodes
from marginrank.data.knots import Knots
from marginrank.models.additive_model import Interaction

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
        As in :meth:`~marginrank.additive.curve_basis.CurveShapes.basis`.
    threads : int
        Number of threads.
    """
    knots, codes = matrix.knots, matrix.codes
    grids, corners, blocks = [], [], []
    for pair in pairs:
        grid = FeatureGrid(
            pair,
            (axis_knots(knots, codes, pair[0]), axis_knots(knots, codes, pair[1])),
            (bool(knots.categorical[pair[0]]), bool(knots.categorical[pair[1]])),
        )
        axes = axis_codes(grid, knots, codes, threads)
        rows, columns = (
            GridAxis(
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
        with_grids(codes, corners),
        knots,
        matrix.basis.and_grids(blocks),
        (*matrix.grids, *grids),
    )


def axis_knots(knots: Knots, codes: HatCodes, k: int) -> Floats:
    """Return the knots of a feature that are nodes of grids: some of equal rank, or frequent."""
    of_feature = knots.of(k)
    if not knots.categorical[k]:
        kept = np.unique(np.linspace(0, of_feature.size - 1, BINS + 1).round().astype(np.int64))
    else:
        counts = column_counts(knots, codes, k)[1:]
        kept = np.sort(np.argsort(-counts, kind="stable")[:CATEGORIES])
    some: Floats = of_feature[kept]
    return some


def nearest_columns(codes: HatCodes, k: int) -> Integers:
    """Return the column of a feature that each value is nearest to."""
    return codes.codes[:, k].astype(np.int64) + (codes.steps[:, k] >= WHOLE // 2)


def column_counts(knots: Knots, codes: HatCodes, k: int) -> Integers:
    """Return how many values are nearest to each column of a feature."""
    n_columns = knots.of(k).size + 1
    return np.bincount(nearest_columns(codes, k), minlength=n_columns)


def used_nodes(axes: HatCodes, side: int, n_nodes: int) -> NDArray[np.bool_]:
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


def interactions_of(matrix: CurveMatrix, at_columns: Floats) -> list[Interaction]:
    """Return the functions on all grids, from the values at all columns."""
    starts = matrix.starts[matrix.knots.n_features : -1 : CLASSES]
    return [
        Interaction(
            grid.features,
            grid.axes,
            at_columns[first + grid.columns].reshape(grid.shape),
            grid.categorical,
        )
        for first, grid in zip(starts, matrix.grids, strict=True)
    ]
