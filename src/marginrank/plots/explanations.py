"""Waterfall plots: how features contribute to the difference between two scores."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from marginrank._utils.parameters import check_integer
from marginrank.models.features import largest_reasons, values_text
from marginrank.plots.style import (
    BESIDE,
    MUTED,
    NEGATIVE,
    POSITIVE,
    TEXT,
    name_rows,
    new_axes,
    write_beside,
)

if TYPE_CHECKING:
    from marginrank.models.features import Reason

STEP = {"color": "0.55", "linewidth": 0.8}  # lines from the end of a bar to the next one


def plot_explanation(
    reasons: "Sequence[Reason]",
    *,
    documents: tuple[str, str] = ("document A", "document B"),
    top: int = 10,
    ax: Any = None,
) -> Any:
    """Draw how features contribute to the difference between two scores, as a waterfall plot.

    Each bar begins where the bar above it ends. The last bar is the difference of the scores.

    Parameters
    ----------
    reasons : sequence of Reason
        Contributions of features, as returned by ``explain`` of a model or by
        :func:`~marginrank.models.foreign_reasons`.
    documents : (str, str), default=("document A", "document B")
        Names of the two documents.
    top : int, default=10
        Number of contributions to show; the sum of the others is one more bar.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default axes of a new figure, ``ax.figure``.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from marginrank import RankSVM, make_ranking
    >>> from marginrank.plots import plot_explanation
    >>> X, y, qid = make_ranking(n_queries=20, n_features=5, random_state=0)
    >>> model = RankSVM().fit(X, y, qid=qid)
    >>> ax = plot_explanation(model.explain(X[0], X[1]), top=3)
    >>> [label.get_text().split(":")[0] for label in ax.get_yticklabels()]
    ['f3', 'f5', 'f4', '2 other features', 'difference of the scores']
    """
    shown, n_others, others = largest_reasons(reasons, check_integer("top", top, at_least=1))
    sizes = [reason.difference for reason in shown]
    names = [
        f"{reason.name}:  {values_text(reason.preferred)}  vs  {values_text(reason.other)}"
        for reason in shown
    ]
    if n_others:
        sizes.append(others)
        names.append(f"{n_others:,} other feature{'s' if n_others > 1 else ''}")
    starts = [math.fsum(sizes[:k]) for k in range(len(sizes))]
    total = math.fsum(reason.difference for reason in reasons)
    if ax is None:
        ax = new_axes(6.4, 1.3 + 0.27 * (len(sizes) + 1))
    rows = range(len(sizes))
    colors = [POSITIVE if size >= 0 else NEGATIVE for size in sizes]
    ax.barh(rows, sizes, 0.7, starts, color=colors)
    ax.barh(len(sizes), total, 0.7, color=MUTED)
    for row, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        ax.plot([start + size] * 2, [row - 0.35, row + 1.35], **STEP)
    for row, (start, size, color) in enumerate(zip(starts, sizes, colors, strict=True)):
        label = _signed(size)
        if color not in colors[:row]:  # write the meaning of a color at its first bar
            label += f"  in favor of {documents[0] if color == POSITIVE else documents[1]}"
        write_beside(ax, label, (max(start, start + size), row), color)
    write_beside(ax, _signed(total), (max(total, 0.0), len(sizes)), TEXT)
    name_rows(ax, [*names, "difference of the scores"])
    header = f"feature:  {documents[0]}  vs  {documents[1]}"
    ax.annotate(header, (0, 1), (-4, 2), "axes fraction", color=TEXT, ha="right", **BESIDE)
    ax.axvline(0, color="0.15", linewidth=1)
    for text in ax.texts:  # the line at zero may cross the texts
        text.set_bbox({"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 0.5})
    ax.use_sticky_edges = False  # the bars need a margin on both sides
    ax.autoscale_view(scaley=False)
    ax.set_xlabel(f"score of {documents[0]} minus score of {documents[1]}", parse_math=False)
    return ax


def _signed(value: float) -> str:
    return f"{value:+.3g}".replace("-", "−")
