"""What holds for every target: an export scores as the model does."""

import numpy as np
import pytest
from helpers.exports import (
    EVERY_TARGET,
    HOSTILE_NAMES,
    assert_scores,
    expected_scores,
    random_documents,
    random_model,
    scores_of,
)
from helpers.tables import each

from marginrank.export.exporting import export_files, offset_above_zero
from marginrank.export.names import NOT_PLAIN
from marginrank.export.registry import TARGETS, find_target
from marginrank.models import LinearModel

every_target = pytest.mark.parametrize("target", EVERY_TARGET)
N_FEATURES = 40


@every_target
def test_missing_features_count_as_zero(target):
    model, X = random_model(N_FEATURES), random_documents(60, N_FEATURES)
    X[0] = np.nan
    assert_scores(target, scores_of(model, target, X), expected_scores(model, X))


@pytest.mark.parametrize("target", [name for name in EVERY_TARGET if name != "fastrank"])
def test_features_without_weights_are_left_out(target):
    """Not even an infinite value of one reaches a score. (fastrank has a weight for each index.)"""
    model, X = random_model(N_FEATURES), random_documents(20, N_FEATURES)
    X[:, 0] = np.inf
    assert_scores(target, scores_of(model, target, X), expected_scores(model, X))


@every_target
def test_names_cannot_break_out(target):
    names = [name for name in HOSTILE_NAMES if target != "sql:mysql" or not NOT_PLAIN.search(name)]
    model, X = random_model(len(names), names=names), random_documents(30, len(names))
    assert_scores(target, scores_of(model, target, X), expected_scores(model, X))


@every_target
def test_models_without_weights_are_not_exported(target):
    with pytest.raises(ValueError, match="all weights of the model are zero"):
        export_files(LinearModel(np.zeros(3), {}), target)


@every_target
def test_ten_thousand_features(target):
    n_features = 3_000 if target == "sql:mysql" else 10_000  # SQLGlot parses for seconds
    model, X = random_model(n_features), random_documents(2, n_features)
    limit = find_target(target)[0].limit
    if limit is not None and limit.features < np.count_nonzero(model.coef):
        with pytest.raises(ValueError, match=r"uses 8,000 features, but .*; train a SparseRankSVM"):
            export_files(model, target)
        model.coef[np.flatnonzero(model.coef)[limit.features :]] = 0.0
    assert_scores(target, scores_of(model, target, X), expected_scores(model, X))


@every_target
def test_constant_features_and_huge_and_tiny_weights(target):
    """Weights of 1e-30 and 1e30, on features that make up for them, and a constant one."""
    model = LinearModel(np.array([1e-30, -2e30, 0.5, 3.0]), {})
    X = random_documents(50, 4, seed=1) * [1e30, 1e-30, 1.0, 0.0] + [0.0, 0.0, 0.0, 7.0]
    assert_scores(target, scores_of(model, target, X), expected_scores(model, X))


@every_target
def test_offsets_lift_all_scores_above_zero(target):
    model, X = random_model(N_FEATURES), random_documents(60, N_FEATURES)
    expected = expected_scores(model, X)
    offset = offset_above_zero(expected)
    assert (expected + offset).min() == pytest.approx(np.ptp(expected))
    if not TARGETS[target.partition(":")[0]].has_offset:
        with pytest.raises(ValueError, match="does not support offset"):
            export_files(model, target, offset=offset)
        return
    scores = scores_of(model, target, X, offset=offset)
    assert_scores(target, scores, expected + offset)
    assert scores.min() > 0


@every_target
def test_features_can_be_renamed(target):
    model, X = random_model(3, names=["a", "b", "c"]), random_documents(9, 3)
    expected = expected_scores(model, X)
    for names in ({"b": "other"}, ["x", "y", "z"]):
        assert_scores(target, scores_of(model, target, X, names=names), expected)


@every_target
def test_the_same_model_gives_the_same_bytes(target):
    model = random_model(N_FEATURES)
    assert export_files(model, target) == export_files(model, target)


@every_target
@each("name", ["nul\0", "lone \ud800", ""])
def test_names_that_nothing_can_hold_are_refused(target, name):
    model = LinearModel(np.ones(2), {}, feature_names=["a", name])
    if TARGETS[target.partition(":")[0]].by_name:
        with pytest.raises(ValueError, match=r"cannot be exported: .*; rename it with names"):
            export_files(model, target)
    else:
        assert export_files(model, target)


@every_target
def test_a_name_that_is_there_twice_is_refused(target):
    model = LinearModel(np.ones(2), {}, feature_names=["a", "a"])
    if TARGETS[target.partition(":")[0]].by_name:
        with pytest.raises(ValueError, match="two features are called 'a' and 'a'"):
            export_files(model, target)
