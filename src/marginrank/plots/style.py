"""The common style of all plots: colors, new axes, labels next to lines, names of metrics."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from marginrank._utils.optional import require

STYLE = Path(__file__).with_name("marginrank.mplstyle")
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # as in STYLE
POSITIVE, NEGATIVE = PALETTE[:2]
MUTED = "0.78"  # color of lines for comparison
TEXT = "0.35"  # color of explanatory text
LABEL_SIZE = 9.0  # font size of labels in points
LABEL_PLACE = 1.02  # x of labels to the right of the axes, whose width is 1
BESIDE = {"textcoords": "offset points", "size": LABEL_SIZE, "annotation_clip": False}
LEADER = {"arrowstyle": "-", "linewidth": 0.6, "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 3}
LINE_HEIGHT = 1.3  # smallest distance between two labels, in font sizes
ABBREVIATIONS = {"ndcg", "dcg", "map", "mrr", "err", "auc"}
PARAMETERS = {"C": "C, the weight of the loss", "radius": "radius, the bound on the weights' size"}


def in_style() -> Any:
    """Return a context manager that applies the style sheet of this package to new figures."""
    return require("matplotlib", "plot").rc_context(fname=STYLE)


def new_axes(width: float, height: float) -> Any:
    """Return the axes of a new figure with the style of this package; sizes are in inches."""
    with in_style():
        return require("matplotlib.figure", "plot").Figure((width, height)).subplots()


def metric_label(metric: str) -> str:
    """Return a metric's name as an axis label.

    Examples
    --------
    >>> from marginrank.plots.style import metric_label
    >>> metric_label("ndcg@10"), metric_label("pairwise_accuracy")
    ('NDCG@10', 'pairwise accuracy')
    """
    name, at, depth = metric.partition("@")
    plain = name.upper() if name in ABBREVIATIONS else name.replace("_", " ")
    return f"{plain}{at}{depth}"


def name_rows(ax: Any, names: Sequence[str]) -> None:
    """Label the rows of a horizontal bar plot with `names`, from the top; "$" is plain text."""
    ax.set_yticks(range(len(names)), names, parse_math=False)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False, axis="y")


def label_lines(ax: Any, lines: Sequence[Any]) -> None:
    """Write the label of each line next to its end, to the right of the axes, without overlaps."""
    if not lines:
        return
    ax.autoscale_view()  # update the limits of the axes, which transData uses
    to_fractions = ax.transData + ax.transAxes.inverted()
    ends = [to_fractions.transform(line.get_xydata()[-1])[1] for line in lines]
    gap = LINE_HEIGHT * LABEL_SIZE * ax.figure.dpi / 72 / ax.bbox.height
    for line, height in zip(lines, spread_out(ends, gap), strict=True):
        color = line.get_color()
        ax.annotate(
            line.get_label(),
            line.get_xydata()[-1],
            (LABEL_PLACE, height),
            textcoords="axes fraction",
            color=color,
            size=LABEL_SIZE,
            va="center",
            annotation_clip=False,
            parse_math=False,
            arrowprops=LEADER | {"color": color},
        )


def write_beside(
    ax: Any, text: str, place: tuple[float, float], color: str, coordinates: Any = "data"
) -> None:
    """Write a text to the right of a point of a plot."""
    ax.annotate(text, place, (4, 0), coordinates, color=color, va="center", **BESIDE)


def write_above(ax: Any, text: str, x: float) -> None:
    """Write a text above the axes of a plot, at the coordinate x."""
    coordinates = ("data", "axes fraction")
    ax.annotate(text, (x, 1), (0, 3), coordinates, color=TEXT, ha="center", va="bottom", **BESIDE)


def spread_out(places: Any, gap: float) -> Any:
    """Return numbers, such as heights of labels, moved until they differ by at least `gap`.

    The order is kept, and the sum of squared movements is minimal.

    Examples
    --------
    >>> from marginrank.plots.style import spread_out
    >>> spread_out([5.0, 0.0, 5.0], 2.0).tolist()
    [4.0, 0.0, 6.0]
    """
    places = np.asarray(places, dtype=np.float64)
    order = np.argsort(places, kind="stable")
    shifts = gap * np.arange(places.size)
    moved = np.empty_like(places)
    moved[order] = isotonic_regression(places[order] - shifts).x + shifts
    return moved


def draw_band(ax: Any, x: Any, mean: Any, error: Any, color: str) -> None:
    """Draw a band of ± `error` around the line `mean`, or an error bar for a single point."""
    if len(x) == 1:
        ax.errorbar(x, mean, error, fmt="none", ecolor=color)
    else:
        ax.fill_between(x, mean - error, mean + error, color=color, alpha=0.15, linewidth=0)
