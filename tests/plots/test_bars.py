"""Bars of features and weights, and that no display is needed."""

import io
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from marginrank import RankSVM, make_ranking, rank_features
from marginrank.plots import plot_feature_ranking, plot_weights
from marginrank.plots.bars import COLORS


@pytest.fixture(scope="module")
def ranking():
    X, y, qid = make_ranking(40, 15, 6, random_state=0)
    return rank_features(X, y, qid=qid, feature_names=["a", "b", "$c$", "d", "$\\e", "f"])


def test_a_bar_for_each_of_the_best_features(ranking):
    ax = plot_feature_ranking(ranking, top=4)
    best = ranking.order[:4]
    assert {bar.get_x() for bar in ax.patches} == {ranking.chance}
    ends = [bar.get_x() + bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(ends, ranking.best[best], rtol=1e-12)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == [ranking.feature_names[j] for j in best]
    colors = [bar.get_facecolor() for bar in ax.patches]
    assert colors == [to_rgba(COLORS[direction]) for direction in ranking.direction[best]]
    assert len(set(colors)) == 2
    tops = [bar.get_window_extent().y0 for bar in ax.patches]
    assert tops == sorted(tops, reverse=True)  # the best at the top


def test_texts_beside_the_bars_say_values_and_directions(ranking):
    ax = plot_feature_ranking(ranking)
    assert len(ax.patches) == 6
    (line,) = ax.lines
    assert set(line.get_xdata()) == {ranking.chance}
    *texts, random = [text.get_text() for text in ax.texts]
    assert random == "random order"
    values = [f"{ranking.best[j]:.3f}" for j in ranking.order]
    assert [text.split()[0] for text in texts] == values
    # The first bar of each direction says which it is.
    explained = [text.partition("  ")[2] for text in texts if "first" in text]
    assert sorted(explained) == ["higher values first", "lower values first"]
    assert ax.get_xlabel() == "NDCG@10 of the feature as the score"


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
