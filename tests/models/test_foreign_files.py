"""Files of other libraries: recognised by content, refused when damaged or dangerous."""

import gzip
import pickle

import joblib
import lightgbm
import numpy as np
import pytest
import skops.io
import xgboost
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from marginrank import RankSVM, load_model, make_ranking
from marginrank.models import ForeignModel, LinearModel, is_model, read_any_model
from marginrank.models.foreign_files import foreign_format
from marginrank.models.trial import read_foreign

X, Y, QID = make_ranking(30, 10, 6, n_levels=3, random_state=0)
TREES = {"n_estimators": 4, "n_jobs": 1}


def lightgbm_ranker():
    sizes = np.bincount(QID)
    return lightgbm.LGBMRanker(**TREES, verbose=-1).fit(X, Y.astype(int), group=sizes)


def xgboost_ranker():
    return xgboost.XGBRanker(**TREES).fit(X, Y.astype(int), qid=QID)


def write(folder, kind):
    """Write a model of a kind to a file called m, and return the scores it must give."""
    path = folder / "m"
    if kind == "LightGBM":
        model = lightgbm_ranker()
        model.booster_.save_model(path)
    elif kind.startswith("XGBoost"):
        model = xgboost_ranker()
        path.write_bytes(model.get_booster().save_raw(kind.split()[1]))
    else:
        model = make_pipeline(StandardScaler(), RandomForestRegressor(**TREES)).fit(X, Y)
        skops.io.dump(model, path)
    return model.predict(X)


KINDS = ["LightGBM", "XGBoost json", "XGBoost ubj", "skops"]


@pytest.mark.parametrize("kind", KINDS)
def test_files_are_recognised_by_content(tmp_path, kind):
    expected = write(tmp_path, kind)
    assert is_model(tmp_path / "m")
    assert foreign_format(str(tmp_path / "m")) == kind.split()[0]
    model = read_any_model(tmp_path / "m")
    assert isinstance(model, ForeignModel)
    assert model.n_features == 6
    np.testing.assert_allclose(model.scores(X), expected, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_no_linear_models(tmp_path, kind):
    write(tmp_path, kind)
    with pytest.raises(ValueError, match=rf"m was written by {kind.split()[0]}.*\.read_any_model"):
        load_model(tmp_path / "m")


def test_reordered_json_of_xgboost(tmp_path):
    write(tmp_path, "XGBoost json")
    text = (tmp_path / "m").read_text()
    learner, version = text[1:-1].rsplit(',"version"', 1)
    (tmp_path / "m").write_text(f'{{\n "version"{version},\n {learner}\n}}')
    assert foreign_format(str(tmp_path / "m")) == "XGBoost"
    assert read_foreign(str(tmp_path / "m")).n_features == 6


@pytest.mark.parametrize("format", ["json", "liblinear", "svmrank"])
def test_own_models_are_not_foreign(tmp_path, format):
    RankSVM().fit(X, Y, qid=QID).save(tmp_path / "m", format=format)
    assert foreign_format(str(tmp_path / "m")) is None
    assert isinstance(read_any_model(tmp_path / "m"), LinearModel)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_cut_files_are_refused(tmp_path, kind, share):
    write(tmp_path, kind)
    content = (tmp_path / "m").read_bytes()
    (tmp_path / "m").write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match="m is damaged") as caught:
        read_any_model(tmp_path / "m")
    assert "\n" not in str(caught.value)


def test_an_edited_tree_of_lightgbm_is_refused(tmp_path):
    write(tmp_path, "LightGBM")
    text = (tmp_path / "m").read_text()
    (tmp_path / "m").write_text(text.replace("num_leaves=", "num_leaves=0", 1))
    with pytest.raises(ValueError, match="trees or parameters do not end"):
        read_any_model(tmp_path / "m")


@pytest.mark.parametrize(
    "model",
    [
        GradientBoostingRegressor(n_estimators=3).fit(X, Y),
        lightgbm_ranker(),
        xgboost_ranker(),
        make_pipeline(FunctionTransformer(np.abs), LinearRegression()).fit(X, Y),
    ],
    ids=lambda model: type(model).__name__,
)
def test_skops_with_types_that_are_known(tmp_path, model):
    skops.io.dump(model, tmp_path / "m")
    read = read_any_model(tmp_path / "m")
    np.testing.assert_allclose(read.scores(X), model.predict(X), rtol=1e-6)


def shout(values):
    raise AssertionError("this must not run")


def test_skops_with_types_that_are_not_known(tmp_path):
    model = make_pipeline(FunctionTransformer(shout), LinearRegression())
    skops.io.dump(model, tmp_path / "m")
    with pytest.raises(ValueError, match=rf"m holds types .* harmless: {__name__}\.shout; write"):
        read_any_model(tmp_path / "m")


def test_another_zip_is_no_model(tmp_path):
    np.savez(tmp_path / "m.npz", a=np.ones(3))
    assert not is_model(tmp_path / "m.npz")
    with pytest.raises(ValueError, match=r"m\.npz is no model file"):
        read_any_model(tmp_path / "m.npz")
    with pytest.raises(ValueError, match=r"m\.npz is no model file of LightGBM, XGBoost, skops"):
        read_foreign(str(tmp_path / "m.npz"))


class Dangerous:
    def __reduce__(self):
        return shout, (1,)


@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_bytes(pickle.dumps(Dangerous())),
        lambda path: joblib.dump(Dangerous(), path),
        lambda path: joblib.dump(Dangerous(), path, compress=3),
        lambda path: path.write_bytes(gzip.compress(pickle.dumps(Dangerous()))),
        lambda path: path.write_bytes(pickle.dumps(Dangerous(), protocol=0)),
    ],
    ids=["pickle", "joblib", "zlib", "gzip", "protocol 0"],
)
def test_pickles_are_never_loaded(tmp_path, write):
    path = tmp_path / "m.joblib"
    write(path)
    for read in (read_any_model, load_model):
        with pytest.raises(ValueError, match=r"m\.joblib is a pickle.*model\.save.*skops"):
            read(path)
