"""Curves and heat maps of additive models."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from marginrank import AdditiveRankSVM, RankingData, RankSVM, make_ranking, report
from marginrank.models.additive_model import importance
from marginrank.plots import plot_additive


def test_curves_are_drawn_by_importance_with_density():
    X, y, qid = make_ranking(n_queries=30, docs_per_query=10, n_features=4, random_state=0)
    X[:, 2] = qid  # which no ranking depends on
    X[:, 3] = np.arange(len(y)) % 3
    X[::5, 1] = np.nan
    model = AdditiveRankSVM(categorical_features=[3]).fit(X, y, qid=qid)
    axes = plot_additive(model, X, qid=qid, top=4)
    spread, error = importance(model.to_additive_model(), X, qid)
    assert spread[2] == pytest.approx(0.0, abs=1e-12)
    assert (error[:2] > 0).all()
    order = np.argsort(-spread)
    assert [ax.get_title("left").splitlines()[0] for ax in axes] == [f"f{k + 1}" for k in order]
    for ax, k in zip(axes, order, strict=True):
        if k != 3:
            (line,) = [line for line in ax.lines if line.get_label() == "curve"]
            np.testing.assert_array_equal(line.get_ydata(), model.curves_[k].values)
    by_difference = plot_additive(model.to_additive_model(), top=1)
    assert len(by_difference) == 1
    assert len({ax.get_ylim() for ax in axes}) == 1
    texts = [[text.get_text() for text in ax.texts] for ax in axes]
    assert texts == [["missing"] if k == 1 else [] for k in order]


@pytest.mark.parametrize("kind", ["frame", "list", "csr", "coo", "data", "gaps"])
def test_curves_over_documents_in_any_form(kind):
    X, y, qid = make_ranking(n_queries=20, docs_per_query=8, n_features=3, random_state=0)
    X = X.astype(np.float64)
    if kind == "gaps":
        X[::5, 1] = np.nan
    names = list("abc")
    frame = pd.DataFrame(X, columns=names)
    model = AdditiveRankSVM().fit(frame, y, qid=qid)
    given = {
        "frame": frame,
        "list": X.tolist(),
        "csr": sp.csr_array(X),
        "coo": sp.coo_array(X),
        "data": None if kind == "gaps" else RankingData(X, y, qid, feature_names=names),
        "gaps": frame.astype(object).where(frame.notna(), None),
    }[kind]
    expected = plot_additive(model, X, qid=qid)
    axes = plot_additive(model, given, qid=None if kind == "data" else qid)
    assert [ax.get_title("left") for ax in axes] == [ax.get_title("left") for ax in expected]
    densities = [
        [bar.get_height() for ax in one[0].figure.axes for bar in ax.patches]
        for one in (axes, expected)
    ]
    assert len(densities[0]) == 3 * 40
    assert densities[0] == densities[1]


def test_what_has_no_curves_of_these_features_is_refused():
    X, y, qid = make_ranking(n_queries=20, docs_per_query=8, n_features=3, random_state=0)
    frame = pd.DataFrame(X, columns=list("abc"))
    model = AdditiveRankSVM().fit(frame, y, qid=qid)
    with pytest.raises(TypeError, match=r"RankSVM.*AdditiveRankSVM"):
        plot_additive(RankSVM().fit(X, y, qid=qid), X, qid=qid)
    with pytest.raises(ValueError, match=r"feature 1.*'c'.*'a'"):
        plot_additive(model, frame[list("cab")], qid=qid)
    with pytest.raises(ValueError, match=r"2 features.* 3"):
        plot_additive(model, X[:, :2], qid=qid)
    with pytest.raises(ValueError, match=r"qid.*RankingData"):
        plot_additive(model, RankingData(X, y, qid), qid=qid)


def test_pairs_of_features_are_drawn_as_heat_maps():
    X = np.random.default_rng(0).uniform(-1, 1, size=(600, 3))
    X[:, 2] = np.arange(600) % 4
    y, qid = X[:, 0] * X[:, 1] + X[:, 0] * (X[:, 2] - 1), np.arange(600) // 20
    model = AdditiveRankSVM(C=10, smoothness=0.1, interactions=2, categorical_features=[2])
    model.fit(X, y, qid=qid)
    axes = plot_additive(model, X, qid=qid, top=5)
    by_name = {ax.get_title("left").splitlines()[0]: ax for ax in axes}
    for pair in model.interactions_:
        first, second = (f"f{k + 1}" for k in pair.features)
        ax = by_name[f"{first} × {second}"]
        assert (ax.get_ylabel(), ax.get_xlabel()) == (first, second)
        np.testing.assert_array_equal(ax.collections[0].get_array(), pair.values[1:, 1:])
    assert [label.get_text() for label in by_name["f1 × f3"].get_xticklabels()] == [
        "0", "1", "2", "3",
    ]  # fmt: skip
    assert len(plot_additive(model.to_additive_model(), top=2)) == 2


def test_categories_have_their_texts():
    rng = np.random.default_rng(0)
    code = rng.integers(2, size=400) * 2  # "b" is a category without documents
    color = pd.Categorical.from_codes(code, ["a", "b", "c$"])
    frame = pd.DataFrame({"x": rng.normal(size=400), "color": color})
    y, qid = frame["x"].to_numpy() * code + code, np.arange(400) // 20
    model = AdditiveRankSVM(C=10, interactions=1, categorical_features=[1]).fit(frame, y, qid=qid)
    axes = plot_additive(model, top=3)
    with_color = [ax for ax in axes if "color" in ax.get_title("left")]
    assert len(with_color) == 2  # the curve and the heat map
    for ax in with_color:
        assert [text.get_text() for text in ax.get_xticklabels()] == ["a", "c$"]
    data = RankingData(np.column_stack([frame["x"], code]), y, qid, feature_names=["x", "color"])
    curves = report(model, data, metric="pairwise_accuracy").record["curves"]
    assert {one["feature"]: one["categories"] for one in curves} == {
        "x": None,
        "color": ["a", "c$"],
    }


def test_importance_is_the_spread_inside_queries():
    X, y, qid = make_ranking(n_queries=10, docs_per_query=6, n_features=2, random_state=0)
    model = AdditiveRankSVM().fit(X, y, qid=qid).to_additive_model()
    order = np.random.default_rng(0).permutation(len(y))
    found = importance(model, X[order], qid[order])
    added = np.array([np.interp(X[:, k], *model.curves[k][:2]) for k in range(2)]).T
    inside = [added[qid == q] - added[qid == q].mean(axis=0) for q in np.unique(qid)]
    np.testing.assert_allclose(found.spread, np.sqrt((np.vstack(inside) ** 2).mean(axis=0)))
