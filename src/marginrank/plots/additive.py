"""Plots of additive models: curves of features, and heat maps of interactions."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from marginrank._utils.feature_names import name_of
from marginrank._utils.optional import require
from marginrank._utils.parameters import check_integer
from marginrank.plots.style import LABEL_SIZE, NEGATIVE, POSITIVE, in_style, write_beside

CONTRIBUTION = "contribution to the score"


def plot_additive(
    model: Any, X: Any = None, *, qid: Any = None, top: int = 6, figure: Any = None
) -> list[Any]:
    """Draw the most important curves of an additive model, each on its own axes.

    All curves have the same vertical scale. Interactions are drawn as heat maps; their values for
    missing features are not shown.

    Parameters
    ----------
    model : AdditiveRankSVM or AdditiveModel
        The fitted model.
    X : array-like or sparse matrix of shape (n_documents, n_features), or RankingData, optional
        Documents. If given, curves are ordered by importance, the within-query standard deviation
        of their contribution to the score, which the titles show with a bootstrap standard error;
        a histogram of the feature is drawn under each curve. Otherwise curves are ordered by their
        range, the largest minus the smallest value.
    qid : array-like of shape (n_documents,), optional
        Queries of the documents; a RankingData brings its own.
    top : int, default=6
        Number of curves and heat maps.
    figure : matplotlib.figure.Figure, optional
        Figure to draw on; by default a new one.

    Returns
    -------
    list of matplotlib.axes.Axes
        The axes, the most important curve first.

    Examples
    --------
    >>> from marginrank import AdditiveRankSVM, make_ranking
    >>> from marginrank.plots import plot_additive
    >>> X, y, qid = make_ranking(n_queries=20, n_features=5, random_state=0)
    >>> axes = plot_additive(AdditiveRankSVM().fit(X, y, qid=qid), X, qid=qid, top=2)
    >>> len(axes)
    2
    """
    from marginrank.models import AdditiveModel
    from marginrank.models.additive_model import documents_of, importance

    plain = model.to_additive_model() if hasattr(model, "to_additive_model") else model
    if not isinstance(plain, AdditiveModel):
        raise TypeError(
            f"model is a {type(model).__name__}; pass a fitted AdditiveRankSVM or "
            "AdditiveRankSVMCV, or an AdditiveModel."
        )
    functions: list[Any] = [*plain.curves, *plain.interactions]
    sizes = np.array([function.spread for function in functions])
    labels = [f"range {value:.3g}" for value in sizes]
    if X is not None:
        X, qid = documents_of(plain, X, qid)
        sizes, error = importance(plain, X, qid)
        labels = [
            f"importance {value:.3g} ± {e:.1g}" for value, e in zip(sizes, error, strict=True)
        ]
    shown = np.argsort(-sizes, kind="stable")[: check_integer("top", top, at_least=1)].tolist()
    axes = _new_grid(figure, len(shown))
    curves = [ax for ax, k in zip(axes, shown, strict=True) if k < plain.n_features]
    maps = [plain.interactions[k - plain.n_features] for k in shown if k >= plain.n_features]
    most = max((float(np.abs(pair.values[1:, 1:]).max()) for pair in maps), default=0.0)
    for ax, k in zip(axes, shown, strict=True):
        if k < plain.n_features:
            _draw_curve(ax, plain.curves[k], None if X is None else X[:, [k]])
            name = name_of(k, plain.feature_names)
        else:
            name = _draw_map(ax, plain, plain.interactions[k - plain.n_features], most)
        ax.set_title(f"{name}\n{labels[k]}", loc="left", size=LABEL_SIZE, parse_math=False)
    _share_heights(curves)
    return axes


def _new_grid(figure: Any, n_axes: int) -> list[Any]:
    """Return new axes in rows of up to three on a figure, or on a new figure if it is None."""
    columns = min(n_axes, 3)
    n_rows = -(-n_axes // columns)
    with in_style():
        if figure is None:
            size = (3.3 * columns, 2.7 * n_rows) if n_axes > 1 else (4.8, 3.4)
            figure = require("matplotlib.figure", "plot").Figure(size)
        return [figure.add_subplot(n_rows, columns, k + 1) for k in range(n_axes)]


def _share_heights(axes: list[Any]) -> None:
    """Give curves the same vertical limits, so that their heights can be compared."""
    if axes:
        limits = np.array([ax.get_ylim() for ax in axes])
        for ax in axes:
            ax.set_ylim(limits[:, 0].min(), limits[:, 1].max())


def _draw_map(ax: Any, model: Any, pair: Any, most: float) -> str:
    """Draw the contribution of a pair of features as a heat map; return the pair's name."""
    y, x = (
        np.arange(knots.size) if categorical else knots
        for knots, categorical in zip(pair.knots, pair.categorical, strict=True)
    )
    shading = "nearest" if any(pair.categorical) else "gouraud"
    limits = {"vmin": -most, "vmax": most}
    shown = ax.pcolormesh(x, y, pair.values[1:, 1:], cmap="coolwarm", shading=shading, **limits)
    ax.figure.colorbar(shown, ax=ax, label=CONTRIBUTION)
    ax.grid(visible=False)
    axes = (ax.set_yticks, ax.set_xticks)
    for ticks, knots, feature in zip(axes, pair.knots, pair.features, strict=True):
        curve = model.curves[feature]
        if curve.categorical:
            ticks(range(knots.size), curve._replace(knots=knots).texts, parse_math=False)
    first, second = (name_of(k, model.feature_names) for k in pair.features)
    ax.set_ylabel(first, parse_math=False)
    ax.set_xlabel(second, parse_math=False)
    return f"{first} × {second}"


def _draw_curve(ax: Any, curve: Any, column: Any) -> None:
    """Draw a feature's curve, the contribution of missing values, and a histogram of values."""
    ax.axhline(0, color="0.6", linewidth=0.8)
    if curve.categorical:
        ax.bar(range(curve.knots.size), curve.values, 0.7, color=POSITIVE)
        ax.set_xticks(range(curve.knots.size), curve.texts, parse_math=False)
    else:
        ax.plot(curve.knots, curve.values, color=POSITIVE, label="curve")
        if column is not None and curve.knots.size > 1:
            _draw_density(ax, curve.knots, column)
    if curve.missing != 0:
        ax.axhline(curve.missing, color=NEGATIVE, linestyle="--", linewidth=1.2)
        write_beside(ax, "missing", (1, curve.missing), NEGATIVE, ("axes fraction", "data"))
    if ax.get_subplotspec().is_first_col():
        ax.set_ylabel(CONTRIBUTION)


def _draw_density(ax: Any, knots: Any, column: Any) -> None:
    values = np.asarray(column.toarray() if sp.issparse(column) else column, dtype=np.float64)
    counts, edges = np.histogram(values[~np.isnan(values)], bins=40, range=(knots[0], knots[-1]))
    under = ax.twinx()
    under.bar(edges[:-1], counts, np.diff(edges), align="edge", color="0.88")
    under.set_axis_off()
    under.set_ylim(0, 4 * max(int(counts.max()), 1))
    under.set_zorder(ax.get_zorder() - 1)
    ax.patch.set_visible(False)
