"""What is drawn, and that no display is needed."""

import io
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from marginrank import (
    AdditiveRankSVM,
    RankingData,
    RankSVM,
    RankSVMCV,
    learning_curve_ranking,
    linear_path,
    make_ranking,
    rank_features,
    sparse_path,
)
from marginrank.models.additive_model import importance
from marginrank.plots import (
    COLORS,
    plot_additive,
    plot_feature_ranking,
    plot_learning_curve,
    plot_path,
    plot_position_effect,
    plot_search,
    plot_weights,
)


@pytest.fixture(scope="module")
def ranking():
    X, y, qid = make_ranking(40, 15, 6, random_state=0)
    return rank_features(X, y, qid=qid, feature_names=["a", "b", "$c$", "d", "$\\e", "f"])


def test_a_bar_for_each_of_the_best_features(ranking):
    ax = plot_feature_ranking(ranking, top=4)
    best = ranking.order[:4]
    np.testing.assert_array_equal([bar.get_width() for bar in ax.patches], ranking.best[best])
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == [ranking.feature_names[j] for j in best]
    colors = [bar.get_facecolor() for bar in ax.patches]
    assert colors == [to_rgba(COLORS[direction]) for direction in ranking.direction[best]]
    assert len(set(colors)) == 2
    tops = [bar.get_window_extent().y0 for bar in ax.patches]
    assert tops == sorted(tops, reverse=True)  # the best at the top


def test_the_line_of_a_random_order_and_the_legend(ranking):
    ax = plot_feature_ranking(ranking)
    assert len(ax.patches) == 6
    (line,) = ax.lines
    assert set(line.get_xdata()) == {ranking.chance}
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["higher values first", "lower values first", "random order"]
    assert ax.get_xlabel() == "ndcg@10"


def test_axes_of_the_user(ranking):
    ax = Figure().subplots()
    assert plot_feature_ranking(ranking, ax=ax) is ax


@pytest.mark.parametrize("format", ["png", "svg", "pdf"])
def test_names_are_drawn_as_they_are(ranking, format):
    file = io.BytesIO()
    plot_feature_ranking(ranking).figure.savefig(file, format=format)
    assert len(file.getvalue()) > 1000
    if format == "svg":
        assert b"<!-- $c$ -->" in file.getvalue()


def test_top_is_at_least_one(ranking):
    with pytest.raises(ValueError, match="top=0"):
        plot_feature_ranking(ranking, top=0)


def test_pyplot_is_left_alone():
    code = (
        "import sys\n"
        "from marginrank import RankingData, make_ranking, rank_features\n"
        "from marginrank.plots import plot_feature_ranking\n"
        "data = RankingData(*make_ranking(5, 5, 2, random_state=0))\n"
        "plot_feature_ranking(rank_features(data))\n"
        "print('matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_a_missing_matplotlib_is_named(ranking, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"matplotlib is not installed.*pip install matplotlib"):
        plot_feature_ranking(ranking)


# Paths of sparse models


@pytest.fixture(scope="module")
def data():
    X, y, qid = make_ranking(40, 15, 6, random_state=0)
    X[:, 2] = 0  # a feature without a weight
    return X, y, qid


def test_a_line_for_each_feature_with_a_weight(data):
    path = sparse_path(*data[:2], qid=data[2], n_points=5)
    ax = plot_path(path)
    coefs = path.coefs.toarray()
    assert [line.get_label() for line in ax.lines] == [
        str(j) for j in range(6) if coefs[:, j].any()
    ]
    assert "2" not in [line.get_label() for line in ax.lines]
    for line in ax.lines:
        np.testing.assert_array_equal(line.get_xdata(), path.values)
        np.testing.assert_array_equal(line.get_ydata(), coefs[:, int(line.get_label())])
    assert (ax.get_xscale(), ax.get_xlabel(), ax.get_ylabel()) == ("log", "C", "weight")
    assert ax.figure.axes == [ax]


def test_scores_and_the_best_on_the_other_side(data):
    path = sparse_path(
        *data[:2], qid=data[2], parameter="radius", n_points=5, validation=data, metric="ndcg@3"
    )
    ax = Figure().subplots()
    assert plot_path(path, ax=ax) is ax
    assert ax.get_xlabel() == "radius"
    _, right = ax.figure.axes
    scores, best, line = right.lines
    np.testing.assert_array_equal(scores.get_xdata(), path.values)
    np.testing.assert_array_equal(scores.get_ydata(), path.scores)
    value = path.values[path.best_index]
    assert (best.get_xdata(), best.get_ydata()) == (value, max(path.scores))
    assert set(line.get_xdata()) == {value}
    assert right.get_ylabel() == "ndcg@3"
    texts = [text.get_text() for text in right.get_legend().get_texts()]
    assert texts == ["ndcg@3", f"best radius: {value:.3g}"]
    assert right.get_xscale() == "log"
    ax.figure.savefig(io.BytesIO(), format="png")


def test_a_path_over_C_has_a_line_for_each_feature(data):
    path = linear_path(*data[:2], qid=data[2], n_points=5, validation=data)
    ax = plot_path(path)
    assert len(ax.lines) == np.count_nonzero(np.any(path.coefs != 0, axis=0))
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), path.coefs[:, 0])
    assert len(ax.figure.axes) == 2


def test_a_selection_has_a_line_and_a_band_for_each_combination(data):
    X, y, qid = data
    losses = ["huber", "logistic"]
    model = RankSVMCV(n_points=4, cv=3, loss=losses, normalization="none", scale=None)
    model.fit(X, y, qid=qid)
    chosen = model.search_
    ax = plot_search(chosen)
    first, second, best = ax.lines
    np.testing.assert_array_equal(first.get_ydata(), chosen.mean[:4])
    np.testing.assert_array_equal(second.get_ydata(), chosen.mean[4:])
    assert (first.get_label(), second.get_label()) == ("loss=huber", "loss=logistic")
    assert (best.get_xdata(), best.get_ydata()) == (model.best_params_["C"], model.best_score_)
    assert len(ax.collections) == 2
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(np.max(chosen.mean[:4] + chosen.error[:4]))
    assert (ax.get_xscale(), ax.get_xlabel(), ax.get_ylabel()) == ("log", "C", "ndcg@10")


def test_a_selection_draws_a_single_value_of_C(data):
    X, y, qid = data
    model = RankSVMCV(Cs=[0.1], cv=3, loss=["huber", "logistic"]).fit(X, y, qid=qid)
    ax = plot_search(model.search_)
    drawn = [one.lines[0] for one in ax.containers]
    assert [line.get_marker() for line in drawn] == ["o", "o"]
    assert [line.get_ydata()[0] for line in drawn] == model.search_.mean.tolist()
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(labels) == ["C = 0.1", "loss=huber", "loss=logistic"]


def test_the_legend_of_many_lines_does_not_cover_them():
    data = make_ranking(20, 10, 4, random_state=0)
    for losses in (["huber"], ["huber", "logistic", "squared_hinge"]):
        others = {"normalization": ["none", "pairs"], "scale": ["none", "standard"]}
        others = others if len(losses) > 1 else {}
        model = RankSVMCV(Cs=[0.01, 1.0], cv=2, loss=losses, **others)
        ax = plot_search(model.fit(*data[:2], qid=data[2]).search_)
        FigureCanvasAgg(ax.figure).draw()
        axes, legend = ax.get_window_extent(), ax.get_legend().get_window_extent()
        assert axes.overlaps(legend) == (len(losses) == 1)
        assert min(legend.x0, legend.y0) >= 0
        assert min(axes.width, axes.height) > 350


def test_a_learning_curve_has_two_lines_and_their_errors():
    X, y, qid = make_ranking(30, 10, 4, random_state=0)
    curve = learning_curve_ranking(X, y, qid=qid, cv=3)
    ax = plot_learning_curve(curve)
    held_out, trained_on = ax.lines
    np.testing.assert_array_equal(held_out.get_xdata(), curve.sizes)
    np.testing.assert_array_equal(held_out.get_ydata(), curve.valid_mean)
    np.testing.assert_array_equal(trained_on.get_ydata(), curve.train_mean)
    band = ax.collections[0].get_paths()[0].vertices
    for k, size in enumerate(curve.sizes):
        ends = band[band[:, 0] == size, 1]
        assert ends.min() == pytest.approx(curve.valid_mean[k] - curve.valid_error[k])
        assert ends.max() == pytest.approx(curve.valid_mean[k] + curve.valid_error[k])
    assert [label.get_text() for label in ax.get_xticklabels()] == [str(n) for n in curve.sizes]
    assert (ax.get_xscale(), ax.get_xlabel()) == ("log", "training queries")
    own = Figure().subplots()
    assert plot_learning_curve(curve, ax=own) is own


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
    assert [ax.get_title().split(":")[0] for ax in axes] == [f"f{k + 1}" for k in order]
    for ax, k in zip(axes, order, strict=True):
        if k != 3:
            np.testing.assert_array_equal(ax.lines[0].get_ydata(), model.curves_[k].values)
    by_difference = plot_additive(model.to_additive_model(), top=1)
    assert len(by_difference) == 1


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
    assert [ax.get_title() for ax in axes] == [ax.get_title() for ax in expected]
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
    by_name = {ax.get_title().split(":")[0]: ax for ax in axes}
    for pair in model.interactions_:
        first, second = (f"f{k + 1}" for k in pair.features)
        ax = by_name[f"{first} × {second}"]
        assert (ax.get_ylabel(), ax.get_xlabel()) == (first, second)
        np.testing.assert_array_equal(ax.collections[0].get_array(), pair.values[1:, 1:])
    assert [label.get_text() for label in by_name["f1 × f3"].get_xticklabels()] == [
        "0", "1", "2", "3",
    ]  # fmt: skip
    assert len(plot_additive(model.to_additive_model(), top=2)) == 2


def test_importance_is_the_spread_inside_queries():
    X, y, qid = make_ranking(n_queries=10, docs_per_query=6, n_features=2, random_state=0)
    model = AdditiveRankSVM().fit(X, y, qid=qid).to_additive_model()
    order = np.random.default_rng(0).permutation(len(y))
    found = importance(model, X[order], qid[order])
    added = np.array([np.interp(X[:, k], *model.curves[k][:2]) for k in range(2)]).T
    inside = [added[qid == q] - added[qid == q].mean(axis=0) for q in np.unique(qid)]
    np.testing.assert_allclose(found.spread, np.sqrt((np.vstack(inside) ** 2).mean(axis=0)))


def test_weights_are_bars_with_standard_errors():
    X, y, qid = make_ranking(40, 15, 6, random_state=0)
    frame = pd.DataFrame(X * [1, 10, 1, 1, 1, 1], columns=[*"abcde", "$f$"])
    model = RankSVM(C=0.1, scale="query").fit(frame, y, qid=qid)
    effects, stderr = model.coef_ * model.scale_, model.coef_stderr(frame, y, qid=qid)
    ax = plot_weights(model, stderr, top=4)
    largest = np.argsort(-abs(effects))[:4]
    np.testing.assert_array_equal([bar.get_width() for bar in ax.patches], effects[largest])
    (lines,) = (c.lines[2][0].get_segments() for c in ax.containers if hasattr(c, "has_xerr"))
    widths = [line[1, 0] - line[0, 0] for line in lines]
    np.testing.assert_allclose(widths, 2 * (stderr * model.scale_)[largest])
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == [frame.columns[j] for j in largest]
    FigureCanvasAgg(ax.figure).draw()
    plain = plot_weights(RankSVM(C=0.1).fit(X, y, qid=qid).to_linear_model())
    assert (len(plain.patches), plain.get_xlabel()) == (6, "weight")


def test_position_effects_have_one_line_per_context():
    X, y, qid = make_ranking(20, 6, 3, random_state=0)
    position, clicks = np.tile(np.arange(1, 7), 20), (y > np.median(y)).astype(float)
    model = RankSVM(C=0.1).fit(X, clicks, qid=qid, position=position, context=qid % 2)
    ax = plot_position_effect(model)
    assert [line.get_label() for line in ax.lines] == ["0", "1"]
    effect = model.position_effect_[1]
    np.testing.assert_allclose(ax.lines[1].get_ydata(), effect - effect[0])
    with pytest.raises(ValueError, match="position_effect_"):
        plot_position_effect(RankSVM(C=0.1).fit(X, y, qid=qid))
