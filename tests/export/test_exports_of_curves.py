"""Exports of additive models: every target that takes curves scores as `predict` does."""

import json
import re
import runpy
import shutil
import subprocess

import numpy as np
import pytest
from helpers.exports import (
    HOSTILE_NAMES,
    assert_scores,
    random_curves,
    random_documents,
    require_program,
    scores_of,
)
from helpers.tables import each

from marginrank import AdditiveRankSVM, make_ranking
from marginrank.export.exporting import export_files
from marginrank.export.registry import TARGETS
from marginrank.models import AdditiveModel
from marginrank.models.additive_model import Curve

TAKERS = [name for name, target in TARGETS.items() if "additive" in target.takes]
every_taker = pytest.mark.parametrize("target", TAKERS)


def curve(knots, values, missing=0.0, categorical=False):
    return Curve(np.array(knots, float), np.array(values, float), missing, categorical)


def as_float32(model):
    """Return curves of features that were float32: so are their knots."""
    rounded = [
        each._replace(knots=np.unique(each.knots.astype(np.float32)).astype(np.float64))
        for each in model.curves
    ]
    return AdditiveModel(rounded, {}, feature_names=model.feature_names)


def assert_scored(target, model, X, **options):
    """Fail if an export is further from predict than its precision allows."""
    if TARGETS[target].precision == "float32":
        model, X = as_float32(model), X.astype(np.float32).astype(np.float64)
    expected = model.scores(X) + options.get("offset", 0.0)
    assert_scores(target, scores_of(model, target, X, **options), expected)


def test_who_takes_curves():
    graphs, databases = "onnx onnx-float32 pmml", "sqlite duckdb postgresql"
    assert " ".join(TAKERS) == f"{graphs} {databases} c java javascript python"


@every_taker
@each("seed", range(3))
def test_random_curves(target, seed):
    """Missing values, values beyond the outer knots, categories, constants and lines."""
    model, X = random_curves(40, seed=seed), 2 * random_documents(80, 40, seed=seed)
    X[0] = np.nan
    X[:, ::4] = np.round(X[:, ::4])  # where the categories are, some of them unknown
    assert_scored(target, model, X)


@every_taker
def test_values_at_between_and_beyond_knots(target):
    model = AdditiveModel([curve([-1, 0, 4], [3, -1, 1], missing=0.25)], {})
    x = np.array([-3.0, -1.0, -0.5, -0.0, 0.0, 1.0, np.nextafter(4, 0), 4.0, 8.0, np.nan])
    scores = scores_of(model, target, x[:, None])
    np.testing.assert_allclose(scores, [11, 3, 1, -1, -1, -0.5, 1, 1, 3, 0.25], rtol=1e-15)
    assert_scores(target, scores, model.scores(x[:, None]))


@every_taker
def test_categories_that_nobody_saw_are_missing(target):
    model = AdditiveModel([curve([-2, 0, 7], [5, 6, 8], 0.5, categorical=True)], {})
    x = np.array([-3, -2, -1.5, -0.0, 0, 3, 7, 7.5, np.nan])
    expected = [0.5, 5, 0.5, 6, 6, 0.5, 8, 0.5, 0.5]
    assert scores_of(model, target, x[:, None]).tolist() == expected


@every_taker
def test_one_knot_one_category_and_two_knots(target):
    curves = [
        curve([3], [1.5], missing=-1),
        curve([3], [10], missing=20, categorical=True),
        curve([0, 2], [0, 200]),
    ]
    X = np.array([[3, 3, 0], [9, 9, 1], [np.nan, np.nan, 3], [-np.pi, 3, np.nan]])
    expected = [11.5, 121.5, 319, 11.5]
    assert scores_of(AdditiveModel(curves, {}), target, X).tolist() == expected


@every_taker
def test_curves_of_zero_are_left_out(target):
    """Not even an infinite value reaches a score; what is missing alone is a curve."""
    curves = [curve([0, 1], [0, 0]), curve([1, 2], [0, 0], missing=2), curve([0, 1], [0, 1])]
    X = np.array([[np.inf, 1, 0.5], [np.inf, np.nan, 0.25]])
    assert scores_of(AdditiveModel(curves, {}), target, X).tolist() == [0.5, 2.25]


@every_taker
def test_models_without_curves_are_not_exported(target):
    model = AdditiveModel([curve([k], [0]) for k in range(3)], {})
    with pytest.raises(ValueError, match="all curves of the model are zero"):
        export_files(model, target)


@every_taker
def test_names_cannot_break_out(target):
    model = random_curves(len(HOSTILE_NAMES), names=HOSTILE_NAMES)
    assert_scored(target, model, random_documents(30, len(HOSTILE_NAMES)))


@every_taker
def test_names_and_offsets(target):
    model, X = random_curves(3, names=["a", "b", "c"]), random_documents(9, 3)
    assert_scored(target, model, X, names={"b": "other"}, offset=2.5)
    assert_scored(target, model, X, names=["x", "y", "z"])


@every_taker
def test_five_hundred_features_of_32_bins(target):
    """SQLite gets sixty, as it takes long to read a statement of more."""
    n_features = 60 if target == "sqlite" else 500
    model = random_curves(n_features, bins=32)
    assert sum(each.knots.size for each in model.curves) > 20 * n_features
    assert_scored(target, model, random_documents(10, n_features))


@pytest.mark.parametrize("target", ["onnx", "onnx-float32"])
def test_ten_thousand_features(target):
    assert_scored(target, random_curves(10_000, bins=8), random_documents(4, 10_000))


@every_taker
def test_as_many_bins_as_there_are(target):
    model = random_curves(6, bins=254)
    assert max(each.knots.size for each in model.curves) == 255
    assert_scored(target, model, random_documents(200, 6))


@every_taker
def test_knots_and_values_of_any_size(target):
    """Features of 1e200 and 1e-200, and one whose knots are next to each other."""
    near = np.nextafter(1.0, 2.0)
    curves = [
        curve([-1e200, 0, 3e200], [1, 2, 1]),
        curve([0, 1e-200, 2e-200], [1, 2, -1]),
        curve([1, near, 2], [0, 1, -1]),
    ]
    X = np.array([[1e200, 1.5e-200, 1.0], [-2e200, 3e-200, near], [5.0, -1e-200, 1.5]])
    if TARGETS[target].precision == "float64":
        assert_scored(target, AdditiveModel(curves, {}), X)
        return
    for refused in curves:
        with pytest.raises(ValueError, match=r"feature 'f1' has knots that float32 cannot hold"):
            export_files(AdditiveModel([refused], {}), target)


@every_taker
def test_the_limits_of_a_target_hold_for_curves(target):
    limit = TARGETS[target].limit
    if limit is None:
        assert_scored(target, random_curves(3_000, bins=2), random_documents(3, 3_000))
        return
    curves = [curve([0, 1], [0, 1])] * (limit.features + 1)
    message = (
        rf"{limit.features + 1:,} features, but .*; train on fewer features, or export to another"
    )
    with pytest.raises(ValueError, match=message):
        export_files(AdditiveModel(curves, {}), target)
    model = AdditiveModel(curves[1:], {})
    assert_scored(target, model, random_documents(3, limit.features))


@every_taker
def test_steps_that_are_infinite_are_refused(target):
    model = AdditiveModel([curve([0, 1], [0, 1]), curve([-1.7e308, 1.7e308], [0, 1])], {})
    with pytest.raises(ValueError, match=r"curve of f2 .*NaN or infinity"):
        export_files(model, target)


@pytest.mark.parametrize("target", [name for name in TARGETS if name not in TAKERS])
def test_other_targets_name_those_that_take_curves(target):
    to = "sql:mysql" if target == "sql" else target
    message = (
        rf"{to} does not support additive models; export it to onnx or onnx-float32 or pmml or"
    )
    with pytest.raises(ValueError, match=message):
        export_files(random_curves(3), to)


@every_taker
def test_the_estimator_exports_what_it_predicts(target, tmp_path):
    require_program(target)
    X, y, qid = make_ranking(30, 10, 4, random_state=0)
    X[::7, 1] = np.nan
    X[:, 2] = np.round(X[:, 2])
    X[:, 3] = 1.0
    model = AdditiveRankSVM(C=0.1, categorical_features=[2]).fit(X, y, qid=qid)
    (path,) = model.export(tmp_path / "Ranker.txt", target, names=["a", "b", "c", "d"])
    files = export_files(
        model.to_additive_model(), target, name="Ranker", names=["a", "b", "c", "d"]
    )
    assert files[""] == (tmp_path / "Ranker.txt").read_bytes()
    assert path == str(tmp_path / "Ranker.txt")
    beyond = np.vstack([X, 3 * X])
    assert_scored(target, model.to_additive_model(), beyond)


@pytest.mark.parametrize("target", ["onnx", "onnx-float32"])
def test_a_graph_has_as_many_nodes_for_any_number_of_features(target):
    onnx = pytest.importorskip("onnx")
    sizes = []
    for n_features in (20, 400):
        content = export_files(as_float32(random_curves(n_features, bins=254)), target)[""]
        sizes.append(len(onnx.load_from_string(content).graph.node))
    assert sizes[0] == sizes[1] < 60


def test_float32_keeps_values_at_knots():
    """0.1 is no number of float32, but what is rounded to its neighbour is a document's 0.1."""
    jump = curve([0.1, 0.9, 9.7], [0, 1, 3])
    names = curve([0.1, 0.7, 0.9], [5, 6, 7], 0.5, categorical=True)
    x = np.array([0.1, 0.7, 0.9, 9.7, np.nan])
    scores = scores_of(AdditiveModel([jump], {}), "onnx-float32", x[[0, 2, 3]][:, None])
    assert scores.tolist() == [0, 1, 3]
    assert scores_of(AdditiveModel([names], {}), "onnx-float32", x[:, None]).tolist() == [
        5, 6, 7, 0.5, 0.5,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "each",
    [
        curve([1.1, 1.1 + 1e-6, 9], [0, 1, 2]),  # so steep that rounding x moves it along
        curve([16_777_216, 16_777_217], [0, 1], categorical=True),
        curve([0, 1e39], [0, 1]),
    ],
)
def test_float32_refuses_curves_that_it_would_change(each):
    model = AdditiveModel([each], {})
    with pytest.raises(ValueError, match="knots that float32 cannot hold or distinguish"):
        export_files(model, "onnx-float32")
    assert_scored("onnx", model, np.append(each.knots, np.nan)[:, None])


def test_float32_takes_steep_curves_of_features_that_were_float32():
    knots = np.array([1.1, 1.1 + 1e-6, 9], np.float32).astype(np.float64)
    model = AdditiveModel([curve(knots, [0, 1, 2])], {})
    assert scores_of(model, "onnx-float32", knots[:, None]).tolist() == [0, 1, 2]


def test_derived_fields_of_pmml_have_names_that_no_feature_has():
    require_program("pmml")
    names = ["curve_2", "Curve_1", "curve_1_2", "score"]
    model = AdditiveModel([curve([0, 1], [0, 10**k]) for k in range(4)], {}, feature_names=names)
    X = np.eye(4)
    assert scores_of(model, "pmml", X).tolist() == [1, 10, 100, 1000]


def test_python_takes_dicts_by_name(tmp_path):
    model = random_curves(len(HOSTILE_NAMES), names=HOSTILE_NAMES)
    (tmp_path / "m.py").write_bytes(export_files(model, "python")[""])
    score = runpy.run_path(tmp_path / "m.py")["score"]
    (row,) = random_documents(1, len(HOSTILE_NAMES))
    named = dict(zip(HOSTILE_NAMES, row.tolist(), strict=True))
    expected, nothing = model.scores(np.stack([row, np.full_like(row, np.nan)]))
    assert score(named) == pytest.approx(expected, rel=1e-12)
    assert score({}) == score(dict.fromkeys(HOSTILE_NAMES)) == pytest.approx(nothing, rel=1e-12)


def test_javascript_takes_null_and_what_is_absent_as_missing(tmp_path):
    require_program("javascript")
    model = AdditiveModel([curve([0, 1], [3, 4], missing=0.5)], {}, feature_names=["a"])
    (tmp_path / "m.js").write_bytes(export_files(model, "javascript")[""])
    code = (
        "const s = require('./m.js').score;"
        "console.log(JSON.stringify([s({a: 0}), s({a: null}), s({}), s([undefined]), s([null])]))"
    )
    done = subprocess.run(["node", "-e", code], cwd=tmp_path, capture_output=True, check=True)
    assert json.loads(done.stdout) == [3, 0.5, 0.5, 0.5, 0.5]


def test_duckdb_takes_nan_as_missing():
    duckdb = pytest.importorskip("duckdb")
    curves = [curve([0, 1], [3, 4], 0.5), curve([0, 1], [30, 40], 0.25, categorical=True)]
    statement = export_files(AdditiveModel(curves, {}), "duckdb")[""].decode()
    with duckdb.connect() as database:
        database.execute("CREATE TABLE documents (f1 DOUBLE, f2 DOUBLE)")
        database.execute("INSERT INTO documents VALUES ('NaN', 'NaN'), (NULL, NULL), (1, 0)")
        found = database.execute(statement).fetchall()
    assert [row[-1] for row in found] == [0.75, 0.75, 34.0]


def test_c_compiles_without_a_warning(tmp_path):
    require_program("c")
    (tmp_path / "m.c").write_bytes(export_files(random_curves(9), "c", name="m")[""])
    flags = ["-std=c99", "-trigraphs", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    command = [shutil.which("cc"), *flags, "-c", tmp_path / "m.c", "-o", tmp_path / "m.o"]
    subprocess.run(command, check=True)


def test_java_compiles_without_a_warning(tmp_path):
    require_program("java")
    (tmp_path / "M.java").write_bytes(export_files(random_curves(9), "java", name="M")[""])
    subprocess.run(["javac", "-Xlint:all", "-Werror", "M.java"], cwd=tmp_path, check=True)


def test_sql_of_a_curve():
    model = AdditiveModel([curve([0, 1, 3], [0, 2, 1], 0.5)], {}, feature_names=["a"])
    statement = export_files(model, "sqlite")[""].decode()
    assert re.sub(r"\.0+e\+00", "", statement).splitlines()[1:] == [
        'SELECT d.*, CAST(CASE WHEN CAST(d."a" AS REAL) IS NULL THEN 5.0000000000000000e-01',
        '    WHEN CAST(d."a" AS REAL) < 1 THEN 0 + (CAST(d."a" AS REAL) - (0)) / 1 * (2)',
        '    ELSE 2 + (CAST(d."a" AS REAL) - (1)) / 2 * (-1) END AS REAL) AS "score"',
        'FROM "documents" AS d;',
    ]
