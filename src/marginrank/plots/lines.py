"""Line plots: regularization paths, searches, learning curves, and effects of positions."""

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from marginrank._utils.feature_names import name_of
from marginrank._utils.optional import require
from marginrank.plots.style import (
    MUTED,
    NEGATIVE,
    PALETTE,
    PARAMETERS,
    POSITIVE,
    draw_band,
    in_style,
    label_lines,
    metric_label,
    new_axes,
    write_above,
)

if TYPE_CHECKING:
    from marginrank.selection.learning_curve import LearningCurve
    from marginrank.selection.paths import ModelPath
    from marginrank.selection.results import SearchResult

MOST_LINES = len(PALETTE)  # number of lines with a color and a label; other lines are gray


def plot_path(path: "ModelPath", *, ax: Any = None) -> Any:
    """Draw the weights of the models on a regularization path against C or the radius (log scale).

    If the models were scored, their scores are drawn above, with a vertical line at the best score.

    Parameters
    ----------
    path : LinearPath or SparsePath
        Result of :func:`~marginrank.linear_path` or :func:`~marginrank.sparse_path`, or ``path_``
        of :class:`~marginrank.SparseRankSVMCV`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default axes of a new figure, ``ax.figure``.

    Returns
    -------
    matplotlib.axes.Axes
        The axes of the weights, with one line per feature of nonzero weight. The six features with
        the largest weights have a color and a name.

    Examples
    --------
    >>> from marginrank import make_ranking, sparse_path
    >>> from marginrank.plots import plot_path
    >>> X, y, qid = make_ranking(n_queries=20, n_features=5, random_state=0)
    >>> ax = plot_path(sparse_path(X, y, qid=qid, n_points=10))
    >>> len(ax.lines), ax.get_xlabel(), ax.get_xscale()
    (5, 'C, the weight of the loss', 'log')
    """
    if ax is None:
        ax = new_axes(6.4, 4.8 if path.scores is None else 6.0)
    columns = sp.csc_array(path.coefs)
    used = np.flatnonzero(np.diff(columns.indptr))  # columns of zeros could be a million lines
    weights = columns[:, used].toarray()
    scale = np.ones(used.size) if path.scale is None else path.scale[used]
    largest = np.argsort(-np.abs(weights * scale).max(axis=0), kind="stable")[:MOST_LINES].tolist()
    for j, column in zip(used.tolist(), weights.T, strict=True):
        name = name_of(j, path.feature_names)
        ax.plot(path.values, column, color=MUTED, linewidth=0.8, label=name)
    for color, k in zip(PALETTE, largest, strict=False):
        ax.lines[k].set(color=color, linewidth=1.8, zorder=2.5)
    ax.set_xscale("log")
    ax.set_xlabel(PARAMETERS[path.parameter])
    ax.set_ylabel("weight")
    largest_lines = [ax.lines[k] for k in largest]
    if path.scores is not None:
        _draw_scores(ax, path, path.scores)
    label_lines(ax, largest_lines)
    return ax


def _draw_scores(ax: Any, path: "ModelPath", scores: Any) -> None:
    """Draw the scores of a path above its weights, with a vertical line at the best score."""
    above = _axes_above(ax)
    above.plot(path.values, scores, color="0.15", marker=".", label=path.metric)
    above.set_ylabel(metric_label(str(path.metric)), parse_math=False)
    above.tick_params(axis="x", which="both", labelbottom=False)
    best = path.values[path.best_index]
    above.plot(best, scores[path.best_index], "o", color="black")
    for axes in (ax, above):
        axes.axvline(best, color="0.15", linestyle=":", linewidth=1)
    write_above(above, f"best: {path.parameter} = {best:.3g}", best)


def _axes_above(ax: Any) -> Any:
    """Return new axes above `ax` with the same x axis; `ax` shrinks to make room.

    Axes that are not in a grid do not shrink: the new axes are then outside of their area.
    """
    place = ax.get_subplotspec()
    if place is None:
        return ax.inset_axes((0, 1.06, 1, 0.5), sharex=ax)
    upper, lower = place.subgridspec(2, 1, height_ratios=(1, 2))
    ax.set_subplotspec(lower)
    with in_style():
        return ax.figure.add_subplot(upper, sharex=ax)


def plot_search(result: "SearchResult", *, ax: Any = None) -> Any:
    """Draw the scores of a parameter search against C or the radius.

    The line with the best score has a band of one standard error to both sides.

    Parameters
    ----------
    result : SearchResult
        Attribute ``search_`` of :class:`~marginrank.RankSVMCV`,
        :class:`~marginrank.SparseRankSVMCV` or :class:`~marginrank.AdditiveRankSVMCV`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default axes of a new figure, ``ax.figure``.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, with one line per combination of the other parameters, the best first, and a point
        at the selected parameters. If there are several lines, the best six have a color and a
        label.

    Examples
    --------
    >>> from marginrank import RankSVMCV, make_ranking
    >>> from marginrank.plots import plot_search
    >>> X, y, qid = make_ranking(n_queries=20, n_features=5, random_state=0)
    >>> model = RankSVMCV(n_points=5, cv=3, scale=["none", "standard"]).fit(X, y, qid=qid)
    >>> ax = plot_search(model.search_)
    >>> ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()
    ('C, the weight of the loss', 'NDCG@10 on held-out queries', 'log')
    """
    values = result.values
    combination = np.array([candidate.combination for candidate in result.candidates])
    groups = [np.flatnonzero(combination == number) for number in np.unique(combination)]
    groups.sort(key=lambda members: -np.nanmax(result.mean[members], initial=-np.inf))
    if ax is None:
        ax = new_axes(6.4 if len(groups) == 1 else 8.4, 4.4)
    for k, members in enumerate(groups):
        members = members[np.argsort(values[members], kind="stable")]
        x, mean = values[members], result.mean[members]
        color, zorder = (PALETTE[k], 2.5) if k < MOST_LINES else (MUTED, 1.5)
        label = result.label(int(members[0]))
        ax.plot(x, mean, marker=".", color=color, zorder=zorder, label=label)
        if k == 0:
            draw_band(ax, x, mean, np.nan_to_num(result.error[members]), color)
    best = values[result.best_index]
    lines = list(ax.lines)
    ax.plot(best, result.best_score, "o", color="black", zorder=3)
    ax.set_xscale("log")
    ax.set_xlabel(PARAMETERS[result.parameter])
    ax.set_ylabel(f"{metric_label(result.metric)} on held-out queries", parse_math=False)
    write_above(ax, f"selected: {result.parameter} = {best:.3g}", best)
    if len(groups) > 1:
        label_lines(ax, lines[:MOST_LINES])
    return ax


def plot_learning_curve(curve: "LearningCurve", *, ax: Any = None) -> Any:
    """Draw a learning curve: validation and training scores against the number of queries.

    Each line has a band of one standard error to both sides.

    Parameters
    ----------
    curve : LearningCurve
        Result of :func:`~marginrank.learning_curve_ranking`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default axes of a new figure, ``ax.figure``.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from marginrank import learning_curve_ranking, make_ranking
    >>> from marginrank.plots import plot_learning_curve
    >>> X, y, qid = make_ranking(n_queries=40, n_features=5, random_state=0)
    >>> ax = plot_learning_curve(learning_curve_ranking(X, y, qid=qid, cv=2))
    >>> [line.get_label() for line in ax.lines], ax.get_ylabel()
    (['queries held out', 'training queries'], 'NDCG@10')
    """
    if ax is None:
        ax = new_axes(6.8, 4.2)
    for color, label, mean, error in (
        (POSITIVE, "queries held out", curve.valid_mean, curve.valid_error),
        (NEGATIVE, "training queries", curve.train_mean, curve.train_error),
    ):
        ax.plot(curve.sizes, mean, color=color, label=label, marker="o")
        draw_band(ax, curve.sizes, mean, error, color)
    ax.set_xscale("log", base=2)
    sizes = curve.sizes.tolist()
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.set_xlabel("number of training queries")
    ax.set_ylabel(metric_label(curve.metric), parse_math=False)
    label_lines(ax, ax.lines)
    return ax


def plot_position_effect(model: Any, *, ax: Any = None) -> Any:
    """Draw the position bias of a model that was fitted to clicks: one effect per position.

    Effects are relative to the first position. `fit` adds them to scores; `predict` does not.

    Parameters
    ----------
    model : fitted estimator
        Model that was fitted with `position`. If it was fitted with `context`, one line is drawn
        per context.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default axes of a new figure, ``ax.figure``.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from marginrank import RankSVM, make_clicks, make_ranking
    >>> from marginrank.plots import plot_position_effect
    >>> X, y, qid = make_ranking(n_queries=20, docs_per_query=12, random_state=0)
    >>> log = make_clicks(y, qid=qid, n_sessions=200, random_state=0)
    >>> model = RankSVM().fit(X[log.document], log.click, qid=log.session, position=log.position)
    >>> ax = plot_position_effect(model)
    >>> len(ax.lines), ax.get_xlabel()
    (1, 'position in the list')
    """
    effects = getattr(model, "position_effect_", None)
    if effects is None:
        raise ValueError("the model has no position_effect_; fit it with position.")
    if ax is None:
        ax = new_axes(6.4, 3.6)
    table = np.atleast_2d(effects)
    contexts = getattr(model, "contexts_", None)
    labels = [None] if contexts is None else [str(context) for context in contexts]
    position = np.arange(1, table.shape[1] + 1)
    for k, (row, label) in enumerate(zip(table, labels, strict=True)):
        color = PALETTE[k % len(PALETTE)]
        ax.plot(position, row - row[0], marker="o", color=color, label=label)
    ax.xaxis.set_major_locator(require("matplotlib.ticker", "plot").MaxNLocator(integer=True))
    ax.set_xlabel("position in the list")
    ax.set_ylabel("effect on the score of a click,\ncompared with the first position")
    if contexts is not None:
        label_lines(ax, ax.lines)
    return ax
