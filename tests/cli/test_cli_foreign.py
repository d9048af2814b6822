"""Models of LightGBM, XGBoost and scikit-learn in the commands."""

import json
import os
import pickle
import subprocess
import sys
from functools import cache

import lightgbm
import numpy as np
import pytest
import skops.io
import xgboost
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import FunctionTransformer

from marginrank import KernelRankSVM, load_letor, metrics
from marginrank.cli.app import app
from marginrank.models import trial

TREES = {"n_estimators": 20, "max_depth": 3, "n_jobs": 1}


@pytest.fixture(autouse=True, scope="module")
def sound_files_are_tried_once():
    """A trial imports the library of a model anew, which takes longer than all the rest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial, "try_in_child", cache(trial.try_in_child))
        yield


@pytest.fixture
def call(capsys):
    """Return a function that runs a command in this process, where the libraries are loaded."""

    def call(*arguments, code=0):
        with pytest.raises(SystemExit) as exit:
            app(list(map(str, arguments)))
        assert (exit.value.code or 0) == code
        return capsys.readouterr()

    return call


@pytest.fixture
def rejected(call):
    """Return a function that runs a command with bad input and returns its one sentence."""

    def rejected(*arguments):
        done = call(*arguments, code=2)
        assert done.out == ""
        return done.err.splitlines()[-1].removeprefix("marginrank: ")

    return rejected


@pytest.fixture(scope="module")
def train(train_txt):
    return load_letor(train_txt, n_features=6)


@pytest.fixture(scope="module")
def test(test_txt):
    return load_letor(test_txt, n_features=6)


def fit_lightgbm(train, path):
    ranker = lightgbm.LGBMRanker(**TREES, min_child_samples=5, verbose=-1)
    ranker.fit(train.X, train.y.astype(int), group=np.bincount(train.qid))
    ranker.booster_.save_model(path)
    return ranker.predict


def fit_xgboost(train, path):
    ranker = xgboost.XGBRanker(**TREES).fit(train.X, train.y.astype(int), qid=train.qid)
    ranker.save_model(path)
    return ranker.predict


def fit_forest(train, path):
    forest = RandomForestRegressor(**TREES, random_state=0).fit(train.X, train.y)
    skops.io.dump(forest, path)
    return forest.predict


def fit_classifier(train, path):
    classifier = LogisticRegression().fit(train.X, train.y)
    skops.io.dump(classifier, path)
    return lambda X: classifier.predict_proba(X) @ classifier.classes_


def fit_kernel(train, path):
    """Our own, but no linear model: it takes the same way."""
    model = KernelRankSVM(C=0.1).fit(train.X, train.y, qid=train.qid)
    model.save(path)
    return model.predict


KINDS = {
    "model.txt": fit_lightgbm,
    "model.json": fit_xgboost,
    "model.ubj": fit_xgboost,
    "forest.skops": fit_forest,
    "classifier.skops": fit_classifier,
    "kernel.npz": fit_kernel,
}


@pytest.fixture(scope="module", params=KINDS)
def foreign(request, train, test, tmp_path_factory):
    """Return a model file and the scores it must give to the test data."""
    path = tmp_path_factory.mktemp("foreign") / request.param
    predict = KINDS[request.param](train, path)
    return path, np.asarray(predict(test.X), dtype=float)


def test_predict(call, foreign, test_txt):
    path, expected = foreign
    done = call("predict", path, test_txt)
    np.testing.assert_allclose([float(s) for s in done.out.splitlines()], expected, rtol=1e-6)
    assert "warning" not in done.err.lower()


def test_evaluate(call, foreign, test, test_txt):
    path, expected = foreign
    done = call("evaluate", path, test_txt, "--metrics", "ndcg@5", "--json")
    value = json.loads(done.out)["metrics"]["ndcg@5"]
    assert value == pytest.approx(metrics.ndcg(test.y, expected, qid=test.qid, k=5), rel=1e-6)


def test_compare_with_our_model(call, foreign, model_json, test, test_txt):
    path, expected = foreign
    sides = ("--model-a", model_json, "--model-b", path, "--metric", "pairwise_accuracy")
    result = json.loads(call("compare", test_txt, *sides, "--json").out)
    by_query = metrics.pairwise_accuracy(test.y, expected, qid=test.qid, per_query=True)
    assert result["mean_b"] == pytest.approx(np.nanmean(by_query), rel=1e-6)
    assert result["difference"] == pytest.approx(result["mean_a"] - result["mean_b"])
    assert result["mean_a"] > 0.7


def test_inspect(call, foreign):
    path, _ = foreign
    result = json.loads(call("inspect", path, "--json").out)
    assert result["features"] == 6
    assert result["kind"].split()[0] in ("lightgbm", "marginrank", "sklearn", "xgboost")
    assert result["kind"] in call("inspect", path).out


def test_sparse_data(call, foreign, test_txt):
    """The text lists every feature, so that no entry of CSR is missing."""
    path, expected = foreign
    done = call("predict", path, test_txt, "--layout", "csr")
    np.testing.assert_allclose([float(s) for s in done.out.splitlines()], expected, rtol=1e-5)


def test_data_with_more_features_are_refused(call, rejected, foreign, tmp_path):
    path, _ = foreign
    (tmp_path / "many.txt").write_text("0 qid:1 2:1 7:1\n1 qid:1 2:1\n")
    assert "7" in rejected("predict", path, tmp_path / "many.txt")
    call("convert", tmp_path / "many.txt", tmp_path / "many.store")
    sentence = rejected("predict", path, tmp_path / "many.store")
    assert sentence.startswith("the data has 7 features, but the model 6;")


def test_columns_of_a_table_by_name(call, tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    table = pd.DataFrame({"title": rng.normal(size=20), "age": rng.normal(size=20)})
    model = LinearRegression().fit(table, table["title"] - table["age"])
    skops.io.dump(model, tmp_path / "m.skops")
    (tmp_path / "new.csv").write_text("age,ignored,title\n0.5,x,0.25\n")
    done = call("predict", tmp_path / "m.skops", tmp_path / "new.csv")
    assert float(done.out) == pytest.approx(-0.25)
    assert "warning" not in done.err


def test_a_pickle_is_refused(rejected, tmp_path, test_txt):
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(LinearRegression()))
    assert rejected("evaluate", tmp_path / "m.pkl", test_txt) == (
        f"{tmp_path}/m.pkl is a pickle, and pickles are never loaded, as they can run any code; "
        "write a model of marginrank with model.save, and one of scikit-learn with skops.io.dump."
    )


def test_unknown_types_are_refused(rejected, tmp_path, test_txt):
    skops.io.dump(FunctionTransformer(load_letor), tmp_path / "m.skops")
    sentence = rejected("evaluate", tmp_path / "m.skops", test_txt)
    assert "marginrank.io.letor.load_letor" in sentence


def test_a_cut_file_is_refused(rejected, train, tmp_path, test_txt):
    for name in ("model.txt", "model.ubj", "forest.skops"):
        KINDS[name](train, tmp_path / name)
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[: len(content) // 2])
        assert f"{name} is damaged" in rejected("evaluate", tmp_path / name, test_txt)


def test_a_missing_library_is_named(train, tmp_path, test_txt):
    fit_lightgbm(train, tmp_path / "model.txt")
    (tmp_path / "lightgbm.py").write_text("raise ModuleNotFoundError(name='lightgbm')")
    paths = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "marginrank", "evaluate", tmp_path / "model.txt", test_txt]
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert done.stderr == (
        "marginrank: lightgbm is not installed; get it with: pip install lightgbm\n"
    )


def test_own_models_need_no_other_library(model_json, test_txt):
    code = (
        "import sys\n"
        "from marginrank.cli.app import app\n"
        "try:\n    app(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'sklearn', 'lightgbm', 'xgboost', 'skops'} & set(sys.modules)))\n"
    )
    command = [sys.executable, "-c", code, "evaluate", model_json, test_txt]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
