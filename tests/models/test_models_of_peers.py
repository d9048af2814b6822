"""Models of RankLib, Solr and LTR plugins, read as linear models."""

import json

import numpy as np
import pytest

from marginrank import RankSVM, load_model, make_ranking
from marginrank.export.registry import TARGETS
from marginrank.models import LinearModel, is_model, read_model
from marginrank.models.formats import FORMATS

SOLR = "org.apache.solr.ltr"


@pytest.fixture
def written(tmp_path):
    """Return a function that writes text, or an object as JSON, to a file."""

    def written(content):
        path = tmp_path / "m"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return written


def solr(features, weights, **more):
    model = {"class": f"{SOLR}.model.LinearModel", "name": "m", "features": features, **more}
    return model | {"params": {"weights": weights}}


def plugin(definition, **more):
    model = {"type": "model/linear", "definition": definition, **more}
    return {"model": {"name": "m", "model": model}}


@pytest.mark.parametrize("format", sorted(FORMATS.keys() & TARGETS.keys()))
@pytest.mark.parametrize("offset", [0.0, 7.5])
def test_exports_are_read_back(tmp_path, format, offset):
    X, y, qid = make_ranking(10, 5, 6, random_state=0)
    model = RankSVM().fit(X, y, qid=qid)
    if format == "ranklib":
        offset = 0.0
    model.export(tmp_path / "m", format, offset=offset)
    for loaded in (load_model(tmp_path / "m"), load_model(tmp_path / "m", format=format)):
        np.testing.assert_array_equal(loaded.coef_, model.coef_)
        assert not hasattr(loaded, "feature_names_in_")
    assert is_model(tmp_path / "m")


def test_features_without_weights_keep_their_places(tmp_path):
    from marginrank.export.exporting import export_files

    for format in ("solr", "elasticsearch"):
        model = LinearModel(np.array([0.0, 2.0, 0.0, -1.0]), {})
        (tmp_path / "m").write_bytes(export_files(model, format)[""])
        np.testing.assert_array_equal(read_model(tmp_path / "m").coef, [0.0, 2.0, 0.0, -1.0])


def test_names_are_kept(written):
    model = read_model(written(plugin({"title": 0.3, "f2": 0.5})))
    assert model.feature_names == ["title", "f2"]
    assert model.coef.tolist() == [0.3, 0.5]


def test_normalisers_of_the_plugin_divide_weights(written):
    normalizers = {
        "year": {"standard": {"mean": 1970, "standard_deviation": 30}},
        "votes": {"min_max": {"minimum": 2, "maximum": 10}},
        "unused": {"standard": {"mean": 0, "standard_deviation": 1}},
    }
    weights = {"title": 0.3, "year": 0.6, "votes": 0.1}
    model = read_model(written(plugin(weights, feature_normalizers=normalizers)))
    np.testing.assert_allclose(model.coef, [0.3, 0.02, 0.0125])


def test_models_as_the_plugin_returns_them(written):
    inner = {"type": "model/linear", "definition": json.dumps({"a": 1.5, "b": -2.0})}
    content = {"_source": {"name": "m", "type": "model", "model": {"name": "m", "model": inner}}}
    assert read_model(written(content)).coef.tolist() == [1.5, -2.0]


def test_normalisers_of_solr_divide_weights(written):
    features = [
        {"name": "a", "norm": {"class": f"{SOLR}.norm.StandardNormalizer",
                               "params": {"avg": "42", "std": "6"}}},
        {"name": "b", "norm": {"class": f"{SOLR}.norm.MinMaxNormalizer",
                               "params": {"min": "1", "max": "5"}}},
        {"name": "c", "norm": {"class": f"{SOLR}.norm.IdentityNormalizer", "params": {}}},
    ]  # fmt: skip
    model = read_model(written(solr(features, {"a": 1.0, "b": 0.5, "c": 2, "d": 9.0})))
    assert model.feature_names == ["a", "b", "c"]
    np.testing.assert_allclose(model.coef, [1 / 6, 0.125, 2.0])


def test_a_model_as_ranklib_writes_it(written):
    text = "## Coordinate Ascent\n## Restart = 5\n## MaxIteration = 25\n5:0.07 1:0.12 2:-3.0E-4\n"
    assert read_model(written(text)).coef.tolist() == [0.12, -3e-4, 0.0, 0.0, 0.07]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("## Coordinate Ascent\n", r"m:2: the file ends before the weights"),
        ("## Coordinate Ascent\n1:0.5 2\n", r"m:2: '2' is not <feature>:<weight>"),
        ("## Coordinate Ascent\n1:0.5 1:2\n", r"m:2: feature 1 appears twice"),
        ("## Coordinate Ascent\n0:0.5\n", r"m:2: a feature index is '0' and must be"),
        ("## Coordinate Ascent\n1:NaN\n", r"m:2: the weight of feature 1 is 'NaN' and must be"),
        ("## Coordinate Ascent\n1:1\n2:1\n", r"m:3: '2:1' comes after the weights"),
    ],
)
def test_damaged_models_of_ranklib_are_refused(written, text, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_model(written(text))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (plugin({}), "it has no weights"),
        (plugin([1.0]), "'definition' is not an object of weights"),
        (plugin({"a": "x"}), "the feature 'a' has 'x' instead of a finite number"),
        (plugin({"a": True}), "the feature 'a' has True instead of a finite number"),
        (plugin({"a": 10**400}), "instead of a finite number"),
        (plugin({"f1": 1.0, "f999999999": 1.0}), "'f999999999' is above 16,777,216"),
        (solr([{"name": "f16777217"}], {"f16777217": 1.0}), "'f16777217' is above"),
        (plugin({"a": 1.0}, feature_normalizers={"a": {"log": {}}}), "is not one of standard"),
        (
            plugin(
                {"a": 1.0},
                feature_normalizers={"a": {"standard": {"mean": 0, "standard_deviation": 0}}},
            ),
            "the normalizer of 'a' divides by 0",
        ),
        (
            plugin(
                {"a": 1e308},
                feature_normalizers={"a": {"standard": {"mean": 0, "standard_deviation": 1e-9}}},
            ),
            "a weight overflows",
        ),
        (plugin({"a": 1.0}, feature_normalizers={"a": {}}), "is not one of standard"),
        (plugin({"a": 1.0}, feature_normalizers={"a": "log"}), "is not one of standard"),
        (solr([{"name": "a"}], {}), "the feature 'a' has no weight"),
        (solr([{"name": "a", "norm": "X"}], {"a": 1.0}), "is not one of Standard"),
        (solr(["a"], {"a": 1.0}), "the feature None has no weight"),
        (solr([{"name": "a"}, {"name": "a"}], {"a": 1.0}), "the feature 'a' appears twice"),
        (solr({}, {"a": 1.0}), "'features' or 'weights' are missing"),
        (solr([], {}), "it has no weights"),
        (solr([{"name": "a", "norm": {"class": "X"}}], {"a": 1.0}), "is not one of Standard"),
    ],
)
def test_damaged_models_of_search_engines_are_refused(written, content, sentence):
    with pytest.raises(ValueError, match=f"m is damaged: .*{sentence}"):
        read_model(written(content))


@pytest.mark.parametrize("format", ["solr", "elasticsearch"])
def test_a_file_of_another_format_than_said_is_refused(written, format):
    with pytest.raises(ValueError, match=r"m is damaged: its (class|type) is not"):
        read_model(written({"some": "thing"}), format)


def test_json_of_others_is_still_refused_as_such(written):
    with pytest.raises(ValueError, match="is not a linear model"):
        read_model(written({"model": {"type": "model/ranklib"}}))
