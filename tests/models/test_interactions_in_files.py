"""Pairs of features in model files: refused by name when damaged, absent where there are none."""

import json

import numpy as np
import pytest

from marginrank import load_model
from marginrank.models import AdditiveModel, read_any_model, write_model
from marginrank.models.additive_model import Curve, Interaction

CURVES = [Curve(np.array([0.0, 1.0]), np.array([0.0, 1.0]), 0.5, categorical=False)] * 3
PAIR = Interaction(
    features=(0, 2),
    knots=(np.array([0.0, 1.0]), np.array([2.0, 4.0, 6.0])),
    values=np.arange(12.0).reshape(3, 4),
    categorical=(False, True),
)
MODEL = AdditiveModel(CURVES, {}, feature_names=["a", "b", "c"], interactions=[PAIR])


@pytest.fixture
def path(tmp_path):
    write_model(MODEL, tmp_path / "m.json")
    return tmp_path / "m.json"


def test_what_is_read_is_what_was_written(path):
    [read] = read_any_model(path).interactions
    assert read.features == PAIR.features
    assert read.categorical == PAIR.categorical
    np.testing.assert_array_equal(read.values, PAIR.values)
    for one, other in zip(read.knots, PAIR.knots, strict=True):
        np.testing.assert_array_equal(one, other)


def test_scores_by_hand():
    """Three curves add 0.5 each for what is missing; a category that is no knot is missing too."""
    nan = np.nan
    documents = [
        [nan, nan, nan],  # the corner of missing values: 0
        [nan, nan, 4.0],  # in the row of missing values: 2
        [0.5, nan, 2.0],  # halfway from 5 to 9
        [0.5, nan, 5.0],  # no category: halfway from 4 to 8
        [9.0, nan, 6.0],  # beyond the knots: the last row, 11
    ]
    of_curves = [1.5, 0.5 + 0.5 + 4.0, 0.5 + 0.5 + 2.0, 0.5 + 0.5 + 5.0, 9.0 + 0.5 + 6.0]
    of_pair = [0.0, 2.0, 7.0, 6.0, 11.0]
    np.testing.assert_allclose(MODEL.scores(documents), np.add(of_curves, of_pair), rtol=1e-15)


def test_a_file_without_pairs_has_no_field_for_them(tmp_path):
    write_model(AdditiveModel(CURVES, {}), tmp_path / "m.json")
    assert "interactions" not in json.loads((tmp_path / "m.json").read_text())
    assert list(load_model(tmp_path / "m.json").interactions_) == []


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("features", [0], "'features' has 1 entries, not 2, in interaction 0"),
        ("features", [0, 3], r"'features' is \[0, 3\], not two"),
        ("features", [1, 1], r"'features' is \[1, 1\], not two"),
        ("knots", [[0, 1]], "'knots' has 1 entries, not 2, in interaction 0"),
        ("knots", [[0, 1], [2, 2, 3]], "'knots' must be two lists"),
        ("values", [[0.0] * 4] * 2, "'values' has 2 entries, not 3"),
        ("values", [[0.0, 1.0, 2.0, "NaN"]] * 3, "'values' is not a list of lists of finite"),
        ("categorical", [True], "'categorical' has 1 entries, not 2"),
    ],
)
def test_damaged_pairs_are_refused(path, field, value, sentence):
    content = json.loads(path.read_text())
    content["interactions"][0][field] = value
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=sentence):
        load_model(path)


def test_pairs_that_are_no_list_are_refused(path):
    content = json.loads(path.read_text()) | {"interactions": 3}
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="'interactions' is not null or a list of objects"):
        load_model(path)
