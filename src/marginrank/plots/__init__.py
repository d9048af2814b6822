"""Plots with matplotlib, on given axes or on a new figure.

pyplot is not used, so no display is needed. New figures have the style sheet
``marginrank.plots.marginrank``. Use it for your own figures, too:
``plt.style.use("marginrank.plots.marginrank")``.
"""

from marginrank.plots.additive import plot_additive
from marginrank.plots.bars import plot_feature_ranking, plot_weights
from marginrank.plots.explanations import plot_explanation
from marginrank.plots.lines import (
    plot_learning_curve,
    plot_path,
    plot_position_effect,
    plot_search,
)

__all__ = [
    "plot_additive",
    "plot_explanation",
    "plot_feature_ranking",
    "plot_learning_curve",
    "plot_path",
    "plot_position_effect",
    "plot_search",
    "plot_weights",
]
