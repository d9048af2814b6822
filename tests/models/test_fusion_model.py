"""FusionModel: the arithmetic of search engines, ties, files."""

import json

import numpy as np
import pytest

from marginrank import FusionRanker, RankingData, load_model
from marginrank.data.score_normalization import NORMALIZERS
from marginrank.models import FusionModel, read_any_model, read_model, write_model
from marginrank.models.fusion_model import QueryFeature

RUN = {"q": {"a": 10.0, "b": 6.0, "c": 5.0, "d": 1.0}}


def normalized(run, normalizer, **options):
    return FusionModel(("s",), [1.0], normalizer, **options).fuse({"s": run})


# Computed by hand from the sources of the engines, which docs/how_to/hybrid_search.md names.
@pytest.mark.parametrize(
    ("normalizer", "expected"),
    [
        ("minmax", {"a": 1.0, "b": 5 / 9, "c": 4 / 9, "d": 0.0}),
        ("minmax_floor", {"a": 1.0, "b": 5 / 9, "c": 4 / 9, "d": 0.001}),
        ("zscore", {"a": 1.217254, "b": 0.135250, "c": 0.001, "d": 0.001}),
        ("l2", {"a": 10 / 162**0.5, "b": 6 / 162**0.5, "c": 5 / 162**0.5, "d": 1 / 162**0.5}),
        ("dbsf", {"a": 0.702876, "b": 0.522542, "c": 0.477458, "d": 0.297124}),
        ("rrf", {"a": 1 / 61, "b": 1 / 62, "c": 1 / 63, "d": 1 / 64}),
        ("none", RUN["q"]),
    ],
)
def test_normalizers(normalizer, expected):
    values = normalized(RUN, normalizer)["q"]
    assert values == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("normalizer", "one", "equal"),
    [
        ("minmax", 1.0, 1.0),
        ("minmax_floor", 1.0, 1.0),
        ("zscore", 7.0, 7.0),  # OpenSearch: the raw score
        ("l2", 1.0, 0.5**0.5),
        ("dbsf", 0.5, 0.5),
        ("none", 7.0, 7.0),
    ],
)
def test_one_document_and_equal_scores(normalizer, one, equal):
    assert normalized({"q": {"a": 7.0}}, normalizer)["q"]["a"] == pytest.approx(one)
    values = normalized({"q": {"a": 7.0, "b": 7.0}}, normalizer)["q"]
    assert list(values) == ["b", "a"]
    assert list(values.values()) == pytest.approx([equal, equal])


def test_zscore_at_the_mean_is_the_largest_score():
    assert normalized({"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, "zscore")["q"]["b"] == 3.0


def test_zeros_have_no_norm():
    assert normalized({"q": {"a": 0.0, "b": 0.0}}, "l2")["q"] == {"b": 0.0, "a": 0.0}


def test_missing_documents_add_nothing_and_depth_cuts():
    runs = {"x": {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, "y": {"q": {"c": 5.0, "d": 4.0}}, "z": {}}
    model = FusionModel(("x", "y", "z"), [0.5, 0.3, 0.2], depth=2)
    assert model.fuse(runs) == {"q": {"a": 0.5, "c": 0.3, "d": 0.0, "b": 0.0}}
    assert list(model.fuse(runs)["q"]) == ["a", "c", "d", "b"]  # ties by descending id
    deeper = RankingData.from_runs({name: runs[name] for name in "xy"}, depth=10)
    same = FusionModel(("x", "y"), [0.625, 0.375], depth=2)
    assert same.fuse(deeper)["q"] == {"a": 0.625, "c": 0.375, "d": 0.0, "b": 0.0}
    assert model.fuse({"x": {}, "y": {"q": {}}, "z": {}}) == {}


def test_rrf_constant_and_weights():
    model = FusionModel(("x", "y"), [0.25, 0.75], "rrf", rrf_constant=1.0)
    run = model.fuse({"x": {"q": {"a": 2.0, "b": 1.0}}, "y": {"q": {"b": 1.0}}})
    assert run["q"] == pytest.approx({"b": 0.25 / 3 + 0.75 / 2, "a": 0.25 / 2})


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_huge_and_tiny_scores(normalizer):
    with pytest.raises(ValueError, match=r"scores up to 1e\+308 are too large"):
        normalized({"q": {"a": 1e308, "b": -1e308, "c": 0.0}}, normalizer)
    values = normalized({"q": {"a": 3e-300, "b": -1e-300, "c": 0.0}}, normalizer)["q"]
    assert np.isfinite(list(values.values())).all()


def test_weights_depend_on_query_features():
    length = QueryFeature("length", 2.0, 6.0, (-0.5, 0.5))
    model = FusionModel(("x", "y"), [0.75, 0.25], query_features=(length,))
    features = {"short": {"length": 1}, "middle": {"length": 4}, "long": {"length": 60}}
    weights = model.weights_of(list(features), features)
    assert weights.tolist() == [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]]
    with pytest.raises(ValueError, match="query_features has no query 'q'"):
        model.fuse({"x": RUN, "y": RUN})
    with pytest.raises(
        ValueError, match=r"query_features\['q'\] has no finite number for 'length'"
    ):
        model.fuse({"x": RUN, "y": RUN}, {"q": {"length": np.nan}})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"signals": ("x", "x")}, "different names"),
        ({"weights": [0.5, 0.6]}, "sum to 1.1"),
        ({"weights": [1.0]}, "2 finite numbers"),
        ({"weights": [np.nan, 1.0]}, "2 finite numbers"),
        ({"normalizer": "softmax"}, "normalizer='softmax'"),
        ({"rrf_constant": -1.0}, "rrf_constant=-1.0"),
        ({"depth": 0}, "depth=0"),
        ({"query_features": (QueryFeature("n", 1.0, 1.0, (0.0, 0.0)),)}, "low < high"),
    ],
)
def test_invalid_models(arguments, message):
    valid = {"signals": ("x", "y"), "weights": [0.5, 0.5]}
    with pytest.raises(ValueError, match=message):
        FusionModel(**valid | arguments)


def test_runs_of_other_signals():
    with pytest.raises(ValueError, match="runs has no 'y'"):
        FusionModel(("x", "y"), [0.5, 0.5]).fuse({"x": RUN})
    with pytest.raises(ValueError, match="no feature 's'"):
        FusionModel(("s",), [1.0]).predict(RankingData([[1.0]], [0]))


def a_model():
    features = (QueryFeature("größe", 0.0, 3.0, (0.1, -0.1)),)
    parameters = {"normalizer": ["rrf", "minmax"], "metric": "ndcg@5", "random_state": 0}
    return FusionModel(("bm25", "d"), [1 / 3, 2 / 3], "rrf", 2.0, 50, features, parameters)


def test_files(tmp_path):
    path = tmp_path / "fusion.json"
    write_model(a_model(), path)
    back, ranker = read_any_model(path), load_model(path)
    for name, value in vars(a_model()).items():
        assert np.all(getattr(back, name) == value)
    assert isinstance(ranker, FusionRanker)
    assert (ranker.metric, ranker.normalizer_) == ("ndcg@5", "rrf")
    with pytest.raises(ValueError, match="is a fusion model, but a linear model is required"):
        read_model(path)
    with pytest.raises(ValueError, match="format='svmrank'"):
        write_model(a_model(), path, "svmrank")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("signals", []),
        ("signals", ["a", 1]),
        ("weights", [0.5]),
        ("weights", [0.5, "x"]),
        ("weights", [1e999, 0]),
        ("normalizer", "exec"),
        ("depth", 0),
        ("rrf_constant", -3),
        ("parameters", {"C": 1}),
        ("parameters", {"metric": 3}),
        ("query_features", [{"name": "x", "low": 1, "high": 0, "changes": [0, 0]}]),
        ("query_features", [{"name": "x", "low": 0, "high": 1, "changes": [0]}]),
        ("query_features", [1]),
    ],
)
def test_damaged_files(tmp_path, field, value):
    path = tmp_path / "fusion.json"
    write_model(a_model(), path)
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {field: value}))
    with pytest.raises(ValueError, match="is damaged"):
        load_model(path)


def test_all_normalizers_are_tested():
    assert set(NORMALIZERS) == {"minmax", "minmax_floor", "zscore", "l2", "dbsf", "rrf", "none"}
