"""Waterfalls of contributions."""

import math

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from marginrank.models.features import Reason
from marginrank.plots import plot_explanation
from marginrank.plots.style import NEGATIVE, POSITIVE

REASONS = [
    Reason(0, "bm25", 12.5, 3.0, 2.0),
    Reason(1, "$age$", 4.0, math.nan, -1.5),
    Reason((0, 2), "bm25 × words", (12.5, 1.0), (3.0, 2.0), -1.0),
    Reason(2, "words", 1.0, 2.0, 0.25),
    Reason(3, "unused", 1.0, 2.0, 0.0),
    Reason(4, "clicks", 1.0, 2.0, 0.125),
]


def bars(ax):
    return np.array([sorted((bar.get_x(), bar.get_x() + bar.get_width())) for bar in ax.patches])


def test_each_bar_begins_where_the_one_above_ends():
    ax = plot_explanation(REASONS, top=3)
    np.testing.assert_allclose(
        bars(ax), [[0, 2], [0.5, 2], [-0.5, 0.5], [-0.5, -0.125], [-0.125, 0]], rtol=1e-12
    )
    colors = [bar.get_facecolor() for bar in ax.patches[:4]]
    assert colors == [to_rgba(c) for c in (POSITIVE, NEGATIVE, NEGATIVE, POSITIVE)]
    tops = [bar.get_window_extent().y0 for bar in ax.patches]
    assert tops == sorted(tops, reverse=True)


def test_labels_are_words():
    ax = plot_explanation(REASONS, top=3, documents=("rank 1", "rank 2"))
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "bm25:  12.5  vs  3",
        "$age$:  4  vs  missing",
        "bm25 × words:  (12.5, 1)  vs  (3, 2)",
        "2 other features",
        "difference of the scores",
    ]
    assert ax.get_xlabel() == "score of rank 1 minus score of rank 2"
    assert [text.get_text() for text in ax.texts] == [
        "+2  in favor of rank 1",
        "−1.5  in favor of rank 2",
        "−1",
        "+0.375",
        "−0.125",
        "feature:  rank 1  vs  rank 2",
    ]


def test_texts_stay_inside_the_figure_and_apart_from_bars():
    ax = plot_explanation(REASONS)
    FigureCanvasAgg(ax.figure).draw()
    width, height = ax.figure.canvas.get_width_height()
    for text, bar in zip(ax.texts, [*ax.patches, None], strict=True):
        box = text.get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= width
        assert 0 <= box.y0 <= box.y1 <= height
        assert bar is None or box.x0 > bar.get_window_extent().x1


def test_axes_of_the_user_and_the_least_top():
    ax = Figure().subplots()
    assert plot_explanation(REASONS, top=1, ax=ax) is ax
    assert len(ax.patches) == 3
    assert len(plot_explanation(REASONS, top=5).patches) == 6  # nothing is left to sum
    with pytest.raises(ValueError, match="top=0"):
        plot_explanation(REASONS, top=0)
