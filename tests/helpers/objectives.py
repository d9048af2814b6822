"""Objectives of data, for tests: with any pair weights and margins, not only those with a name."""

import numpy as np
import pytest

from marginrank.models.parameters import selected_pairs
from marginrank.objective.level_pairs import LevelPairs
from marginrank.objective.listed_pairs import ListedPairs
from marginrank.objective.objective import Objective
from marginrank.objective.pair_margins import LabelMargins
from marginrank.operators import matrix_of


def make_objective(
    data,
    loss,
    *,
    C=1.0,
    pair_selection="all",
    normalization="none",
    pairs=None,
    pair_weights=None,
    margins=None,
    margin_table=None,
    ridge=1.0,
    threads=1,
    backend="native",
):
    """Return F for the pairs of the labels or of a list.

    `pair_weights` and `margins` are by row; `margin_table` is a matrix over the distinct labels.
    """
    by_label = None
    if margin_table is not None:
        by_label = LabelMargins.of_labels(margin_table, data.y)
    if pairs is None:
        chosen = LevelPairs.from_data(
            data,
            width=selected_pairs(pair_selection).width,
            pair_weights=pair_weights,
            margins=margins,
            label_margins=by_label,
            threads=threads,
        )
    else:
        chosen = ListedPairs.from_data(data, pairs, margins=margins, threads=threads)
    design = matrix_of(data, backend).design(chosen.weighted(C, normalization), threads)
    return Objective(design=design, loss=loss, ridge=ridge)


def assert_parts_are_disjoint_estimates(objective, n_parts=2):
    """Assert that parts of a sample have no document in common and estimate the objective."""
    w = np.array([0.3, -0.2, 0.1, 0.5])
    parts = objective.sample_parts(0.5, 0, n_parts)
    assert len(parts) == n_parts
    rows = [part.pairs.active_documents.rows for part in parts]
    assert np.unique(np.concatenate(rows)).size == sum(some.size for some in rows)
    for part in parts:
        assert 0.1 / n_parts < part.fraction < 0.6 / n_parts
        assert part.at(w).loss_value == pytest.approx(objective.at(w).loss_value, rel=0.3)


def assert_samples_estimate(objective):
    """Assert that samples have the loss and gradient of an objective of four features, nearly."""
    w = np.array([0.3, -0.2, 0.1, 0.5])
    full = objective.at(w)
    points = [objective.sample(0.3, seed).at(w) for seed in range(10)]
    losses = [point.loss_value for point in points]
    assert np.mean(losses) == pytest.approx(full.loss_value, rel=0.05)
    assert np.std(losses) < 0.2 * full.loss_value
    gradient = np.mean([point.gradient for point in points], axis=0)
    np.testing.assert_allclose(
        gradient, full.gradient, atol=0.1 * np.linalg.norm(full.gradient - w)
    )
