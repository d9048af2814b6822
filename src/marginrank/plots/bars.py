"""Bar plots with one bar per feature: metrics of single features, and weights of a model."""

from typing import TYPE_CHECKING, Any

import numpy as np

from marginrank._utils.feature_names import name_of
from marginrank._utils.parameters import check_integer
from marginrank.plots.style import (
    NEGATIVE,
    POSITIVE,
    metric_label,
    name_rows,
    new_axes,
    write_above,
    write_beside,
)

if TYPE_CHECKING:
    from marginrank.metrics.feature_ranking import FeatureRanking

COLORS = {1: POSITIVE, -1: NEGATIVE}
DIRECTIONS = {1: "higher values first", -1: "lower values first"}


def plot_feature_ranking(ranking: "FeatureRanking", *, top: int = 20, ax: Any = None) -> Any:
    """Draw how well single features rank the documents: one bar for each of the best features.

    Bars begin at the value of the metric for a random order.

    Parameters
    ----------
    ranking : FeatureRanking
        Result of :func:`~marginrank.rank_features`.
    top : int, default=20
        Number of features to show.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default axes of a new figure, ``ax.figure``.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from marginrank import make_ranking, rank_features
    >>> from marginrank.plots import plot_feature_ranking
    >>> X, y, qid = make_ranking(n_queries=20, n_features=5, random_state=0)
    >>> ranking = rank_features(X, y, qid=qid)
    >>> ax = plot_feature_ranking(ranking, top=3)
    >>> len(ax.patches), ax.get_xlabel()
    (3, 'NDCG@10 of the feature as the score')
    """
    shown = ranking.order[: check_integer("top", top, at_least=1)].tolist()
    directions = ranking.direction[shown].tolist()
    colors = [COLORS[direction] for direction in directions]
    gains = ranking.best[shown] - ranking.chance
    ax = _draw_bars(ax, [ranking.feature_names[j] for j in shown], gains, colors, ranking.chance)
    for row, direction in enumerate(directions):
        text = f"{ranking.best[shown[row]]:.3f}"
        if direction not in directions[:row]:  # write the meaning of a color at its first bar
            text += f"  {DIRECTIONS[direction]}"
        end = max(float(ranking.best[shown[row]]), ranking.chance)
        write_beside(ax, text, (end, row), COLORS[direction])
    write_above(ax, "random order", ranking.chance)
    ax.set_xlabel(f"{metric_label(ranking.metric)} of the feature as the score", parse_math=False)
    return ax


def plot_weights(model: Any, stderr: Any = None, *, top: int = 20, ax: Any = None) -> Any:
    """Draw the largest weights of a linear model as bars, with standard errors if given.

    If features were scaled, the bars are weight × scale, which can be compared with each other.

    Parameters
    ----------
    model : fitted linear estimator or LinearModel
        The model with the weights.
    stderr : array-like of shape (n_features,), optional
        Standard errors of the weights, as from :meth:`RankSVM.coef_stderr`. They are drawn as error
        bars of one standard error to both sides.
    top : int, default=20
        Number of weights to show.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default axes of a new figure, ``ax.figure``.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from marginrank import RankSVM, make_ranking
    >>> from marginrank.plots import plot_weights
    >>> X, y, qid = make_ranking(n_queries=20, n_features=5, random_state=0)
    >>> model = RankSVM(scale="query").fit(X, y, qid=qid)
    >>> ax = plot_weights(model, model.coef_stderr(X, y, qid=qid), top=3)
    >>> len(ax.patches), ax.get_xlabel()
    (3, 'weight × scale ± standard error')
    """
    plain = model.to_linear_model() if hasattr(model, "to_linear_model") else model
    scale = np.ones(plain.n_features) if plain.scale is None else plain.scale
    effects = plain.coef * scale
    shown = np.argsort(-np.abs(effects), kind="stable")
    shown = shown[: check_integer("top", top, at_least=1)]
    names = [name_of(j, plain.feature_names) for j in shown.tolist()]
    colors = [POSITIVE if effect >= 0 else NEGATIVE for effect in effects[shown]]
    errors = None if stderr is None else (np.asarray(stderr) * scale)[shown]
    ax = _draw_bars(ax, names, effects[shown], colors, xerr=errors)
    what = "weight" if plain.scale is None else "weight × scale"
    ax.set_xlabel(what if errors is None else f"{what} ± standard error")
    return ax


def _draw_bars(
    ax: Any, names: list[str], sizes: Any, colors: list[str], start: float = 0.0, xerr: Any = None
) -> Any:
    """Draw one horizontal bar per name, beginning at x = `start`, the first bar at the top."""
    if ax is None:
        ax = new_axes(6.4, 1.0 + 0.27 * len(names))
    error = {"ecolor": "0.15", "elinewidth": 1.2, "capsize": 2.5}
    ax.barh(range(len(names)), sizes, 0.7, start, color=colors, xerr=xerr, error_kw=error)
    name_rows(ax, names)
    ax.axvline(start, color="0.15", linewidth=1)
    return ax
