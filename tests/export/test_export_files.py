"""What the files of each target say, and what is refused."""

import ctypes
import json
import re
import runpy
import shutil
import sqlite3
import subprocess
from pathlib import Path

import numpy as np
import pytest
from helpers.exports import (
    HOSTILE_NAMES,
    expected_scores,
    random_documents,
    random_model,
    require_program,
)
from helpers.tables import each

from marginrank import (
    KernelRankSVM,
    RankSVM,
    RankSVMCV,
    SGDRankSVM,
    SparseRankSVM,
    make_ranking,
)
from marginrank.export.engines import EngineRun
from marginrank.export.exporting import export_files, name_for, offset_above_zero, paths_of
from marginrank.export.names import identifiers, java_quoted
from marginrank.export.registry import TARGETS, find_target
from marginrank.export.verification import run_export, verify
from marginrank.models import LinearModel, read_any_model

MODEL = LinearModel(np.array([1.0, 0.0, -2.5]), {}, feature_names=["a", "b", "c"])


def files_of(target, **options):
    return export_files(MODEL, target, **options)


def json_of(target, part="", **options):
    return json.loads(files_of(target, **options)[part])


# Search engines


def test_elasticsearch_model():
    content = json_of("elasticsearch", name="ranker")["model"]
    assert content == {
        "name": "ranker",
        "model": {"type": "model/linear", "definition": {"a": 1.0, "c": -2.5}},
    }


def test_elasticsearch_adds_an_offset_by_the_mean_of_a_feature():
    content = json_of("elasticsearch", offset=10.0)["model"]["model"]
    assert content["feature_normalizers"] == {
        "c": {"standard": {"mean": 4.0, "standard_deviation": 1.0}}
    }


def test_elasticsearch_features_and_rescoring():
    features = json_of("elasticsearch", "features")["featureset"]["features"]
    assert [feature["name"] for feature in features] == ["a", "c"]
    rescore = json_of("opensearch", "rescore", name="m")["rescore"]["query"]
    assert rescore["query_weight"] == 0  # else the order would not be that of the model
    assert rescore["rescore_query"]["sltr"]["model"] == "m"


def test_templates_cannot_be_injected():
    model = LinearModel(np.ones(1), {}, feature_names=["{{#toJson}}x{{/toJson}}"])
    with pytest.raises(ValueError, match="begins a tag"):
        export_files(model, "elasticsearch")


def test_solr_model_has_a_weight_for_each_feature_with_a_decimal_point():
    text = files_of("solr")[""].decode()
    content = json.loads(text)
    listed = [feature["name"] for feature in content["features"]]
    assert listed == list(content["params"]["weights"]) == ["a", "c"]
    assert re.search(r'"a": 1\.0,', text)
    fields = json_of("solr", "features")
    assert [(f["store"], f["params"]["field"]) for f in fields] == [
        (content["store"], "a"),
        (content["store"], "c"),
    ]


def test_vespa_has_identifiers_for_hostile_names():
    files = export_files(random_model(len(HOSTILE_NAMES), names=HOSTILE_NAMES), "vespa")
    attributes = re.findall(r"attribute\(([^)]*)\)", files[""].decode())
    assert all(re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) for name in attributes)
    renamed = json.loads(files["names.json"])
    assert renamed["with space"] == "with_space"
    assert "plain" not in renamed


def test_identifiers_differ_in_every_case():
    made = identifiers(["a b", "a_b", "A_B_2", "a-b", "1"])
    assert made == ["a_b_3", "a_b", "A_B_2", "a_b_4", "f_1"]


# Databases


def test_sqlite_does_not_take_a_missing_column_for_text():
    database = sqlite3.connect(":memory:")
    database.execute('CREATE TABLE documents ("a")')
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        database.execute(files_of("sqlite")[""].decode())


@pytest.mark.parametrize("target", ["sqlite", "duckdb", "sql:bigquery"])
def test_names_that_differ_in_case_only_are_refused(target):
    model = LinearModel(np.ones(2), {}, feature_names=["size", "Size"])
    with pytest.raises(ValueError, match="'size' and 'Size'"):
        export_files(model, target)
    assert export_files(model, "postgresql")


DIALECTS = ["bigquery", "clickhouse", "mysql", "oracle", "postgres", "snowflake", "spark", "tsql"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_dialects_of_sqlglot(dialect):
    names = ["plain", "with space", "é", "select", "_", "a-b"]
    model, X = random_model(6, names=names), random_documents(20, 6)
    files = export_files(model, f"sql:{dialect}", offset=1.5)
    run = run_export(model, f"sql:{dialect}", files, X)
    np.testing.assert_allclose(run.scores, expected_scores(model, X) + 1.5, rtol=1e-12)


@pytest.mark.parametrize("dialect", DIALECTS)
@each("name", ['"', "`", "]", "\\", "'", "\n", ".", ";"])
def test_names_that_could_end_quotes_are_refused_for_dialects(dialect, name):
    model = LinearModel(np.ones(1), {}, feature_names=[f"a{name}b"])
    with pytest.raises(ValueError, match=r"dialects.*letters"):
        export_files(model, f"sql:{dialect}")


def test_unknown_dialects_are_refused():
    with pytest.raises(ValueError, match=r"sqlglot.*'cobol'"):
        files_of("sql:cobol")


# Programs


def test_c_compiles_without_a_warning_and_knows_its_features(tmp_path):
    require_program("c")
    model = random_model(len(HOSTILE_NAMES), names=HOSTILE_NAMES)
    (tmp_path / "m.c").write_bytes(export_files(model, "c", name="m")[""])
    flags = ["-std=c99", "-trigraphs", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    library = tmp_path / "m.so"
    command = [shutil.which("cc"), *flags, "-shared", "-fPIC", tmp_path / "m.c", "-o", library]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(library))
    names = (ctypes.c_char_p * len(HOSTILE_NAMES)).in_dll(loaded, "m_features")
    assert [name.decode() for name in names] == HOSTILE_NAMES
    assert ctypes.c_size_t.in_dll(loaded, "m_n_features").value == len(HOSTILE_NAMES)


def test_java_reads_no_unicode_escapes_from_names():
    assert java_quoted("\\u0022") == r'"\\u0022"'
    assert java_quoted('\n"é🎉') == r'"\012\"\u00e9\ud83c\udf89"'


def test_java_knows_its_features(tmp_path):
    require_program("java")
    model = random_model(len(HOSTILE_NAMES), names=HOSTILE_NAMES)
    (tmp_path / "M.java").write_bytes(export_files(model, "java", name="M")[""])
    (tmp_path / "Main.java").write_text(
        "public class Main { public static void main(String[] a) { for (String f : M.features())"
        " System.out.println(f.codePoints().boxed().collect(java.util.stream.Collectors.toList()));"
        " } }"
    )
    subprocess.run(
        ["javac", "-Xlint:all", "-Werror", "M.java", "Main.java"], cwd=tmp_path, check=True
    )
    done = subprocess.run(["java", "-cp", tmp_path, "Main"], capture_output=True, check=True)
    lines = done.stdout.splitlines()
    assert ["".join(map(chr, json.loads(line))) for line in lines] == HOSTILE_NAMES


def test_javascript_takes_objects_by_name(tmp_path):
    require_program("javascript")
    model = random_model(len(HOSTILE_NAMES), names=HOSTILE_NAMES)
    X = random_documents(10, len(HOSTILE_NAMES))
    (tmp_path / "m.js").write_bytes(export_files(model, "javascript")[""])
    documents = [
        {name: value for name, value in zip(HOSTILE_NAMES, row, strict=True) if value == value}
        for row in X.tolist()
    ]
    (tmp_path / "documents.json").write_text(json.dumps([*documents, {}, {"plain": None}]))
    code = (
        "const m = require('./m.js');"
        "const d = JSON.parse(require('fs').readFileSync('documents.json', 'utf8'));"
        "console.log(JSON.stringify([m.features, d.map(m.score)]));"
    )
    done = subprocess.run(["node", "-e", code], cwd=tmp_path, capture_output=True, check=True)
    features, scores = json.loads(done.stdout)
    assert features == HOSTILE_NAMES
    np.testing.assert_allclose(scores, [*expected_scores(model, X), 0.0, 0.0], rtol=1e-12)


def test_javascript_cannot_end_the_script_element_of_a_page():
    model = LinearModel(np.ones(1), {}, feature_names=["</script><script>"])
    assert b"<" not in export_files(model, "javascript")[""].split(b"features = ")[1].split(b";")[0]


def test_python_takes_dicts_by_name(tmp_path):
    model = random_model(len(HOSTILE_NAMES), names=HOSTILE_NAMES)
    X = random_documents(10, len(HOSTILE_NAMES))
    (tmp_path / "m.py").write_bytes(export_files(model, "python")[""])
    module = runpy.run_path(tmp_path / "m.py")
    assert module["FEATURES"] == HOSTILE_NAMES
    scores = [module["score"](dict(zip(HOSTILE_NAMES, row, strict=True))) for row in X.tolist()]
    np.testing.assert_allclose(scores, expected_scores(model, X), rtol=1e-12)
    assert module["score"]({"plain": None}) == module["score"]({}) == 0


# Others


def test_pmml_refuses_characters_that_xml_lacks():
    model = LinearModel(np.ones(1), {}, feature_names=["a\x01"])
    with pytest.raises(ValueError, match="XML"):
        export_files(model, "pmml")


def test_fastrank_counts_features_from_one():
    assert json_of("fastrank") == {"Linear": {"weights": [0.0, 1.0, 0.0, -2.5]}}


def test_ranklib_names_itself_and_leaves_zeros_out():
    lines = files_of("ranklib")[""].decode().splitlines()
    assert lines[0] == "## Coordinate Ascent"
    assert lines[-1] == "1:1.0 3:-2.5"


# Refusals, names and places


def test_a_refusal_names_the_targets_that_take_a_model(tmp_path):
    X, y, qid = make_ranking(5, 6, 3, random_state=0)
    KernelRankSVM().fit(X, y, qid=qid).save(tmp_path / "kernel.npz")
    message = "c does not support kernel models; export it to onnx or onnx-float32, or"
    with pytest.raises(ValueError, match=message):
        export_files(read_any_model(tmp_path / "kernel.npz"), "c")


def test_a_target_that_takes_other_models_refuses_linear_ones(monkeypatch):
    monkeypatch.setitem(TARGETS, "trees", TARGETS["c"]._replace(takes=("additive",)))
    with pytest.raises(ValueError, match="trees does not support linear models; export it"):
        export_files(MODEL, "trees")


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("elastic", "target 'elastic'; .* elasticsearch, opensearch, solr"),
        ("sql", "needs a dialect, as in 'sql:mysql'"),
        ("c:89", "'c' has no dialects"),
    ],
)
def test_unknown_targets_are_refused(target, sentence):
    with pytest.raises(ValueError, match=sentence):
        find_target(target)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"name": "a; b"}, "must be letters, digits and _"),
        ({"name": "été"}, "must be letters, digits and _"),
        ({"offset": np.nan}, "offset=nan must be a finite number"),
        ({"names": [1, 2, 3]}, "names must be a list or a dict of strings"),
        ({"names": "abc"}, "names must be a list or a dict of strings"),
        ({"names": ["x"]}, "names has 1 entries and must have 3"),
        ({"names": {"z": "x"}}, "names has 'z'"),
    ],
)
def test_wrong_options_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        files_of("c", **options)


@pytest.mark.parametrize(
    "name", ["class", "String", "Double", "java", "record", "Weights0", "Place", "Knots12", "Math"]
)
def test_names_that_java_has_for_other_things_are_refused(name):
    with pytest.raises(ValueError, match=f"name='{name}'.*Java class"):
        files_of("java", name=name)


@pytest.mark.parametrize("name", ["default", "unranked"])
def test_rank_profiles_of_vespa_itself_are_not_written_again(name):
    with pytest.raises(ValueError, match=f"name='{name}'.*Vespa"):
        files_of("vespa", name=name)


@pytest.mark.parametrize("target", ["elasticsearch", "solr"])
def test_weights_that_are_infinite_in_float32_are_refused(target):
    model = LinearModel(np.array([1.0, -1e39]), {})
    with pytest.raises(ValueError, match=r"'f2' is -1e\+39, too large for float32"):
        export_files(model, target)


@pytest.mark.parametrize("target", ["sqlite", "duckdb", "postgresql", "lucene"])
@pytest.mark.parametrize("sign", ["\u202e", "\u2066"])
def test_no_name_shows_a_reader_other_text_than_is_run(target, sign):
    """A right-to-left override, or a mark that isolates."""
    with pytest.raises(ValueError, match="reverses the order"):
        files_of(target, names={"a": f"a{sign}b"})
    assert sign not in files_of("pmml", names={"a": f"a{sign}b"})[""].decode()


def test_weights_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match=r"coef_.*NaN or infinity"):
        export_files(LinearModel(np.array([np.inf]), {}), "c")


def test_other_files_go_beside_the_main_one():
    parts = ["", "features", "names.json"]
    assert paths_of("a/m.profile", parts) == [
        "a/m.profile",
        "a/m.features.profile",
        "a/m.names.json",
    ]
    assert name_for("a/my-model.v2.json") == "my_model_v2"


def test_estimators_export_themselves(tmp_path):
    X, y, qid = make_ranking(10, 5, 4, random_state=0)
    model = RankSVM().fit(X, y, qid=qid)
    written = model.export(tmp_path / "ranker.json", "solr", names=["w", "x", "y", "z"])
    assert written == [str(tmp_path / "ranker.json"), str(tmp_path / "ranker.features.json")]
    content = json.loads((tmp_path / "ranker.json").read_text())
    assert content["name"] == "ranker"
    assert content["params"]["weights"] == dict(zip("wxyz", model.coef_, strict=True))


def test_a_changed_order_is_told():
    files = files_of("python")
    X = np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [3.0, 0.0, 0.0], [4.0, 0.0, 0.0]])
    run = run_export(MODEL, "python", files, X)
    found = verify(run, np.array([1.0, 2.0, 4.0, 3.5]), [1, 1, 2, 2])
    assert (found.queries, found.reordered_queries, found.documents) == (2, 1, 4)
    assert (found.largest_difference, found.spread) == (1.0, 3.0)


def run_with_scores(target, scores, engine="engine"):
    """Return the run of an export to a target that gives these scores."""
    return EngineRun(engine, np.array(scores, dtype=np.float64), target=TARGETS[target])


@pytest.mark.parametrize("target", TARGETS)
def test_negative_scores_fail_where_the_engine_refuses_them(target):
    scores = np.array([3.0, -1.0, 2.0, -0.5])
    found = verify(run_with_scores(target, scores), scores)
    if target in ("elasticsearch", "opensearch", "lucene"):
        assert found.negative_scores == 2
        assert found.failure == "2 of 4 scores are negative, which the engine rejects."
    else:
        assert (found.negative_scores, found.failure) == (0, None)
    lifted = scores + offset_above_zero(scores)
    assert verify(run_with_scores(target, lifted), lifted).failure is None


@pytest.mark.parametrize("target", TARGETS)
def test_a_difference_beyond_the_documented_accuracy_fails(target):
    scores = np.array([100.0, 102.0])
    allowed = 2e-5 if TARGETS[target].scores_in_float32 else 102e-12
    for share, fails in ((0.5, False), (2.0, True)):
        found = verify(run_with_scores(target, scores + np.array([0.0, share * allowed])), scores)
        assert found.allowed_difference == pytest.approx(allowed)
        assert (found.failure is not None) == fails
    assert "is allowed for this target" in found.failure


def test_lucene_ranks_by_scores_in_float32():
    """Its expressions compute in float64, and their values are rounded when they become scores."""
    scores = 1e9 + np.array([0.0, 1.0, 2.0])
    found = verify(run_with_scores("lucene", scores), scores)
    assert found.reordered_queries == 1
    assert found.failure.startswith(
        "scores of the export differ from the scores of the model by up to 2"
    )
    assert verify(run_with_scores("vespa", scores), scores).failure is None


@pytest.mark.parametrize("scores", [[-3.0], [-3.0, -3.0], [0.0], []])
def test_an_offset_lifts_equal_scores(scores):
    scores = np.array(scores)
    lifted = scores + offset_above_zero(scores)
    assert (lifted == np.abs(scores)).all()


@pytest.mark.parametrize("target", [name for name in TARGETS if TARGETS[name].has_offset])
def test_offsets_that_float32_cannot_hold_are_refused(target):
    to = "sql:mysql" if target == "sql" else target
    if not TARGETS[target].scores_in_float32:
        assert export_files(MODEL, to, offset=1e39)
        return
    with pytest.raises(ValueError, match=r"offset=1e\+39 is too large for .*float32"):
        export_files(MODEL, to, offset=1e39)
    assert export_files(MODEL, to, offset=1e38)


@pytest.mark.parametrize("target", ["elasticsearch", "opensearch", "solr"])
def test_shifts_that_float32_cannot_hold_are_refused(target):
    """These models have no constant: a shift of a feature by offset / weight stands for it."""
    model = LinearModel(np.array([1e-5, -1e-10]), {})
    with pytest.raises(ValueError, match=r"offset=.* too large for float32 .*1e-05"):
        export_files(model, target, offset=1e37)


def test_scores_that_are_not_finite_are_told_with_their_document():
    model = LinearModel(np.array([3e38, 1.0]), {})
    X = np.array([[1.0, 0.0], [5.0, 0.0]])
    run = run_export(model, "solr", export_files(model, "solr"), X)
    with pytest.raises(ValueError, match=r"document 1 the score inf, but .* 1\.5e\+39"):
        verify(run, X @ model.coef)


def test_the_documentation_has_every_target_with_its_precision_and_missing_values():
    page = (Path(__file__).parents[2] / "docs" / "how_to" / "export.md").read_text(encoding="utf-8")
    table = page.partition("## Targets")[2].partition("## ")[0]
    rows = [
        [c.strip() for c in line.split("|")[1:-1]] for line in table.splitlines() if "|" in line
    ]
    documented = {
        name.partition(":")[0]: (precision, missing)
        for names, _, precision, missing, _ in rows[2:]
        for name in re.findall(r"`([^`]+)`", names)
    }
    assert documented == {name: (t.precision, t.missing) for name, t in TARGETS.items()}


def test_every_target_has_a_writer_and_an_engine():
    for name, target in TARGETS.items():
        assert callable(target.writer()), name
        assert callable(target.runner()), name


@pytest.mark.parametrize(
    "estimator",
    [
        RankSVMCV(Cs=[0.1, 1.0], cv=2),
        SparseRankSVM(),
        SGDRankSVM(max_iter=3),
        RankSVM(scale="range"),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_linear_estimator_exports_what_it_predicts(tmp_path, estimator):
    X, y, qid = make_ranking(12, 6, 4, random_state=0)
    model = estimator.fit(X, y, qid=qid)
    model.export(tmp_path / "m.py", "python")
    score = runpy.run_path(tmp_path / "m.py")["score"]
    np.testing.assert_allclose([score(row) for row in X.tolist()], model.predict(X), rtol=1e-12)
