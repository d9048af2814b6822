"""Kernel models in the commands, and models of other libraries, which are not read."""

import json
import pickle
import subprocess
import sys

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.linear_model import LinearRegression

from marginrank import KernelRankSVM, load_letor, metrics
from marginrank.cli.app import app


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


@pytest.fixture(scope="module")
def kernel(train, test, tmp_path_factory):
    """Return a model file and the scores it must give to the test data."""
    path = tmp_path_factory.mktemp("kernel") / "kernel.npz"
    model = KernelRankSVM(C=0.1).fit(train.X, train.y, qid=train.qid)
    model.save(path)
    return path, model.predict(test.X)


def test_predict(call, kernel, test_txt):
    path, expected = kernel
    done = call("predict", path, test_txt)
    np.testing.assert_allclose([float(s) for s in done.out.splitlines()], expected, rtol=1e-6)
    assert "warning" not in done.err.lower()


def test_evaluate(call, kernel, test, test_txt):
    path, expected = kernel
    done = call("evaluate", path, test_txt, "--metrics", "ndcg@5", "--json")
    value = json.loads(done.out)["metrics"]["ndcg@5"]
    assert value == pytest.approx(metrics.ndcg(test.y, expected, qid=test.qid, k=5), rel=1e-6)


def test_compare_with_our_model(call, kernel, model_json, test, test_txt):
    path, expected = kernel
    sides = ("--model-a", model_json, "--model-b", path, "--metric", "pairwise_accuracy")
    result = json.loads(call("compare", test_txt, *sides, "--json").out)
    by_query = metrics.pairwise_accuracy(test.y, expected, qid=test.qid, per_query=True)
    assert result["mean_b"] == pytest.approx(np.nanmean(by_query), rel=1e-6)
    assert result["difference"] == pytest.approx(result["mean_a"] - result["mean_b"])
    assert result["mean_a"] > 0.7


def test_inspect(call, kernel):
    path, _ = kernel
    result = json.loads(call("inspect", path, "--json").out)
    assert result["features"] == 6
    assert result["kind"].startswith("marginrank")
    assert result["kind"] in call("inspect", path).out


def test_sparse_data(call, kernel, test_txt):
    """The text lists every feature, so that no entry of CSR is missing."""
    path, expected = kernel
    done = call("predict", path, test_txt, "--layout", "csr")
    np.testing.assert_allclose([float(s) for s in done.out.splitlines()], expected, rtol=1e-5)


def test_data_with_more_features_are_refused(call, rejected, kernel, tmp_path):
    path, _ = kernel
    (tmp_path / "many.txt").write_text("0 qid:1 2:1 7:1\n1 qid:1 2:1\n")
    assert "7" in rejected("predict", path, tmp_path / "many.txt")
    call("convert", tmp_path / "many.txt", tmp_path / "many.store")
    sentence = rejected("predict", path, tmp_path / "many.store")
    assert sentence.startswith("the data has 7 features, but the model has 6;")


def test_a_pickle_is_refused(rejected, tmp_path, test_txt):
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(LinearRegression()))
    sentence = rejected("evaluate", tmp_path / "m.pkl", test_txt)
    assert sentence.startswith(f"{tmp_path}/m.pkl is a pickle")


def test_models_of_other_libraries_are_refused(rejected, train, tmp_path, test_txt):
    path = tmp_path / "m.json"
    for write in (
        lightgbm.LGBMRegressor(n_estimators=2, verbose=-1).fit(train.X, train.y).booster_,
        xgboost.XGBRegressor(n_estimators=2).fit(train.X, train.y),
    ):
        write.save_model(path)
        sentence = rejected("evaluate", path, test_txt)
        assert str(path) in sentence
        assert "model" in sentence


def test_own_models_need_no_other_library(model_json, test_txt):
    code = (
        "import sys\n"
        "from marginrank.cli.app import app\n"
        "try:\n    app(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'sklearn', 'lightgbm', 'xgboost'} & set(sys.modules)))\n"
    )
    command = [sys.executable, "-c", code, "evaluate", model_json, test_txt]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
