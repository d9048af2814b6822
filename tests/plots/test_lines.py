"""Lines of paths, searches, learning curves and positions."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from marginrank import (
    RankingData,
    RankSVM,
    RankSVMCV,
    learning_curve_ranking,
    linear_path,
    make_ranking,
    sparse_path,
)
from marginrank.plots import (
    plot_learning_curve,
    plot_path,
    plot_position_effect,
    plot_search,
)
from marginrank.plots.style import MUTED, PALETTE


@pytest.fixture(scope="module")
def data():
    X, y, qid = make_ranking(40, 15, 6, random_state=0)
    X[:, 2] = 0  # a feature without a weight
    return X, y, qid


def test_a_line_for_each_feature_with_a_weight(data):
    path = sparse_path(*data[:2], qid=data[2], n_points=5)
    ax = plot_path(path)
    coefs = path.coefs.toarray()
    used = [j for j in range(6) if coefs[:, j].any()]
    assert 2 not in used
    assert [line.get_label() for line in ax.lines] == [f"f{j + 1}" for j in used]
    for line, j in zip(ax.lines, used, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), path.values)
        np.testing.assert_array_equal(line.get_ydata(), coefs[:, j])
    assert (ax.get_xscale(), ax.get_xlabel()) == ("log", "C, the weight of the loss")
    assert ax.figure.axes == [ax]


def test_the_largest_weights_have_colors_and_names():
    X, y, qid = make_ranking(30, 10, 10, random_state=0)
    names = [f"${j}" for j in range(10)]
    path = sparse_path(RankingData(X, y, qid, feature_names=names), n_points=5)
    ax = plot_path(path)
    size = abs(path.coefs).toarray().max(axis=0) * path.scale
    largest = [names[j] for j in np.argsort(-size)[:6]]
    assert [text.get_text() for text in ax.texts] == largest
    colors = {line.get_label(): line.get_color() for line in ax.lines}
    assert [colors.pop(name) for name in largest] == [*PALETTE]
    assert set(colors.values()) == {MUTED}
    FigureCanvasAgg(ax.figure).draw()  # "$" starts no formula


def test_scores_and_the_best_are_drawn_above(data):
    path = sparse_path(
        *data[:2], qid=data[2], parameter="radius", n_points=5, validation=data, metric="ndcg@3"
    )
    for ax in (Figure().subplots(), Figure().add_axes((0.1, 0.1, 0.8, 0.5))):
        assert plot_path(path, ax=ax) is ax
        assert ax.get_xlabel().startswith("radius")
        above = ax.child_axes[0] if ax.child_axes else ax.figure.axes[1]
        FigureCanvasAgg(ax.figure).draw()
        assert above.get_window_extent().y0 >= ax.get_window_extent().y1
        scores, best, line = above.lines
        np.testing.assert_array_equal(scores.get_xdata(), path.values)
        np.testing.assert_array_equal(scores.get_ydata(), path.scores)
        value = path.values[path.best_index]
        assert (best.get_xdata(), best.get_ydata()) == (value, max(path.scores))
        assert set(line.get_xdata()) == {value}
        assert above.get_ylabel() == "NDCG@3"
        assert [text.get_text() for text in above.texts] == [f"best: radius = {value:.3g}"]
        assert above.get_xscale() == "log"


def test_a_path_over_C_has_a_line_for_each_feature(data):
    path = linear_path(*data[:2], qid=data[2], n_points=5, validation=data)
    ax = plot_path(path)
    *weights, best = ax.lines
    assert len(weights) == np.count_nonzero(np.any(path.coefs != 0, axis=0))
    assert set(best.get_xdata()) == {path.values[path.best_index]}
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), path.coefs[:, 0])
    assert len(ax.figure.axes) == 2


def test_a_selection_has_a_line_for_each_combination_and_a_band(data):
    X, y, qid = data
    losses = ["huber", "logistic"]
    model = RankSVMCV(n_points=4, cv=3, loss=losses, normalization="none", scale=None)
    model.fit(X, y, qid=qid)
    chosen = model.search_
    ax = plot_search(chosen)
    *lines, best = ax.lines
    drawn = {line.get_label(): line.get_ydata() for line in lines}
    np.testing.assert_array_equal(drawn["loss=huber"], chosen.mean[:4])
    np.testing.assert_array_equal(drawn["loss=logistic"], chosen.mean[4:])
    assert (best.get_xdata(), best.get_ydata()) == (model.best_params_["C"], model.best_score_)
    assert max(lines[0].get_ydata()) == chosen.mean.max()  # the best combination first
    members = slice(0, 4) if lines[0].get_label() == "loss=huber" else slice(4, 8)
    (band,) = [shown for shown in ax.collections if shown.get_paths()]
    top = np.max(chosen.mean[members] + chosen.error[members])
    assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(top)
    assert (ax.get_xscale(), ax.get_xlabel()) == ("log", "C, the weight of the loss")
    assert ax.get_ylabel() == "NDCG@10 on held-out queries"


def test_a_selection_draws_a_single_value_of_C(data):
    X, y, qid = data
    model = RankSVMCV(Cs=[0.1], cv=3, loss=["huber", "logistic"]).fit(X, y, qid=qid)
    ax = plot_search(model.search_)
    (bar,) = ax.containers  # the error of the best, whose band would be invisible
    heights = bar.lines[2][0].get_segments()[0][:, 1]
    best = model.search_.best_index
    assert np.mean(heights) == pytest.approx(model.search_.mean[best])
    assert np.ptp(heights) == pytest.approx(2 * model.search_.error[best])
    shown = sorted(line.get_ydata()[0] for line in ax.lines[:-1])
    assert shown == sorted(model.search_.mean.tolist())


@pytest.mark.parametrize("many", [False, True])
def test_labels_overlap_neither_each_other_nor_the_lines(many):
    data = make_ranking(20, 10, 4, random_state=0)
    losses = ["huber", "logistic", "squared_hinge"] if many else ["huber", "logistic"]
    others = {"normalization": ["none", "pairs"], "scale": ["none", "standard"]} if many else {}
    model = RankSVMCV(Cs=[0.01, 1.0], cv=2, loss=losses, **others)
    ax = plot_search(model.fit(*data[:2], qid=data[2]).search_)
    FigureCanvasAgg(ax.figure).draw()
    selected, *labels = [Text.get_window_extent(text) for text in ax.texts]  # without leaders
    assert selected.y0 >= ax.bbox.y1
    assert len(labels) == min(len(ax.lines) - 1, 6)
    assert min(label.x0 for label in labels) >= ax.bbox.x1
    assert max(label.x1 for label in labels) <= ax.figure.bbox.x1
    labels.sort(key=lambda label: label.y0)
    assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(labels))
    assert {to_hex(line.get_color()).upper() for line in ax.lines[:6]} <= {*PALETTE, "#000000"}


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
    assert (ax.get_xscale(), ax.get_xlabel()) == ("log", "number of training queries")
    own = Figure().subplots()
    assert plot_learning_curve(curve, ax=own) is own


def test_position_effects_have_one_line_per_context():
    X, y, qid = make_ranking(20, 6, 3, random_state=0)
    position, clicks = np.tile(np.arange(1, 7), 20), (y > np.median(y)).astype(float)
    model = RankSVM(C=0.1).fit(X, clicks, qid=qid, position=position, context=qid % 2)
    ax = plot_position_effect(model)
    assert [line.get_label() for line in ax.lines] == ["0", "1"]
    effect = model.position_effect_[1]
    np.testing.assert_allclose(ax.lines[1].get_ydata(), effect - effect[0])
    FigureCanvasAgg(ax.figure).draw()
    ends = [ax.transAxes.inverted().transform(ax.transData.transform(line.get_xydata()[-1]))[1]
            for line in ax.lines]  # fmt: skip
    heights = [label.xyann[1] for label in ax.texts]
    np.testing.assert_allclose(heights, ends, atol=0.1)  # beside the ends, but apart
    with pytest.raises(ValueError, match="position_effect_"):
        plot_position_effect(RankSVM(C=0.1).fit(X, y, qid=qid))
