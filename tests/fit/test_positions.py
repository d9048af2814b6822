"""Positions in a fit: the same optimum as with explicit columns, and no copy of X."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.tables import each

from marginrank import (
    AdditiveRankSVM,
    AdditiveRankSVMCV,
    RankingData,
    RankSVM,
    RankSVMCV,
    SGDRankSVM,
    SparseRankSVM,
    _core,
    load_model,
)
from marginrank.data.positions import POOLED
from marginrank.fit.positions import POSITION_RIDGE
from marginrank.metrics import pairwise_accuracy
from marginrank.operators.native import as_native

RNG = np.random.default_rng(0)
SESSIONS, SHOWN, FEATURES = 60, 8, 5
N = SESSIONS * SHOWN
X = RNG.normal(size=(N, FEATURES))
QID = np.repeat(np.arange(SESSIONS), SHOWN)
POSITION = np.concatenate([RNG.permutation(SHOWN) + 1 for _ in range(SESSIONS)])
TRUE = X @ RNG.normal(size=FEATURES) - 1.5 * np.log(POSITION)
CLICKS = (TRUE + RNG.normal(size=N) > 0).astype(float)
DEVICE = np.where(np.arange(SESSIONS) % 3 == 0, "phone", "desktop")[QID]


def one_hot(codes, width):
    return np.eye(width)[codes]


def explicit(model, columns, X=X, **given):
    """Fit the columns as features, with the small ridge of position effects."""
    scale = np.ones(X.shape[1] + columns.shape[1])
    scale[X.shape[1] :] = POSITION_RIDGE**0.5
    both = sp.hstack([X, columns]).tocsr() if sp.issparse(X) else np.hstack([X, columns])
    return model.set_params(scale=scale).fit(both, CLICKS, qid=QID, **given)


@each("loss", ["squared_hinge", "logistic", "hinge"])
def test_the_optimum_is_that_of_explicit_columns(loss):
    options = {"C": 0.1, "loss": loss, "tol": 1e-8 if loss == "hinge" else 1e-13}
    model = RankSVM(**options).fit(X, CLICKS, qid=QID, position=POSITION)
    expected = explicit(RankSVM(**options), one_hot(POSITION - 1, SHOWN))
    digits = 1e-3 if loss == "hinge" else 1e-8
    np.testing.assert_allclose(model.coef_, expected.coef_[:FEATURES], atol=digits)
    np.testing.assert_allclose(model.position_effect_, expected.coef_[FEATURES:], atol=digits)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-8)
    assert model.coef_.shape == (FEATURES,)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_)


@each("layout", [np.float32, sp.csr_array])
def test_layouts_of_X_give_the_same_effects(layout):
    other = X.astype(np.float32) if layout is np.float32 else layout(X)
    model = RankSVM(C=0.1, tol=1e-12).fit(other, CLICKS, qid=QID, position=POSITION)
    expected = explicit(
        RankSVM(C=0.1, tol=1e-12), one_hot(POSITION - 1, SHOWN), other.astype(np.float64)
    )
    np.testing.assert_allclose(model.position_effect_, expected.coef_[FEATURES:], atol=1e-7)


def test_the_certificate_covers_the_effects():
    tight = RankSVM(C=0.1, tol=1e-12).fit(X, CLICKS, qid=QID, position=POSITION)
    for tol in (1e-1, 1e-3, 1e-6):
        loose = RankSVM(C=0.1, tol=tol).fit(X, CLICKS, qid=QID, position=POSITION)
        assert loose.objective_ - tight.objective_ <= loose.gap_ * (1 + 1e-9)
        assert loose.objective_ >= tight.objective_ - tight.gap_
    w, b = tight.coef_, tight.position_effect_
    scores = X @ w + b[POSITION - 1]
    i, j = np.nonzero((QID[:, None] == QID) & (CLICKS[:, None] > CLICKS))
    loss = np.sum(np.maximum(0, 1 - (scores[i] - scores[j])) ** 2)
    value = 0.5 * w @ w + 0.5 * POSITION_RIDGE * b @ b + 0.1 * loss
    assert tight.objective_ == pytest.approx(value, rel=1e-10)


def test_each_context_has_its_own_effects():
    model = RankSVM(C=0.1, tol=1e-12).fit(X, CLICKS, qid=QID, position=POSITION, context=DEVICE)
    cell = (DEVICE == "phone") * SHOWN + POSITION - 1
    expected = explicit(RankSVM(C=0.1, tol=1e-12), one_hot(cell, 2 * SHOWN))
    assert model.contexts_.tolist() == ["desktop", "phone"]
    np.testing.assert_allclose(model.position_effect_.ravel(), expected.coef_[FEATURES:], atol=1e-8)
    again = RankSVM(C=0.1).fit(X, CLICKS, qid=QID)
    assert not hasattr(model.fit(X, CLICKS, qid=QID), "position_effect_")
    np.testing.assert_allclose(model.coef_, again.coef_, atol=1e-4)


def test_late_positions_share_one_effect_and_unseen_ones_have_none():
    far = np.where(POSITION == 8, 30 + QID, np.where(POSITION == 7, 25, POSITION))
    model = RankSVM(C=0.1, tol=1e-12).fit(X, CLICKS, qid=QID, position=far)
    assert model.position_effect_.shape == (POOLED,)
    assert np.isnan(model.position_effect_[6:-1]).all()
    expected = explicit(RankSVM(C=0.1, tol=1e-12), one_hot(np.minimum(POSITION, 7) - 1, 7))
    np.testing.assert_allclose(model.coef_, expected.coef_[:FEATURES], atol=1e-8)


def test_effects_fall_where_clicks_do_and_threads_do_not_matter():
    first = RankSVM(C=0.1, n_jobs=1).fit(X, CLICKS, qid=QID, position=POSITION)
    second = RankSVM(C=0.1, n_jobs=2).fit(X, CLICKS, qid=QID, position=POSITION)
    np.testing.assert_array_equal(first.coef_, second.coef_)
    np.testing.assert_array_equal(first.position_effect_, second.position_effect_)
    assert first.position_effect_[0] > first.position_effect_[3] > first.position_effect_[7]


def test_few_documents_with_many_features_are_solved_in_document_space():
    wide = RNG.normal(size=(40, 3000))
    qid, position = np.repeat(np.arange(5), 8), np.tile(np.arange(8) + 1, 5)
    clicks = (np.arange(40) % 3 == 0).astype(float)
    model = RankSVM(C=0.01, tol=1e-12).fit(wide, clicks, qid=qid, position=position)
    scale = np.r_[np.ones(3000), np.full(8, POSITION_RIDGE**0.5)]
    both = np.hstack([wide, one_hot(position - 1, 8)])
    expected = RankSVM(C=0.01, tol=1e-12, scale=scale).fit(both, clicks, qid=qid)
    np.testing.assert_allclose(model.coef_, expected.coef_[:3000], atol=1e-8)


def test_sparse_models_keep_the_effects_beside_the_weights():
    options = {"C": 20.0, "tol": 1e-10}
    model = SparseRankSVM(**options, scale=None).fit(X, CLICKS, qid=QID, position=POSITION)
    expected = explicit(SparseRankSVM(**options), one_hot(POSITION - 1, SHOWN))
    np.testing.assert_allclose(model.coef_, expected.coef_[:FEATURES], atol=1e-5)
    np.testing.assert_allclose(model.position_effect_, expected.coef_[FEATURES:], atol=1e-4)
    chosen = SparseRankSVM().fit(X, CLICKS, qid=QID, position=POSITION)
    assert chosen.C_ == SparseRankSVM().fit(X, CLICKS, qid=QID).C_


def test_additive_models_have_the_positions_as_one_more_category(monkeypatch):
    eased = AdditiveRankSVM(C=5.0, tol=1e-10).fit(X, CLICKS, qid=QID, position=POSITION)
    monkeypatch.setattr("marginrank.additive.fit.POSITION_RIDGE", 1.0)  # as of a category
    held = AdditiveRankSVM(C=5.0, tol=1e-10).fit(X, CLICKS, qid=QID, position=POSITION)
    assert eased.objective_ < held.objective_
    assert np.ptp(eased.position_effect_) > np.ptp(held.position_effect_)
    options = {"C": 5.0, "smoothness": 0.05, "tol": 1e-10, "interactions": 1}
    model = AdditiveRankSVM(**options).fit(X, CLICKS, qid=QID, position=POSITION, context=DEVICE)
    cell = (DEVICE == "phone") * SHOWN + POSITION - 1
    both = np.column_stack([X, cell])
    # With a categorical column, grids could pair it with a feature.
    options["interactions"] = 0
    plain = AdditiveRankSVM(**options).fit(X, CLICKS, qid=QID, position=POSITION, context=DEVICE)
    expected = AdditiveRankSVM(**options, categorical_features=[FEATURES]).fit(
        both, CLICKS, qid=QID
    )
    assert plain.objective_ == pytest.approx(expected.objective_, rel=1e-8)
    assert len(plain.curves_) == FEATURES
    for ours, other in zip(plain.curves_, expected.curves_, strict=False):
        np.testing.assert_allclose(ours.values, other.values, atol=1e-4)
    effects, category = plain.position_effect_.ravel(), expected.curves_[-1].values
    np.testing.assert_allclose(effects, category[: effects.size], atol=1e-4)
    assert model.objective_ < plain.objective_
    assert model.predict(X).shape == (N,)
    assert plain.scale_.shape == (FEATURES,)


def test_a_search_scores_clicks_with_the_effects_of_their_positions():
    options = {"Cs": [1e-4, 1e-2, 1.0], "normalization": "none", "scale": None, "cv": 3}
    found = RankSVMCV(**options).fit(X, CLICKS, qid=QID, position=POSITION)
    scale = np.r_[np.ones(FEATURES), np.full(SHOWN, POSITION_RIDGE**0.5)]
    both = np.hstack([X, one_hot(POSITION - 1, SHOWN)])
    expected = RankSVMCV(**{**options, "scale": scale}).fit(both, CLICKS, qid=QID)
    np.testing.assert_allclose(
        found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], atol=1e-6
    )
    assert found.position_effect_.shape == (SHOWN,)
    assert found.coef_.shape == (FEATURES,)


def test_an_additive_search_scores_clicks_with_the_effects_of_their_positions():
    place = np.where(QID >= 45, POSITION + 1, POSITION)  # the fold has not seen position 9
    train, test = np.flatnonzero(QID < 45), np.flatnonzero(QID >= 45)
    options = {"smoothness": 1.0, "tol": 1e-6}
    search = AdditiveRankSVMCV(
        Cs=[3.0], **options, cv=[(train, test)], scoring="pairwise_accuracy", refit=False
    )
    differ = []
    for context in (None, DEVICE):
        found = search.fit(X, CLICKS, qid=QID, position=place, context=context)
        of = {} if context is None else {"context": context[train]}
        model = AdditiveRankSVM(C=3.0, normalization="pairs", **options)
        model.fit(X[train], CLICKS[train], qid=QID[train], position=place[train], **of)
        table = np.hstack([np.atleast_2d(model.position_effect_), [[0.0]] * (1 if not of else 2)])
        row = np.zeros(N, dtype=int) if context is None else (context == "phone").astype(int)
        scores = model.predict(X[test]) + table[row[test], place[test] - 1]
        expected = pairwise_accuracy(CLICKS[test], scores, qid=QID[test])
        assert found.best_score_ == pytest.approx(expected, abs=2e-3)
        plain = pairwise_accuracy(CLICKS[test], model.predict(X[test]), qid=QID[test])
        differ.append(expected != plain)
    assert any(differ)


def test_online_fits_learn_the_effects_in_the_same_objective():
    given = {"qid": QID, "position": POSITION}
    exact = RankSVM(C=1e-3, tol=1e-10).fit(X, CLICKS, **given)
    online = SGDRankSVM(C=1e-3, tol=1e-4).fit(X, CLICKS, **given)
    assert online.objective_ <= exact.objective_ * 1.001
    assert online.objective_ - exact.objective_ <= online.gap_
    effects = [model.position_effect_ - model.position_effect_.mean() for model in (online, exact)]
    np.testing.assert_allclose(*effects, atol=0.02)
    assert online.coef_.shape == (FEATURES,)
    scaled = SGDRankSVM(C=0.1, scale="standard", early_stopping=True).fit(X, CLICKS, **given)
    assert scaled.coef_.shape == scaled.scale_.shape == (FEATURES,)
    assert scaled.position_effect_[0] > scaled.position_effect_[-1]
    np.testing.assert_allclose(scaled.predict(X), X @ scaled.coef_)


def test_validation_positions_have_no_effect_without_training_positions():
    given = {"qid": QID, "position": POSITION}
    valid = [RankingData(X, CLICKS, **given)], [RankingData(X, CLICKS, qid=QID)]
    fits = [SGDRankSVM(tol=0.1).fit(X, CLICKS, qid=QID, eval_set=one) for one in valid]
    found, expected = ([one.metric for one in fit.history_] for fit in fits)
    assert found == expected


def test_a_stream_of_sessions_continues_with_the_effects(tmp_path):
    model, parts = SGDRankSVM(C=0.1), np.array_split(np.arange(SESSIONS), 6)
    for number, part in enumerate(parts):
        rows = np.isin(QID, part)
        place = np.where(POSITION == 8, 30, POSITION) if number else np.minimum(POSITION, 3)
        if number == 0:  # only three positions so far, one document at each
            rows &= POSITION <= 3
        model.partial_fit(X[rows], CLICKS[rows], qid=QID[rows], position=place[rows])
        assert model.position_effect_.size == (POOLED if number else 3)
    assert np.isnan(model.position_effect_[7:-1]).all()
    assert model.position_effect_[0] > model.position_effect_[-1]
    with pytest.raises(ValueError, match="earlier data had positions, but these data have none"):
        model.partial_fit(X, CLICKS, qid=QID)
    model.save(tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    assert loaded.partial_fit(X, CLICKS, qid=QID, position=POSITION).position_effect_.size == 8
    plain = SGDRankSVM(C=0.1).partial_fit(X, CLICKS, qid=QID)
    with pytest.raises(ValueError, match="earlier data had no positions, but these data have"):
        plain.partial_fit(X, CLICKS, qid=QID, position=POSITION)
    with pytest.raises(ValueError, match="SGDRankSVM does not support context"):
        SGDRankSVM().fit(RankingData(X, CLICKS, QID, position=POSITION, context=DEVICE))


def test_a_store_and_a_frame_keep_positions(tmp_path):
    data = RankingData(X, CLICKS, QID, position=POSITION, context=DEVICE)
    data.save(tmp_path / "sessions.store")
    expected = RankSVM(C=0.1).fit(X, CLICKS, qid=QID, position=POSITION, context=DEVICE)
    opened = RankingData.open(tmp_path / "sessions.store")
    np.testing.assert_array_equal(opened.position, POSITION)
    np.testing.assert_array_equal(opened.context, DEVICE)
    for source in (data, opened, tmp_path / "sessions.store"):
        model = RankSVM(C=0.1).fit(source)
        np.testing.assert_array_equal(model.position_effect_, expected.position_effect_)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde")).assign(p=POSITION)
    named = RankSVM(C=0.1).fit(frame, CLICKS, qid=QID, position="p")
    assert named.coef_.shape == (FEATURES,)
    assert named.predict(frame).shape == (N,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"position": np.r_[0, POSITION[1:]]}, r"position\[0\] is 0"),
        ({"position": np.r_[1.5, POSITION[1:]]}, r"position\[0\] is 1.5"),
        ({"position": POSITION[1:]}, f"position has {N - 1} entries"),
        ({"context": DEVICE}, "context requires position"),
        ({"position": POSITION, "context": DEVICE[1:]}, "context has shape"),
        ({"position": POSITION, "context": np.linspace(0, 1, N)}, "context has dtype"),
    ],
)
def test_wrong_positions_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        RankSVM().fit(X, CLICKS, qid=QID, **given)


def test_fits_without_position_effects_say_so(tmp_path):
    from marginrank import KernelRankSVM, linear_path

    data = RankingData(X, CLICKS, QID, position=POSITION)
    for fit in (
        KernelRankSVM().fit,
        linear_path,
        RankSVM(C=0.1).fit(X, CLICKS, qid=QID).coef_stderr,
    ):
        with pytest.raises(ValueError, match="does not support position"):
            fit(data)
    data.save(tmp_path / "s")
    with pytest.raises(ValueError, match="position requires X in memory"):
        RankSVM().fit(tmp_path / "s", memory_limit="1GB")
    with pytest.raises(ValueError, match="position"):
        RankSVM(objective="ndcg@5").fit(data)


def test_the_coded_matrix_multiplies_as_its_explicit_columns():
    codes = RNG.integers(0, 5, size=N).astype(np.uint16)  # 4 is no category
    both = np.hstack([X, np.eye(5)[codes][:, :4]])
    for inner in (X, X.astype(np.float32), sp.csr_array(X)):
        matrix = as_native(inner).view.coded(codes, 4)
        dense = _core.Matrix.dense(both.astype(getattr(inner, "dtype", float)).astype(float))
        v = RNG.normal(size=FEATURES + 4)
        np.testing.assert_allclose(matrix.dot(v), dense.dot(v), atol=1e-6)
        np.testing.assert_allclose(matrix.magnitudes(), dense.magnitudes(), rtol=1e-6)
        assert matrix.sum() == pytest.approx(dense.sum(), abs=1e-4)
        for j in (0, 4, 5, 8):
            np.testing.assert_allclose(matrix.column(j), both[:, j], atol=1e-7)
        some = matrix.take_columns(np.array([1, 4, 6, 8]))
        np.testing.assert_allclose(
            some.dot(np.arange(4.0)), both[:, [1, 4, 6, 8]] @ np.arange(4), atol=1e-6
        )
    with pytest.raises(ValueError, match="categorical feature already"):
        matrix.coded(codes, 4)
    with pytest.raises(ValueError, match="one entry per row"):
        as_native(X).view.coded(codes[1:], 4)


def test_derivatives_of_the_coded_design_are_those_of_explicit_columns():
    data = RankingData(X, CLICKS, QID, position=POSITION)
    from marginrank.fit.linear import Parameters, make_objective

    codes = data.position_codes
    for inner in (X, sp.csr_array(X)):
        coded = as_native(inner).with_categories(codes.codes, codes.width)
        plain = as_native(np.hstack([X, one_hot(POSITION - 1, SHOWN)]))
        w = RNG.normal(size=FEATURES + SHOWN)
        points = [
            make_objective(data, Parameters(C=0.1), matrix=matrix).at(w)
            for matrix in (coded, plain)
        ]
        ours, expected = points
        np.testing.assert_allclose(ours.gradient, expected.gradient, rtol=1e-12)
        np.testing.assert_allclose(ours.hessian(), expected.hessian(), atol=1e-10)
        np.testing.assert_allclose(ours.hess_diag(), expected.hess_diag(), rtol=1e-10)
        np.testing.assert_allclose(ours.rough_hessian(), expected.rough_hessian(), rtol=1e-4)
        np.testing.assert_allclose(
            ours.by_group(7).gradients, expected.by_group(7).gradients, atol=1e-10
        )
        design, other = (point.objective.design for point in points)
        np.testing.assert_allclose(design.gram.products, other.gram.products, atol=1e-10)
        by_query = ours._evaluation.by_query
        np.testing.assert_allclose(
            design.query_squares(by_query), other.query_squares(by_query), rtol=1e-12
        )
