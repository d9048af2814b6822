"""Contributions add up to the difference of two scores, for every kind of model."""

import math

import lightgbm
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xgboost
from helpers.tables import each
from sklearn.linear_model import LinearRegression

from marginrank import (
    AdditiveRankSVM,
    KernelRankSVM,
    RankSVM,
    SGDRankSVM,
    SparseRankSVM,
    make_ranking,
)
from marginrank.models import foreign_reasons, foreign_scores

X, Y, QID = make_ranking(30, 10, 6, n_levels=3, random_state=0)
LEVELS = Y.astype(int)
SIZES = np.bincount(QID)
SMALL = {"n_estimators": 10, "n_jobs": 1}
LGBM = {**SMALL, "verbose": -1, "min_child_samples": 5}
PAIRS = [(0, 1), (17, 240), (299, 3)]
HOLES = X.copy()
HOLES[::4, 1] = np.nan


def check_sum(reasons, difference, rtol):
    """Compare with the sum, rounded once; the error is relative to the largest terms."""
    size = max(abs(reason.difference) for reason in reasons) + abs(difference)
    assert math.fsum(r.difference for r in reasons) == pytest.approx(difference, abs=rtol * size)
    sizes = [abs(reason.difference) for reason in reasons]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(
    ("model", "documents"),
    [
        (RankSVM(scale="query"), X),
        (RankSVM(), X.astype(np.float32)),
        (RankSVM(), sp.csr_array(X)),
        (SparseRankSVM(radius=1.0), X),
        (SGDRankSVM(random_state=0), X),
        (AdditiveRankSVM(), X),
        (AdditiveRankSVM(), HOLES),
        (AdditiveRankSVM(interactions=2), HOLES),
        (AdditiveRankSVM(monotonic_cst={0: 1}), X.astype(np.float32)),
        (KernelRankSVM(kernel="linear", scale="standard"), X),
        (KernelRankSVM(kernel="linear"), X.astype(np.float32)),
        (KernelRankSVM(kernel="precomputed"), X @ X.T),
    ],
    ids=lambda value: repr(value) if hasattr(value, "fit") else type(value).__name__,
)
def test_models_of_marginrank(model, documents):
    model = model.fit(documents, Y, qid=QID)
    scores = model.predict(documents)
    for first, second in PAIRS:
        reasons = model.explain(documents[[first]], documents[[second]])
        check_sum(reasons, scores[first] - scores[second], 1e-12)


def test_other_kernels_have_no_contributions():
    model = KernelRankSVM(kernel="rbf").fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match="kernel='rbf' has no exact contributions by feature"):
        model.explain(X[0], X[1])


@pytest.mark.parametrize(
    ("model", "rtol"),
    [
        (lightgbm.LGBMRanker(**LGBM).fit(X, LEVELS, group=SIZES), 1e-12),
        (lightgbm.LGBMRegressor(**LGBM).fit(X, Y).booster_, 1e-12),
        (xgboost.XGBRanker(**SMALL).fit(X, LEVELS, qid=QID), 1e-5),
        (xgboost.XGBRegressor(**SMALL).fit(X, Y).get_booster(), 1e-5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_boosted_trees(model, rtol):
    scores = foreign_scores(model, X)
    for first, second in PAIRS:
        reasons = foreign_reasons(model, X[first], X[second])
        check_sum(reasons, scores[first] - scores[second], rtol)
        assert {reason.name for reason in reasons} == {f"f{k}" for k in range(1, 7)}
        for reason in reasons:
            assert (reason.preferred, reason.other) == (
                X[first, reason.feature],
                X[second, reason.feature],
            )


def test_trees_that_stopped_early():
    rng = np.random.default_rng(0)
    model = xgboost.XGBRegressor(n_estimators=50, early_stopping_rounds=2, n_jobs=1)
    model.fit(X, Y, eval_set=[(X, rng.permutation(Y))], verbose=False)
    assert model.best_iteration < model.get_booster().num_boosted_rounds() - 1
    scores = foreign_scores(model, X)
    check_sum(foreign_reasons(model, X[0], X[1]), scores[0] - scores[1], 1e-5)


def test_absent_values_of_sparse_rows_mean_what_they_do_in_predictions():
    rows = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    for model, rtol in (
        (xgboost.XGBRegressor(**SMALL).fit(sp.csr_matrix(rows), Y), 1e-5),
        (lightgbm.LGBMRegressor(**LGBM).fit(sp.csr_matrix(rows), Y), 1e-12),
    ):
        scores = foreign_scores(model, rows)
        for pair in (rows[[0]], rows[[1]]), (rows[0], rows[1]):
            check_sum(foreign_reasons(model, *pair), scores[0] - scores[1], rtol)
    dense = rows.toarray()
    model = xgboost.XGBRegressor(**SMALL, missing=0.0).fit(dense, Y)
    scores = foreign_scores(model, dense)
    check_sum(foreign_reasons(model, dense[0], dense[1]), scores[0] - scores[1], 1e-5)


@pytest.mark.filterwarnings("error")
def test_names_and_missing_values_of_trees():
    table = pd.DataFrame(HOLES, columns=list("abcdef"))
    for model, rtol in (
        (lightgbm.LGBMRegressor(**LGBM).fit(table, Y), 1e-12),
        (xgboost.XGBRegressor(**SMALL).fit(table, Y), 1e-5),
    ):
        scores = foreign_scores(model, table)
        for rows in (table.iloc[0], table.iloc[5]), (table[:1], table[5:6]), (HOLES[0], HOLES[5]):
            reasons = foreign_reasons(model, *rows)
            check_sum(reasons, scores[0] - scores[5], rtol)
            assert {reason.name for reason in reasons} == set("abcdef")
        with pytest.raises(ValueError, match="feature 1 of preferred is 'b', but 'a'"):
            foreign_reasons(model, table[list("bacdef")].iloc[0], HOLES[1])


@each("kind", [lightgbm.LGBMClassifier(**LGBM), xgboost.XGBClassifier(**SMALL)])
def test_classifiers_are_explained_by_their_raw_scores(kind):
    model = kind.fit(X, (Y > 0).astype(int))
    no, yes = model.predict_proba(X[:2]).T.astype(np.float64)
    raw = np.log(yes / no)
    check_sum(foreign_reasons(model, X[0], X[1]), raw[0] - raw[1], 1e-5)
    with pytest.raises(ValueError, match="the model has 3 scores per document"):
        foreign_reasons(kind.fit(X, LEVELS), X[0], X[1])


def test_other_models_are_not_explained():
    with pytest.raises(ValueError, match="LinearRegression is not a model of LightGBM or XGBoost"):
        foreign_reasons(LinearRegression().fit(X, Y), X[0], X[1])
    lines = lightgbm.LGBMRegressor(**LGBM, linear_tree=True).fit(X, Y)
    with pytest.raises(ValueError, match="the model cannot be explained by LightGBM"):
        foreign_reasons(lines, X[0], X[1])
    model = lightgbm.LGBMRegressor(**LGBM).fit(X, Y)
    with pytest.raises(ValueError, match="the data has 5 features, but the model has 6"):
        foreign_reasons(model, X[0, :5], X[1])
