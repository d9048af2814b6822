"""Labels and queries as names of columns, categories of pandas, and missing values of frames."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from marginrank import (
    AdditiveRankSVM,
    AdditiveRankSVMCV,
    KernelRankSVM,
    RankingData,
    RankSVM,
    RankSVMCV,
    SGDRankSVM,
    load_letor,
    load_model,
    make_ranking,
)

X, y, qid = make_ranking(n_queries=40, docs_per_query=8, n_features=3, random_state=0)
FRAME = pd.DataFrame({"qid": qid, "a": X[:, 0], "label": y, "b": X[:, 1], "c": X[:, 2]})
MODELS = [
    RankSVM(C=0.1),
    RankSVMCV(Cs=[0.01, 0.1], cv=3),
    KernelRankSVM(n_components=9),
    SGDRankSVM(),
    AdditiveRankSVM(max_bins=4),
    AdditiveRankSVMCV(Cs=[0.1], cv=3, max_bins=4, smoothness=1.0),
]


@pytest.mark.parametrize("frame", [FRAME, pl.from_pandas(FRAME)], ids=["pandas", "polars"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_columns_by_name_are_not_features(model, frame):
    model.fit(X, y, qid=qid)
    scores, score = model.predict(X), model.score(X, y, qid=qid)
    model.fit(frame, "label", qid="qid")
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict(frame), scores)
    assert model.score(frame, "label", qid="qid") == score
    np.testing.assert_array_equal(model.rank(frame, qid="qid")[:3], model.rank(frame, qid=qid)[:3])
    # A frame of the features alone.
    np.testing.assert_array_equal(model.predict(frame[["a", "b", "c"]]), scores)
    with pytest.raises(ValueError, match="feature"):
        model.fit(X, y, qid=qid).predict(frame)  # that fit was given no column by name


def test_weights_and_pairs_beside_columns_by_name():
    frame = FRAME.assign(w=1.0)
    model = RankSVM(C=0.1).fit(frame, "label", qid="qid", sample_weight="w")
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    listed = RankSVM(C=0.1).fit(FRAME, "label", qid="qid", pairs=[[0, 1]])
    assert listed.feature_names_in_.tolist() == ["a", "b", "c"]
    assert listed.n_pairs_ == 1


def test_partial_fits_of_frames():
    model = SGDRankSVM().partial_fit(FRAME, "label", qid="qid")
    assert model.partial_fit(FRAME, "label", qid="qid").n_features_in_ == 3


def test_names_without_such_a_column():
    with pytest.raises(ValueError, match=r"'lable'.*'label'"):
        RankSVM().fit(FRAME, "lable", qid="qid")
    with pytest.raises(TypeError, match="y='label' names a column, but X is a ndarray"):
        RankSVM().fit(X, "label")


CATEGORIES = np.random.default_rng(0).choice(["red", "green", "blue"], len(y))
BY_COLOR = 2 * (CATEGORIES == "red") + (CATEGORIES == "blue")
COLORS = pd.DataFrame(
    {
        "a": X[:, 0],
        "color": pd.Categorical(CATEGORIES),
        "n": pd.Categorical(np.arange(len(y)) % 3 * 10),
    }
)


@pytest.mark.parametrize("model", [MODELS[4], MODELS[5]], ids=lambda model: type(model).__name__)
def test_pandas_categories_are_categorical_features(model, tmp_path):
    model.fit(COLORS, BY_COLOR, qid=qid)
    assert [curve.categorical for curve in model.curves_] == [False, True, True]
    assert model.curves_[1].categories == ("blue", "green", "red")
    assert model.curves_[2].knots.tolist() == [0, 10, 20]
    assert model.score(COLORS, BY_COLOR, qid=qid) > 0.99
    scores = model.predict(COLORS)
    # The same text, whatever the categories and the type of the frame to score.
    for color in (pd.Categorical(CATEGORIES, ["pink", "red", "blue", "green"]), CATEGORIES):
        np.testing.assert_array_equal(model.predict(COLORS.assign(color=color)), scores)
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict(COLORS), scores)


def test_text_that_the_fit_did_not_see_is_missing():
    model = AdditiveRankSVM(max_bins=4).fit(COLORS, BY_COLOR, qid=qid)
    pink, none = (model.predict(COLORS.assign(color=value)) for value in ("pink", None))
    np.testing.assert_array_equal(pink, none)
    with pytest.raises(ValueError, match=r"'color'.*1.*text"):
        model.predict(COLORS.assign(color=1))


def test_categories_beside_listed_ones():
    frame = COLORS.assign(m=np.arange(len(y)) % 5)
    model = AdditiveRankSVM(max_bins=4, categorical_features=["m", "n"]).fit(
        frame, BY_COLOR, qid=qid
    )
    assert [curve.categorical for curve in model.curves_] == [False, True, True, True]


def test_categories_of_another_kind():
    dates = pd.Categorical([pd.Timestamp("2020-01-01")] * len(y))
    with pytest.raises(ValueError, match=r"'color'.*categories"):
        AdditiveRankSVM().fit(COLORS.assign(color=dates), BY_COLOR, qid=qid)


GAPS = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
GAPS[0, 0] = np.nan
WITH_GAPS = FRAME.assign(**{name: GAPS[:, k] for k, name in enumerate("abc")})
INTEGERS = WITH_GAPS.assign(b=pd.array(np.arange(len(y)) % 7, dtype="Int64"))
INTEGERS.loc[5, "b"] = pd.NA
FRAMES = {
    "pandas": WITH_GAPS,
    "polars": pl.from_pandas(WITH_GAPS),
    "pyarrow": pa.Table.from_pandas(WITH_GAPS),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_missing_values_of_frames(frame):
    data = RankingData.from_frame(frame, allow_nan=True)
    assert data.has_nan
    np.testing.assert_array_equal(data.X, GAPS)
    model = AdditiveRankSVM(max_bins=4)
    expected = model.fit(GAPS, y, qid=qid).predict(GAPS)
    np.testing.assert_array_equal(model.fit(data).predict(data), expected)
    search = AdditiveRankSVMCV(Cs=[0.1], cv=3, max_bins=4, smoothness=1.0)
    assert search.fit(data).best_score_ == search.fit(GAPS, y, qid=qid).best_score_
    with pytest.raises(ValueError, match=r"'a', row 0 is (null|NaN)"):
        RankingData.from_frame(frame)


@pytest.mark.parametrize("as_frame", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_missing_integers_of_frames(as_frame):
    data = RankingData.from_frame(as_frame(INTEGERS), allow_nan=True)
    np.testing.assert_array_equal(data.X[4:7, 1], [4, np.nan, 6])


def test_only_additive_models_take_missing_values(tmp_path):
    data = RankingData.from_frame(WITH_GAPS, allow_nan=True)
    for model in (RankSVM(), KernelRankSVM(), SGDRankSVM()):
        with pytest.raises(ValueError, match=r"X\[0, 0\] is NaN"):
            model.fit(data)
    with pytest.raises(ValueError, match=r"X\[0, 0\] is NaN"):
        RankSVM(C=0.1).fit(FRAME, "label", qid="qid").predict(data)
    with pytest.raises(ValueError, match=r"NaN.*store"):
        data.save(tmp_path / "store")
    with pytest.raises(ValueError, match=r"X\[1, 0\] is infinity"):
        RankingData([[1.0], [np.inf]], [0, 1], allow_nan=True)


def test_missing_values_of_text(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("1 qid:1 1:NULL 2:1\n0 qid:1 1:2 2:nan\n")
    data = load_letor(path, missing=float("nan"))
    np.testing.assert_array_equal(data.X, [[np.nan, 1], [2, np.nan]])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_dates_and_lazy_frames_are_named(make):
    dates = pd.date_range("2020-01-01", periods=3).to_pydatetime().tolist()
    for frame in (make({"a": [1.0] * 3, "day": dates}), make({"day": dates})):
        with pytest.raises(ValueError, match="'day'"):
            RankSVM().fit(frame, [0, 1, 2])
    with pytest.raises(TypeError, match=r"X is a LazyFrame.*pass X.collect\(\)"):
        RankSVM().fit(pl.LazyFrame({"a": [1.0, 2.0]}), [0, 1])
