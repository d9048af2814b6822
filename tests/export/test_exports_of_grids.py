"""Exports of additive models with pairs of features: every target that takes curves takes them."""

import json
import runpy
import shutil
import subprocess
import warnings
from dataclasses import replace

import numpy as np
import pytest
from helpers.exports import (
    HOSTILE_NAMES,
    assert_scores,
    documents_around,
    random_documents,
    random_grids,
    require_program,
    scores_of,
)
from helpers.tables import each

from marginrank import AdditiveRankSVM
from marginrank.export.exporting import export_files
from marginrank.export.registry import TARGETS
from marginrank.export.verification import run_export, verify
from marginrank.models import AdditiveModel
from marginrank.models.additive_model import Curve, Interaction

TAKERS = [name for name, target in TARGETS.items() if "additive" in target.takes]
DOUBLE_TAKERS = [name for name in TAKERS if TARGETS[name].precision == "float64"]
every_taker = pytest.mark.parametrize("target", TAKERS)
NAN = np.nan
NOTHING = Curve(np.zeros(1), np.zeros(1), 0.0, categorical=False)


def pair(features, knots, values, categorical=(False, False)):
    axes = tuple(np.array(axis, float) for axis in knots)
    return Interaction(features, axes, np.array(values, float), categorical)


def alone(n_features, *pairs, **options):
    """Return a model of pairs without curves, so that these are all there is to be wrong."""
    return AdditiveModel([NOTHING] * n_features, {}, interactions=pairs, **options)


def as_float32(model):
    """Return a model of features that were float32: so are their knots."""

    def rounded(knots):
        return np.unique(knots.astype(np.float32)).astype(np.float64)

    return replace(
        model,
        curves=[each._replace(knots=rounded(each.knots)) for each in model.curves],
        interactions=[
            each._replace(knots=tuple(map(rounded, each.knots))) for each in model.interactions
        ],
    )


def assert_scored(target, model, X, **options):
    """Fail if an export is further from predict than its precision allows."""
    if TARGETS[target].precision == "float32":
        model, X = as_float32(model), X.astype(np.float32).astype(np.float64)
    expected = model.scores(X) + options.get("offset", 0.0)
    assert_scores(target, scores_of(model, target, X, **options), expected)


@every_taker
@each("seed", range(2))
def test_random_curves_and_pairs(target, seed):
    """Missing values, values beyond the outer knots, categories, constants and lines."""
    model, X = random_grids(20, 8, seed=seed), 2 * random_documents(80, 20, seed=seed)
    X[0] = NAN
    X[:, ::4] = np.round(X[:, ::4])  # where the categories are, some of them unknown
    assert len({each.features for each in model.interactions}) == 8
    assert_scored(target, model, X)


@every_taker
def test_at_between_next_to_and_beyond_knots(target):
    """Every two such values, missing ones among them, in two pairs that share a feature."""
    model = random_grids(3, 2, seed=1)
    assert [each.features for each in model.interactions] == [(0, 1), (2, 1)]
    assert [grid.categorical for grid in model.interactions] == [(True, False), (False, False)]
    pairs = alone(3, *model.interactions)
    for grid in pairs.interactions:
        assert_scored(target, pairs, documents_around(pairs, grid))


@every_taker
def test_scores_by_hand(target):
    """Rows are for missing values, 0 and 1; columns for missing values, 2, 4 and 8."""
    model = alone(2, pair((0, 1), ([0, 1], [2, 4, 8]), np.arange(12).reshape(3, 4)))
    documents = {
        (NAN, NAN): 0, (NAN, 4): 2, (NAN, 3): 1.5, (NAN, 9): 3, (0, NAN): 4, (0.5, NAN): 6,
        (0, 2): 5, (1, 8): 11, (0.25, 2): 6, (0.5, 6): 8.5, (-9, 1): 5, (7, 99): 11, (-1, 6): 6.5,
    }  # fmt: skip
    scores = scores_of(model, target, np.array(list(documents)))
    np.testing.assert_allclose(scores, list(documents.values()), rtol=1e-15)


@every_taker
def test_categories_that_nobody_saw_are_missing(target):
    values = np.arange(12).reshape(3, 4)
    both = pair((0, 1), ([-1, 5], [2, 4, 8]), values, (True, True))
    documents = {
        (-1, 2): 5, (5, 8): 11, (5, NAN): 8, (5, 3): 8, (0, 4): 2, (NAN, 4): 2, (2, 3): 0,
        (6, 9): 0, (-2, 1): 0, (-0.5, 8): 3,
    }  # fmt: skip
    scores = scores_of(alone(2, both), target, np.array(list(documents)))
    assert scores.tolist() == list(documents.values())
    swapped = alone(2, pair((1, 0), both.knots[::-1], values.T, (True, True)))
    assert scores_of(swapped, target, np.array(list(documents))).tolist() == scores.tolist()


@every_taker
def test_categories_with_numbers_and_features_with_one_knot(target):
    mixed = pair((0, 1), ([1, 2], [0, 4]), [[0, 1, 5], [2, 3, 7], [-4, 8, 0]], (True, False))
    constant = pair((2, 0), ([3], [1, 2]), [[0, 10, 20], [30, 40, 60]], (False, True))
    X = np.array([[1, 2, 3], [2, 9, -7], [7, 1, 99], [NAN, NAN, 3], [2, NAN, NAN], [2, -1, NAN]])
    expected = [5 + 40, 0 + 60, 2 + 30, 0 + 30, -4 + 20, 8 + 20]
    assert scores_of(alone(3, mixed, constant), target, X).tolist() == expected


@every_taker
def test_a_pair_of_two_constants(target):
    model = alone(2, pair((1, 0), ([3], [5]), [[1, 2], [4, 8]]))
    X = np.array([[5, 3], [-1, 99], [NAN, 3], [5, NAN], [NAN, NAN]])
    assert scores_of(model, target, X).tolist() == [8, 8, 4, 2, 1]


@every_taker
def test_pairs_of_zero_are_left_out(target):
    """Not even an infinite value of their features reaches a score."""
    nothing = pair((0, 2), ([0, 1], [0, 1]), np.zeros((3, 3)))
    used = pair((1, 3), ([0, 1], [0, 1]), np.arange(9).reshape(3, 3))
    X = np.array([[np.inf, 0.5, np.inf, 1.0], [np.inf, NAN, np.inf, 0.0]])
    assert scores_of(alone(4, nothing, used), target, X).tolist() == [6.5, 1.0]


@every_taker
def test_names_cannot_break_out(target):
    model = random_grids(len(HOSTILE_NAMES), 12, names=HOSTILE_NAMES, bins=4)
    assert_scored(target, model, random_documents(30, len(HOSTILE_NAMES)))


@every_taker
def test_names_and_offsets(target):
    model, X = random_grids(3, 2, names=["a", "b", "c"]), random_documents(9, 3)
    assert_scored(target, model, X, names={"b": "other"}, offset=2.5)


@every_taker
def test_features_that_are_in_pairs_alone_are_checked(target):
    """Names that a target has no way to hold, and steps that are infinite."""
    grid = pair((0, 1), ([0, 1], [-1.7e308, 1.7e308]), np.ones((3, 3)))
    with pytest.raises(ValueError, match=r"pair f1 × f2 .*NaN or infinity"):
        export_files(alone(2, grid), target)
    refused = {"pmml": "a\x01", "sqlite": "a\u202e", "duckdb": "a\u202e", "postgresql": "ä" * 32}
    if target in refused:
        small = pair((0, 1), ([0, 1], [0, 1]), np.ones((3, 3)))
        with pytest.raises(ValueError, match="name"):
            export_files(alone(2, small, feature_names=["b", refused[target]]), target)


@pytest.mark.parametrize("target", [name for name in TAKERS if TARGETS[name].limit])
def test_the_limits_of_a_target_count_features_of_pairs(target):
    limit = TARGETS[target].limit
    small = pair((0, 1), ([0, 1], [0, 1]), np.ones((3, 3)))
    line = Curve(np.array([0.0, 1.0]), np.array([0.0, 1.0]), 0.0, categorical=False)
    curves = [NOTHING, NOTHING, *[line] * (limit.features - 1)]
    with pytest.raises(ValueError, match=rf"uses {limit.features + 1:,} features, but"):
        export_files(AdditiveModel(curves, {}, interactions=[small]), target)


@every_taker
def test_as_large_as_grids_of_a_fit_become(target):
    """Twenty nodes and one for missing values, in each direction."""
    rng = np.random.default_rng(0)
    knots = [np.unique(rng.normal(size=20)) for _ in range(2)]
    model = alone(2, pair((0, 1), knots, rng.normal(size=(21, 21))))
    assert_scored(target, model, 2 * random_documents(200, 2))


@pytest.mark.parametrize("target", ["onnx", "c", "java", "javascript", "python"])
def test_as_large_as_grids_of_a_file_may_be(target):
    """The initialiser of a class in Java, say, has room for some thousands of numbers."""
    rng = np.random.default_rng(0)
    knots = [np.unique(rng.normal(size=255)) for _ in range(2)]
    model = alone(2, pair((0, 1), knots, rng.normal(size=(256, 256))))
    assert_scored(target, model, random_documents(200, 2))


@every_taker
def test_knots_and_values_of_any_size(target):
    """Features of 1e200, and one whose knots are next to each other."""
    near = np.nextafter(1.0, 2.0)
    values = np.random.default_rng(0).integers(2, size=(4, 4))
    model = alone(2, pair((0, 1), ([-1e200, 0, 3e200], [1, near, 2]), values))
    X = np.array([[1e200, 1.0], [-2e200, near], [5.0, 1.5], [NAN, near], [1e200, NAN]])
    if TARGETS[target].precision == "float64":
        assert_scored(target, model, X)
        return
    with pytest.raises(ValueError, match=r"feature 'f1' has knots that float32 cannot hold"):
        export_files(model, target)


@pytest.mark.parametrize("features", [(0, 1), (1, 0)])
def test_float32_refuses_grids_that_it_would_blur(features):
    """One axis is so steep that rounding a value moves it along, whichever it is."""
    axes = [1.1, 1.1 + 1e-6, 9], [0, 1]
    values = np.arange(12.0).reshape(4, 3)
    steep = pair((0, 1), axes, values)
    model = alone(2, steep if features == (0, 1) else pair(features, axes[::-1], values.T))
    with pytest.raises(ValueError, match=r"feature 'f1' has knots that float32 cannot hold"):
        export_files(model, "onnx-float32")
    assert_scored("onnx", model, documents_around(model, model.interactions[0]))


def test_float32_keeps_values_at_knots():
    """0.1 is no number of float32, but what is rounded to its neighbour is a document's 0.1."""
    values = np.arange(12.0).reshape(3, 4)
    model = alone(2, pair((0, 1), ([0.1, 0.9], [0.1, 0.7, 9.7]), values, (False, True)))
    X = np.array([[0.1, 0.1], [0.9, 0.7], [0.9, 9.7], [0.1, 0.3]])
    assert scores_of(model, "onnx-float32", X).tolist() == [5, 10, 11, 4]


@pytest.mark.parametrize("target", ["onnx", "onnx-float32"])
def test_a_graph_has_as_many_nodes_for_any_number_of_pairs(target):
    onnx = pytest.importorskip("onnx")
    models = [as_float32(random_grids(20, n_pairs, bins=16)) for n_pairs in (8, 40)]
    sizes = [
        len(onnx.load_from_string(export_files(model, target)[""]).graph.node) for model in models
    ]
    assert sizes[0] == sizes[1] < 120


def test_derived_fields_of_pmml_have_names_that_no_feature_has():
    require_program("pmml")
    small = pair((0, 1), ([0, 1], [0, 1]), np.arange(9).reshape(3, 3))
    model = alone(2, small, feature_names=["Grid_1_near_0", "grid_1_row_2"])
    assert scores_of(model, "pmml", np.array([[0, 1], [1, NAN]])).tolist() == [5, 6]


def test_python_takes_dicts_by_name(tmp_path):
    model = alone(2, pair((0, 1), ([0, 1], [2, 4, 8]), np.arange(12).reshape(3, 4)))
    (tmp_path / "m.py").write_bytes(export_files(model, "python", names=["a", "b"])[""])
    score = runpy.run_path(tmp_path / "m.py")["score"]
    found = [score({"a": 1, "b": 8}), score({"b": 4}), score({"a": None, "b": 4}), score({})]
    assert found == [11, 2, 2, 0]


def test_javascript_takes_null_and_what_is_absent_as_missing(tmp_path):
    require_program("javascript")
    model = alone(2, pair((0, 1), ([0, 1], [2, 4, 8]), np.arange(12).reshape(3, 4)))
    (tmp_path / "m.js").write_bytes(export_files(model, "javascript", names=["a", "b"])[""])
    code = (
        "const s = require('./m.js').score;"
        "console.log(JSON.stringify([s({a: 1, b: 8}), s({a: null, b: 4}), s({a: 0}), s([])]))"
    )
    done = subprocess.run(["node", "-e", code], cwd=tmp_path, capture_output=True, check=True)
    assert json.loads(done.stdout) == [11, 2, 4, 0]


def test_duckdb_takes_nan_as_missing():
    duckdb = pytest.importorskip("duckdb")
    values = np.arange(9).reshape(3, 3)
    model = alone(
        3, pair((0, 1), ([0, 1], [0, 1]), values), pair((0, 2), ([0, 1], [0, 1]), 10 * values)
    )
    statement = export_files(model, "duckdb")[""].decode()
    with duckdb.connect() as database:
        database.execute("CREATE TABLE documents (f1 DOUBLE, f2 DOUBLE, f3 DOUBLE)")
        database.execute("INSERT INTO documents VALUES ('NaN', 1, 'NaN'), (NULL, 1, NULL), (1,1,1)")
        found = database.execute(statement).fetchall()
    assert [row[-1] for row in found] == [2, 2, 88]


def test_c_compiles_without_a_warning(tmp_path):
    require_program("c")
    (tmp_path / "m.c").write_bytes(export_files(random_grids(9, 3), "c", name="m")[""])
    flags = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    command = [shutil.which("cc"), *flags, "-c", tmp_path / "m.c", "-o", tmp_path / "m.o"]
    subprocess.run(command, check=True)


def test_java_compiles_without_a_warning(tmp_path):
    require_program("java")
    (tmp_path / "M.java").write_bytes(export_files(random_grids(9, 3), "java", name="M")[""])
    subprocess.run(["javac", "-Xlint:all", "-Werror", "M.java"], cwd=tmp_path, check=True)


def test_programs_without_pairs_have_no_code_for_them():
    model = random_grids(5, 2)
    for target in ("c", "java", "javascript", "python"):
        assert b"inside" in export_files(model, target)[""]
        assert b"inside" not in export_files(replace(model, interactions=[]), target)[""]


@every_taker
def test_the_estimator_exports_what_it_predicts(target, fitted, tmp_path):
    """Missing values of one feature, of both, and of one that the fit saw none of."""
    require_program(target)
    model, X = fitted
    model.export(tmp_path / "Ranker.txt", target)
    record = model.to_additive_model()
    assert export_files(record, target, name="Ranker")[""] == (tmp_path / "Ranker.txt").read_bytes()
    assert [set(each.features) for each in record.interactions] == [{0, 1}, {1, 2}]
    beyond = np.vstack([X, 3 * X, np.full(4, NAN)])
    beyond[::9, 2] = NAN
    assert_scored(target, record, beyond)


@pytest.fixture(scope="module")
def fitted():
    """Return a model with two pairs that share a feature, one of categories, and documents."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(1_500, 4))
    X[:, 2] = np.round(2 * X[:, 2])
    y = np.round(2 + 3 * X[:, 0] * X[:, 1] + X[:, 1] * X[:, 2]).clip(0)
    X[::7, 0] = X[::5, 1] = NAN
    X[:, 3] = 1.0
    model = AdditiveRankSVM(C=100, normalization="pairs", categorical_features=[2], interactions=2)
    with warnings.catch_warnings(action="ignore"):  # a constant feature
        return model.fit(X, y, qid=np.arange(1_500) // 15), X


@pytest.fixture(scope="module")
def housing(real_data):
    """Return a model of California housing with three pairs, and districts it has not seen."""
    X, y, _ = real_data("cadata/cadata.txt.gz")
    order = np.random.default_rng(0).permutation(len(y))
    X, label = X[order], np.searchsorted(np.quantile(y, [0.2, 0.4, 0.6, 0.8]), y[order])
    X[::7, 6] = X[::5, 7] = NAN  # latitude and longitude
    qid = np.arange(len(y)) // 20
    train, test = slice(5_000), slice(5_000, 6_000)
    model = AdditiveRankSVM(C=1, normalization="pairs", interactions=3, tol=1e-3)
    return model.fit(X[train], label[train], qid=qid[train]), X[test], qid[test]


@pytest.mark.parametrize("target", DOUBLE_TAKERS)
def test_california_housing(target, housing):
    model, X, qid = housing
    require_program(target)
    record = model.to_additive_model()
    assert {6, 7} in [set(each.features) for each in record.interactions]
    run = run_export(record, target, export_files(record, target), X)
    found = verify(run, model.predict(X), qid)
    assert found.largest_difference <= 1e-12 * found.largest_score
    assert found.reordered_queries == 0


def test_california_housing_in_float32(housing):
    """Features are rounded, knots as well: what a grid adds changes by less than is promised."""
    model, X, _ = housing
    scores = scores_of(model.to_additive_model(), "onnx-float32", X)
    assert_scores("onnx-float32", scores, model.predict(X))
