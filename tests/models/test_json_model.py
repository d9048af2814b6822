"""JSON models: exact, readable by anyone, and refused by name when damaged."""

import json
import math
import os
import time

import numpy as np
import pandas as pd
import pytest
from helpers.tables import each
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from marginrank import RankSVM, StopReason, load_model, make_ranking

X, Y, QID = make_ranking(n_queries=20, docs_per_query=10, n_features=6, random_state=5)


@pytest.fixture(scope="module")
def model():
    return RankSVM(C=0.37, loss="huber", tol=1e-4, normalization="query").fit(X, Y, qid=QID)


@pytest.fixture
def path(tmp_path, model):
    model.save(tmp_path / "m.json")
    return tmp_path / "m.json"


def public(model):
    """Return the attributes that files hold: public ones, but for a count of the fit's pairs."""
    return {name for name in vars(model) if not name.startswith("_")} - {"support_pairs_"}


def assert_same(a, b):
    assert type(a) is type(b)
    assert a.get_params() == b.get_params()
    assert public(a) == public(b)
    np.testing.assert_array_equal(a.coef_, b.coef_)
    for name in ("objective_", "gap_", "stop_reason_", "n_iter_", "n_pairs_", "n_features_in_"):
        assert getattr(a, name) == getattr(b, name)
    assert a.history_ == b.history_


def test_round_trip(path, model):
    loaded = load_model(path)
    assert_same(model, loaded)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.rank(X, qid=QID), model.rank(X, qid=QID))


def test_saving_again_gives_the_same_bytes(path, tmp_path):
    load_model(path).save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


def test_a_loaded_model_can_be_fitted_again(path, model):
    loaded = load_model(path).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    warm = load_model(path).set_params(warm_start=True).fit(X, Y, qid=QID)
    assert warm.n_iter_ <= model.n_iter_


def with_coef(coef):
    model = RankSVM()
    model.coef_ = np.array(coef, dtype=np.float64)
    model.n_features_in_ = model.coef_.size
    return model


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_weights_are_exact_to_the_last_bit(tmp_path_factory, coef):
    path = tmp_path_factory.mktemp("model") / "m.json"
    with_coef(coef).save(path)
    assert load_model(path).coef_.tobytes() == np.array(coef).tobytes()


@given(st.lists(st.text(), min_size=2, max_size=2))
def test_feature_names_are_exact(tmp_path_factory, names):
    path = tmp_path_factory.mktemp("model") / "m.json"
    model = with_coef([1.0, 2.0])
    model.feature_names_in_ = np.array(names, dtype=object)
    model.save(path)
    assert load_model(path).feature_names_in_.tolist() == names


def test_feature_names_are_checked_after_loading(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcdef"))
    RankSVM().fit(frame, Y, qid=QID).save(tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(loaded.feature_names_in_, list("abcdef"))
    loaded.predict(frame)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[list("fedcba")])


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_numbers_that_json_does_not_have(tmp_path, value):
    model = RankSVM().fit(X, Y, qid=QID)
    model.gap_ = value
    model.save(tmp_path / "m.json")
    gap = load_model(tmp_path / "m.json").gap_
    assert gap == value or (math.isnan(gap) and math.isnan(value))
    json.loads((tmp_path / "m.json").read_text(), parse_constant=pytest.fail)


def test_why_it_stopped_is_kept(tmp_path):
    with pytest.warns(ConvergenceWarning):
        model = RankSVM(C=10.0, max_iter=1, solver="tron", tol=1e-12).fit(X, Y, qid=QID)
    model.save(tmp_path / "m.json")
    assert load_model(tmp_path / "m.json").stop_reason_ is StopReason.MAX_ITER


def test_parameters_of_numpy_types_and_generators(tmp_path):
    model = RankSVM(C=np.float64(0.1), max_iter=np.int64(50), random_state=np.random.RandomState(3))
    model.fit(X, Y, qid=QID).save(tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert (loaded.C, loaded.max_iter, loaded.random_state) == (0.1, 50, None)
    assert (type(loaded.C), type(loaded.max_iter)) == (float, int)


def test_the_file_is_small_and_plain(path, model):
    fields = json.loads(path.read_text())
    assert list(fields) == [
        "format", "version", "written_by", "estimator", "parameters", "n_features",
        "feature_names", "coef", "training", "history",
    ]  # fmt: skip
    assert fields["format"] == "marginrank-model"
    assert fields["version"] == 1
    assert fields["estimator"] == "RankSVM"
    assert fields["parameters"] == model.get_params()
    assert fields["coef"] == model.coef_.tolist()
    assert fields["training"]["stop_reason"] == model.stop_reason_.name.lower()
    assert fields["training"]["n_pairs"] == model.n_pairs_
    assert len(path.read_text().splitlines()) == len(fields) + 2
    assert path.stat().st_size < 10_000


DAMAGED = {
    "cut off": (lambda text: text[: len(text) // 2], "is damaged: it is not JSON"),
    "without end": (lambda text: text[:-3], "is damaged: it is not JSON"),
    "binary": (lambda text: text.replace("C", "\udcff", 1), "is damaged: it is not JSON"),
    "nested": (lambda _: '{"a":' * 100_000, "is damaged: it is not JSON"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_refused(path, damage, message):
    path.write_bytes(damage(path.read_text()).encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=rf"m\.json {message}.*; restore"):
        load_model(path)


FIELDS = {
    "foreign": ({"format": "onnx"}, r"not a linear model: its format is not 'marginrank-model'"),
    "newer": ({"version": 2}, r"format version 2, .* reads version 1; install"),
    "no version": ({"version": None}, r"format version None"),
    "estimator": ({"estimator": "DeepRank"}, r"DeepRank.*update"),
    "no estimator": ({"estimator": None}, r"'estimator' is not a string"),
    "unknown parameter": ({"parameters": {"D": 1}}, r"'parameters' are invalid.*RankSVM.*'D'"),
    "wrong parameter": ({"parameters": {"C": -1}}, r"'parameters' are invalid.*C=-1 must be"),
    "huge parameter": (
        {"parameters": {"C": 10**400}},
        r"'parameters' are invalid.*C=<integer of 1,329 bits> must be a finite number",
    ),
    "parameters": ({"parameters": []}, r"'parameters' is not an object"),
    "no weights": ({"coef": None}, r"'coef' is not a list of finite numbers"),
    "weights as text": ({"coef": ["1"] * 6}, r"'coef' is not a list of finite numbers"),
    "true as weight": ({"coef": [True] * 6}, r"'coef' is not a list of finite numbers"),
    "infinite weight": ({"coef": [math.inf] * 6}, r"'coef' is not a list of finite numbers"),
    "NaN weight": ({"coef": [math.nan] * 6}, r"'coef' is not a list of finite numbers"),
    "huge weight": ({"coef": [10**400] * 6}, r"'coef' is not a list of finite numbers"),
    "few weights": ({"coef": [1.0] * 5}, r"'coef' has 5 entries, not 6"),
    "few names": ({"feature_names": ["a"]}, r"'feature_names' has 1 entries, not 6"),
    "no function": (
        {"parameters": {"pair_cost": {"function": 3}}},
        r"parameter 'pair_cost' is neither a value nor a function",
    ),
    "table of lists": (
        {"history": {"columns": [[1]], "rows": []}},
        r"'history' is not a table",
    ),
    "counts": ({"counts": {"t": 1.5}}, r"'n_iter' is not an integer"),
    "numbers as names": ({"feature_names": [1] * 6}, r"'feature_names' is not null or a list"),
    "n_features": ({"n_features": 0}, r"'n_features' is not a positive integer"),
    "training": ({"training": 7}, r"'training' is not null or an object"),
    "empty training": ({"training": {}}, r"'objective' is not a number"),
    "history": ({"history": {"columns": 7, "rows": [[1]]}}, r"'history' is not a table"),
    "ragged history": ({"history": {"columns": ["a"], "rows": [[]]}}, r"'history' is not a table"),
    "no rows": ({"history": {}}, r"'history' is not a table"),
}


@each(("fields", "message"), FIELDS.values())
def test_wrong_fields_are_named(path, fields, message):
    wrong = path.with_name("wrong.json")
    wrong.write_text(json.dumps(json.loads(path.read_text()) | fields))
    with pytest.raises(ValueError, match=rf"wrong\.json .*{message}"):
        load_model(wrong)


@pytest.mark.parametrize("field", ["objective", "gap", "stop_reason", "n_iter", "n_pairs"])
def test_wrong_fields_of_training_are_named(path, field):
    content = json.loads(path.read_text())
    content["training"][field] = []
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=rf"is damaged: '{field}' is not"):
        load_model(path)


def test_a_history_in_other_columns_is_dropped(path, model):
    content = json.loads(path.read_text())
    content["history"] = {"columns": ["iteration", "joules"], "rows": [[1, 0.5]]}
    path.write_text(json.dumps(content))
    loaded = load_model(path)
    assert loaded.history_ == []
    np.testing.assert_array_equal(loaded.coef_, model.coef_)


def test_an_unfitted_model_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        RankSVM().save(tmp_path / "m.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("coef", [[math.nan], [math.inf]])
def test_weights_that_are_not_finite_are_refused(tmp_path, coef):
    with pytest.raises(ValueError, match="coef_ contains NaN or infinity"):
        with_coef(coef).save(tmp_path / "m.json")
    assert not list(tmp_path.iterdir())


class Other(RankSVM):
    """A class that load_model could not find."""


def test_another_class_is_refused(tmp_path):
    with pytest.raises(TypeError, match="Other cannot be saved as JSON; only RankSVM, S"):
        Other().fit(X, Y, qid=QID).save(tmp_path / "m.json")


def test_a_failing_save_leaves_the_old_model(path, model, monkeypatch):
    old = path.read_bytes()

    def fail(*_):
        raise KeyboardInterrupt

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(KeyboardInterrupt):
                with_coef([1.0]).save(path)
        assert path.read_bytes() == old
        assert os.listdir(path.parent) == ["m.json"]


def test_a_key_that_is_there_twice_is_refused(path):
    text = path.read_text().replace('"n_features": 6', '"n_features": 5, "n_features": 6')
    path.write_text(text)
    with pytest.raises(ValueError, match=r"m\.json is damaged: 'n_features' appears twice"):
        load_model(path)


def test_many_repeated_keys_are_refused_at_once(path):
    """The time of 200,000 keys is linear in their number; it was quadratic once."""
    keys = [f'"k{n % 100_000}": 0' for n in range(200_000)]
    path.write_text("{" + ", ".join(keys) + "}")
    start = time.process_time()
    with pytest.raises(ValueError, match=r"m\.json is damaged: 'k0' appears twice"):
        load_model(path)
    assert time.process_time() - start < 10


def test_names_with_lone_surrogates_come_back(tmp_path):
    names = ["caf\u00e9", "half \ud83d", "\ude00", "d", "e", "f"]
    model = RankSVM().fit(X, Y, qid=QID)
    model.feature_names_in_ = np.array(names, dtype=object)
    model.save(tmp_path / "m.json")
    (tmp_path / "m.json").read_bytes().decode("ascii")
    assert load_model(tmp_path / "m.json").feature_names_in_.tolist() == names


# A writer checks what it writes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.set_params(C=-1.0), r"invalid for RankSVM \(C=-1.0 must be"),
        (lambda m: m.set_params(loss=3), "loss=3"),
        (lambda m: setattr(m, "feature_names_in_", np.array(["a"], dtype=object)), "has 1 entries"),
        (lambda m: setattr(m, "n_iter_", 1.5), "'n_iter' is not an integer"),
        (lambda m: setattr(m, "coef_", m.coef_[:, None]), r"coef_ has shape \(6, 1\)"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(tmp_path, change, message):
    model = RankSVM().fit(X, Y, qid=QID)
    change(model)
    with pytest.raises(ValueError, match=message):
        model.save(tmp_path / "m.json")
    assert not (tmp_path / "m.json").exists()


@pytest.mark.parametrize("format", ["json", "liblinear", "svmrank"])
def test_weights_that_are_not_finite_are_not_written(tmp_path, format):
    model = with_coef([1.0, math.nan])
    with pytest.raises(ValueError, match="coef_ contains NaN or infinity"):
        model.save(tmp_path / "m", format=format)
    assert not (tmp_path / "m").exists()


def cost(preferred, other):
    return preferred - other


def test_a_function_is_asked_for_again(tmp_path):
    model = RankSVM(pair_cost=cost, margin=np.sqrt).fit(X, Y, qid=QID)
    model.save(tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(ValueError, match=r"pair_cost was a callable .cost. .* set_params\(pair"):
        clone(loaded).fit(X, Y, qid=QID)
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "m.json").read_bytes()
    again = loaded.set_params(pair_cost=cost, margin=np.sqrt).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_a_data_frame_of_costs_is_saved(tmp_path):
    labels = np.unique(Y)
    matrix = np.subtract.outer(labels, labels).clip(0)
    model = RankSVM(pair_cost=pd.DataFrame(matrix)).fit(X, Y, qid=QID)
    model.save(tmp_path / "m.json")
    np.testing.assert_array_equal(load_model(tmp_path / "m.json").pair_cost, matrix)
    with pytest.raises(TypeError, match="pair_cost cannot be saved: a dict cannot be written"):
        model.set_params(pair_cost={}).save(tmp_path / "m.json")


def test_the_scale_is_kept_to_the_last_bit(tmp_path):
    model = RankSVM(scale="query").fit(X, Y, qid=QID)
    model.save(tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert_same(model, loaded)
    np.testing.assert_array_equal(loaded.scale_, model.scale_)
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "m.json").read_bytes()


def test_a_scale_that_is_an_array_comes_back(tmp_path):
    scale = np.array([0.1, 1 / 3, 2.0, 1e-9, 1e9, 1.0])
    model = RankSVM(scale=scale, tol=1e-3).fit(X, Y, qid=QID)
    model.save(tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert loaded.scale == scale.tolist()
    np.testing.assert_array_equal(loaded.fit(X, Y, qid=QID).coef_, model.coef_)


def test_files_from_before_there_were_scales_are_read(path, model):
    content = json.loads(path.read_text())
    assert "scale" not in content  # without one, files are as they were
    del content["parameters"]["scale"]
    path.write_text(json.dumps(content))
    loaded = load_model(path)
    assert loaded.scale_ is None
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize("format", ["liblinear", "svmrank"])
def test_other_formats_have_the_weights_of_features_as_they_are(tmp_path, format):
    model = RankSVM(scale="standard").fit(X * 100.0, Y, qid=QID)
    model.save(tmp_path / "m.model", format=format)
    loaded = load_model(tmp_path / "m.model")
    np.testing.assert_allclose(loaded.coef_, model.coef_, rtol=1e-6)
    assert loaded.scale_ is None


@pytest.mark.parametrize(
    ("scale", "message"),
    {
        "a number": (2.0, "'scale' is not null or a list of positive numbers"),
        "a zero": ([1.0] * 5 + [0.0], "'scale' is not null or a list of positive numbers"),
        "too short": ([1.0], "'scale' has 1 entries, not 6"),
    }.values(),
)
def test_a_wrong_scale_is_named(path, scale, message):
    content = json.loads(path.read_text()) | {"scale": scale}
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        load_model(path)
