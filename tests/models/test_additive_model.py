"""Files of additive models: exact, and refused by name when damaged."""

import json

import numpy as np
import pytest

from marginrank import AdditiveRankSVM, load_model, make_ranking
from marginrank.models import AdditiveModel, is_model, read_any_model, write_model

X, Y, QID = make_ranking(20, 10, 4, random_state=5)
X[::7, 0] = np.nan
X[:, 3] = np.arange(len(Y)) % 3


@pytest.fixture(scope="module")
def model():
    return AdditiveRankSVM(C=0.3, categorical_features=[3], max_bins=6).fit(X, Y, qid=QID)


@pytest.fixture
def path(tmp_path, model):
    model.save(tmp_path / "m.json")
    return tmp_path / "m.json"


def changed(path, **fields):
    content = json.loads(path.read_text()) | fields
    path.write_text(json.dumps(content))
    return path


def test_what_is_loaded_predicts_the_same_bits(path, model):
    loaded = load_model(path)
    assert loaded.get_params() == model.get_params()
    at = np.vstack([3 * X, np.full((1, 4), np.nan)])
    np.testing.assert_array_equal(loaded.predict(at), model.predict(at))
    assert loaded.objective_ == model.objective_
    assert loaded.stop_reason_ is model.stop_reason_
    assert loaded.history_ == model.history_
    loaded.save(path.with_name("again.json"))
    assert path.with_name("again.json").read_bytes() == path.read_bytes()


def test_plain_data_scores_the_same_bits(path, model):
    assert is_model(path)
    plain = read_any_model(path)
    assert isinstance(plain, AdditiveModel)
    assert plain.kind == "marginrank AdditiveRankSVM"
    np.testing.assert_array_equal(plain.scores(X), model.predict(X))
    with pytest.raises(ValueError, match="the data has 2 features, but the model has 4"):
        plain.scores(X[:, :2])
    write_model(plain, path)
    np.testing.assert_array_equal(load_model(path).predict(X), model.predict(X))


def test_what_is_loaded_knows_the_scale(path, model):
    np.testing.assert_array_equal(load_model(path).scale_, model.scale_)
    np.testing.assert_array_equal(read_any_model(path).scale, model.scale_)
    AdditiveRankSVM(scale=None).fit(X, Y, qid=QID).save(path)
    assert load_model(path).scale_ is None
    assert "scale" not in json.loads(path.read_text())  # as in files of earlier versions


def test_a_model_that_does_not_tell_how_its_fit_ended(path, model, tmp_path):
    loaded = load_model(changed(path, training=None, history=None))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.explain(X[1], X[2]) == model.explain(X[1], X[2])
    loaded.save(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads(path.read_text())
    loaded.export(tmp_path / "theirs.py", "python", name="ranker")
    model.export(tmp_path / "ours.py", "python", name="ranker")
    assert (tmp_path / "theirs.py").read_bytes() == (tmp_path / "ours.py").read_bytes()


def test_formats_of_weights_hold_no_curves(path, tmp_path):
    with pytest.raises(ValueError, match="format='svmrank'"):
        write_model(read_any_model(path), tmp_path / "m", "svmrank")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"version": 2}, "format version 2, .* reads version 1"),
        ({"curves": []}, "'n_features' is 4, but there are 0 curves"),
        ({"n_features": 3}, "'n_features' is 3, but there are 4 curves"),
        ({"curves": [1, 1, 1, 1]}, "'curves' is not a list of objects"),
        ({"parameters": {"nonsense": 1}}, "'parameters' are invalid for AdditiveRankSVM"),
        ({"parameters": {"max_bins": -1}}, "'parameters' are invalid for AdditiveRankSVM"),
        ({"feature_names": ["a"]}, "'feature_names' has 1 entries, not 4"),
        ({"training": 3}, "'training' is not null or an object"),
        ({"scale": [1.0, 0.0, 1.0, 1.0]}, "'scale' is not null or a list of positive numbers"),
        ({"scale": [1.0]}, "'scale' has 1 entries, not 4"),
    ],
)
def test_damaged_files_are_refused(path, fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        load_model(changed(path, **fields))


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("knots", [2.0, 1.0], "'values' .* 1 to 255 ascending 'knots', in curve 0"),
        ("knots", [], "'values' .*ascending 'knots', in curve 0"),
        ("values", [1.0], "'values' .*ascending 'knots', in curve 0"),
        ("values", ["a"], "'values' is not a list of finite numbers, in curve 0"),
        ("missing", "NaN", "'missing' is not a finite number, in curve 0"),
        ("missing", 10**400, "'missing' is not a finite number, in curve 0"),
        ("knots", [2**60, 2**60 + 1], "'values' .*ascending 'knots', in curve 0"),
        ("knots", [0, 5e-324], "'values' .*ascending 'knots', in curve 0"),
        ("knots", [-1.7e308, 1.7e308], "'values' .*ascending 'knots', in curve 0"),
        ("categorical", 1, "'categorical' is not a boolean, in curve 0"),
    ],
)
def test_damaged_curves_are_refused(path, field, value, sentence):
    content = json.loads(path.read_text())
    content["curves"][0] |= {"knots": [0.0, 1.0], "values": [0.0, 1.0], "categorical": False}
    content["curves"][0][field] = value
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=sentence):
        load_model(path)


def test_integers_are_numbers(path):
    content = json.loads(path.read_text())
    curve = {"knots": [0, 2**70], "values": [2**80, 2**1000], "missing": 2**1000}
    content["curves"][0] |= curve | {"categorical": False}
    path.write_text(json.dumps(content))
    found = load_model(path).to_additive_model().curves[0]
    assert (found.missing, found.values[1], found.knots[1]) == (2.0**1000, 2.0**1000, 2.0**70)


def test_values_that_are_too_close_to_divide_by_share_a_knot(tmp_path):
    """A curve with knots at 0 and 5e-324 would have an infinite slope."""
    X = np.tile([0.0, 5e-324, 1.0, 2.0, 3.0], 40)[:, None]
    model = AdditiveRankSVM(C=1).fit(X, np.tile([0, 1, 2, 1, 0], 40), qid=np.arange(200) // 10)
    assert model.curves_[0].knots.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert np.isfinite(model.predict([[-1.0], [0.0], [9.0]])).all()
    model.save(tmp_path / "m.json")
    again = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_what_could_not_be_read_again_is_not_written(model, tmp_path):
    bad = AdditiveRankSVM.from_additive_model(model.to_additive_model())
    bad.curves_ = [bad.curves_[0]._replace(missing=np.nan), *bad.curves_[1:]]
    with pytest.raises(ValueError, match="the model cannot be saved: 'missing' is not a finite"):
        bad.save(tmp_path / "bad.json")
    assert not (tmp_path / "bad.json").exists()


def test_one_document_is_explained_at_a_time(model):
    with pytest.raises(ValueError, match=r"other has 5 rows.*X\[0\]"):
        model.explain(X[:1], X[5:10])
