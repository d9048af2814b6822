"""Plots with matplotlib, on given axes or on a new figure without pyplot and display."""

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from marginrank._utils.feature_names import name_of
from marginrank._utils.optional import require
from marginrank._utils.parameters import check_integer

if TYPE_CHECKING:
    from marginrank.metrics.feature_ranking import FeatureRanking
    from marginrank.selection.learning_curve import LearningCurve
    from marginrank.selection.paths import ModelPath
    from marginrank.selection.results import SearchResult

COLORS = {1: "C0", -1: "C1"}
MOST_LINES = 3  # lines of a plot whose legend fits inside the axes
LEGEND_LINE = 0.2  # height of one line of a legend, in inches
DIRECTIONS = {1: "higher values first", -1: "lower values first"}


def plot_feature_ranking(ranking: "FeatureRanking", *, top: int = 20, ax: Any = None) -> Any:
    """Draw one bar per feature for the best features, and a line at the value of a random order.

    Parameters
    ----------
    ranking : FeatureRanking
        From :func:`~marginrank.rank_features`.
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
    (3, 'ndcg@10')
    """
    shown = ranking.order[: check_integer("top", top, at_least=1)].tolist()
    if ax is None:
        ax = _new_axes(6.4, 1.6 + 0.25 * len(shown))
    rows = range(len(shown))
    directions = ranking.direction[shown].tolist()
    ax.barh(rows, ranking.best[shown], color=[COLORS[direction] for direction in directions])
    # A "$" in a feature name must not start a formula.
    ax.set_yticks(rows, [ranking.feature_names[j] for j in shown], parse_math=False)
    ax.set_ylim(len(shown) - 0.5, -0.5)  # the best at the top
    chance = ax.axvline(ranking.chance, color="black", linestyle="--", label="random order")
    ax.set_xlabel(ranking.metric, parse_math=False)
    patches = require("matplotlib.patches", "plot")
    handles = [
        patches.Patch(color=COLORS[direction], label=DIRECTIONS[direction])
        for direction in sorted(set(directions), reverse=True)
    ]
    ax.legend(handles=[*handles, chance])
    return ax


def plot_weights(model: Any, stderr: Any = None, *, top: int = 20, ax: Any = None) -> Any:
    """Draw the largest weights of a linear model as bars, with standard errors if given.

    If features were scaled, the bars are weight × scale, which can be compared with each other.

    Parameters
    ----------
    model : fitted linear estimator or LinearModel
        The weights.
    stderr : array-like of shape (n_features,), optional
        From :meth:`RankSVM.coef_stderr`; drawn as lines of one standard error to both sides.
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
    if ax is None:
        ax = _new_axes(6.4, 1.2 + 0.25 * len(shown))
    errors = None if stderr is None else (np.asarray(stderr) * scale)[shown]
    rows = range(len(shown))
    ax.barh(rows, effects[shown], xerr=errors)
    ax.set_yticks(rows, [name_of(j, plain.feature_names) for j in shown], parse_math=False)
    ax.set_ylim(len(shown) - 0.5, -0.5)  # the largest at the top
    ax.axvline(0, color="black", linewidth=1)
    what = "weight" if plain.scale is None else "weight × scale"
    ax.set_xlabel(what if errors is None else f"{what} ± standard error")
    return ax


def plot_position_effect(model: Any, *, ax: Any = None) -> Any:
    """Draw the effect of each position on the scores of clicks, relative to the first position.

    Parameters
    ----------
    model : fitted estimator
        Fitted with `position`; one line per context.
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
    (1, 'position')
    """
    effects = getattr(model, "position_effect_", None)
    if effects is None:
        raise ValueError("the model has no position_effect_; fit it with position.")
    if ax is None:
        ax = _new_axes(6.4, 3.6)
    table = np.atleast_2d(effects)
    contexts = getattr(model, "contexts_", None)
    labels = [None] if contexts is None else [str(context) for context in contexts]
    position = np.arange(1, table.shape[1] + 1)
    for row, label in zip(table, labels, strict=True):
        ax.plot(position, row - row[0], marker="o", label=label)
    ax.set_xlabel("position")
    ax.set_ylabel("effect on the score of a click")
    if contexts is not None:
        for text in ax.legend().get_texts():
            text.set_parse_math(False)
    return ax


def plot_path(path: "ModelPath", *, ax: Any = None) -> Any:
    """Draw the weights of a path against C or the radius, on a logarithmic scale.

    Scores of the path, if any, are drawn on a second axis to the right, with the best one marked.

    Parameters
    ----------
    path : LinearPath or SparsePath
        From :func:`~marginrank.linear_path` or :func:`~marginrank.sparse_path`, or ``path_`` of
        :class:`~marginrank.SparseRankSVMCV`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default axes of a new figure, ``ax.figure``.

    Returns
    -------
    matplotlib.axes.Axes
        The axes of the weights, with one line per feature of nonzero weight, labeled by its number.

    Examples
    --------
    >>> from marginrank import make_ranking, sparse_path
    >>> from marginrank.plots import plot_path
    >>> X, y, qid = make_ranking(n_queries=20, n_features=5, random_state=0)
    >>> ax = plot_path(sparse_path(X, y, qid=qid, n_points=10))
    >>> len(ax.lines), ax.get_xlabel(), ax.get_xscale()
    (5, 'C', 'log')
    """
    if ax is None:
        ax = _new_axes(6.4, 4.8)
    columns = sp.csc_array(path.coefs)
    used = np.flatnonzero(np.diff(columns.indptr))  # others may be a million lines at zero
    for j, weights in zip(used.tolist(), columns[:, used].toarray().T, strict=True):
        ax.plot(path.values, weights, label=str(j), linewidth=1)
    ax.set_xscale("log")
    ax.set_xlabel(path.parameter)
    ax.set_ylabel("weight")
    if path.scores is None:
        return ax
    right = ax.twinx()
    right.plot(path.values, path.scores, color="black", linestyle="--", label=path.metric)
    right.set_ylabel(path.metric, parse_math=False)
    best = path.values[path.best_index]
    label = f"best {path.parameter}: {best:.3g}"
    right.plot(best, path.scores[path.best_index], "o", color="black", label=label)
    right.axvline(best, color="black", linestyle=":", linewidth=1)
    right.legend()
    return ax


def plot_learning_curve(curve: "LearningCurve", *, ax: Any = None) -> Any:
    """Draw validation and training scores against the number of training queries.

    The bands are one standard error to both sides.

    Parameters
    ----------
    curve : LearningCurve
        From :func:`~marginrank.learning_curve_ranking`.
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
    (['queries held out', 'training queries'], 'ndcg@10')
    """
    if ax is None:
        ax = _new_axes(6.4, 4.8)
    for label, mean, error in (
        ("queries held out", curve.valid_mean, curve.valid_error),
        ("training queries", curve.train_mean, curve.train_error),
    ):
        _draw_band(ax, curve.sizes, mean, error, label, marker="o")
    ax.set_xscale("log", base=2)
    sizes = curve.sizes.tolist()
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.set_xlabel("training queries")
    ax.set_ylabel(curve.metric, parse_math=False)
    ax.legend()
    return ax


def plot_search(result: "SearchResult", *, ax: Any = None) -> Any:
    """Draw the scores of a search against C or the radius, with standard errors.

    Parameters
    ----------
    result : SearchResult
        ``search_`` of :class:`~marginrank.RankSVMCV`, :class:`~marginrank.SparseRankSVMCV` or
        :class:`~marginrank.AdditiveRankSVMCV`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default axes of a new figure, ``ax.figure``.

    Returns
    -------
    matplotlib.axes.Axes
        One line per combination of the other parameters, labeled if there are several, and a
        point at the best. The legend of more than three lines is below the axes.

    Examples
    --------
    >>> from marginrank import RankSVMCV, make_ranking
    >>> from marginrank.plots import plot_search
    >>> X, y, qid = make_ranking(n_queries=20, n_features=5, random_state=0)
    >>> model = RankSVMCV(n_points=5, cv=3, scale=["none", "standard"]).fit(X, y, qid=qid)
    >>> ax = plot_search(model.search_)
    >>> ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()
    ('C', 'ndcg@10', 'log')
    """
    values = result.values
    combination = np.array([candidate.combination for candidate in result.candidates])
    numbers = np.unique(combination).tolist()
    has_room = len(numbers) <= MOST_LINES
    if ax is None:
        ax = _new_axes(6.4, 4.8 if has_room else 4.8 + LEGEND_LINE * (len(numbers) + 2))
    for number in numbers:
        members = np.flatnonzero(combination == number)
        members = members[np.argsort(values[members], kind="stable")]
        mean, error = result.mean[members], np.nan_to_num(result.error[members])
        label = result.label(int(members[0]))
        if len(members) == 1:  # a line and a band of one point would be invisible
            ax.errorbar(values[members], mean, error, fmt="o", label=label)
        else:
            _draw_band(ax, values[members], mean, error, label)
    best = values[result.best_index]
    label = f"{result.parameter} = {best:.3g}"
    ax.plot(best, result.best_score, "o", color="black", label=label)
    ax.set_xscale("log")
    ax.set_xlabel(result.parameter)
    ax.set_ylabel(result.metric, parse_math=False)
    if has_room:
        ax.legend()
    else:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), fontsize="small")
    return ax


def plot_additive(
    model: Any, X: Any = None, *, qid: Any = None, top: int = 6, figure: Any = None
) -> list[Any]:
    """Draw the most important curves of an additive model, each on its own axes.

    Interactions are drawn as heat maps of their contribution where both features have a value.

    Parameters
    ----------
    model : AdditiveRankSVM or AdditiveModel
        The fitted model.
    X : array-like or sparse matrix of shape (n_documents, n_features), or RankingData, optional
        Documents. If given, curves are ordered by the within-query standard deviation of their
        contribution, shown with a bootstrap standard error over queries, and the density of the
        values is drawn under each curve. Otherwise curves are ordered by their range.
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
    labels = [f"{value:.3g}" for value in sizes]
    if X is not None:
        X, qid = documents_of(plain, X, qid)
        sizes, error = importance(plain, X, qid)
        labels = [f"{value:.3g} ± {e:.1g}" for value, e in zip(sizes, error, strict=True)]
    shown = np.argsort(-sizes, kind="stable")[: check_integer("top", top, at_least=1)].tolist()
    columns = min(len(shown), 3)
    n_rows = -(-len(shown) // columns)
    if figure is None:
        figure = _new_axes(3.2 * columns, 2.4 * n_rows).figure
        figure.clear()
    axes = [figure.add_subplot(n_rows, columns, k + 1) for k in range(len(shown))]
    for ax, k in zip(axes, shown, strict=True):
        if k < plain.n_features:
            _draw_curve(ax, plain.curves[k], None if X is None else X[:, [k]])
            name = name_of(k, plain.feature_names)
        else:
            name = _draw_map(ax, plain, plain.interactions[k - plain.n_features])
        ax.set_title(f"{name}: {labels[k]}", parse_math=False, fontsize="medium")
    return axes


def _draw_map(ax: Any, model: Any, pair: Any) -> str:
    """Draw a heat map of the contribution of a pair of features; return the pair's name."""
    values = pair.values[1:, 1:]
    y, x = (
        np.arange(knots.size) if categorical else knots
        for knots, categorical in zip(pair.knots, pair.categorical, strict=True)
    )
    most = float(np.abs(values).max())
    shading = "nearest" if any(pair.categorical) else "gouraud"
    shown = ax.pcolormesh(x, y, values, cmap="coolwarm", vmin=-most, vmax=most, shading=shading)
    ax.figure.colorbar(shown, ax=ax)
    axes = (ax.set_yticks, ax.set_xticks)
    for ticks, knots, categorical in zip(axes, pair.knots, pair.categorical, strict=True):
        if categorical:
            ticks(range(knots.size), [f"{value:g}" for value in knots])
    first, second = (name_of(k, model.feature_names) for k in pair.features)
    ax.set_ylabel(first, parse_math=False)
    ax.set_xlabel(second, parse_math=False)
    return f"{first} × {second}"


def _draw_curve(ax: Any, curve: Any, column: Any) -> None:
    """Draw a curve, the contribution of missing values, and the density of the values."""
    if curve.categorical:
        ax.bar(range(curve.knots.size), curve.values)
        ax.set_xticks(range(curve.knots.size), [f"{value:g}" for value in curve.knots])
    else:
        ax.plot(curve.knots, curve.values, marker=".")
        if column is not None and curve.knots.size > 1:
            _draw_density(ax, curve.knots, column)
    if curve.missing != 0:
        ax.axhline(curve.missing, color="C1", linestyle=":", label="missing")
        ax.legend()


def _draw_density(ax: Any, knots: Any, column: Any) -> None:
    values = np.asarray(column.toarray() if sp.issparse(column) else column, dtype=np.float64)
    counts, edges = np.histogram(values[~np.isnan(values)], bins=40, range=(knots[0], knots[-1]))
    under = ax.twinx()
    under.bar(edges[:-1], counts, np.diff(edges), align="edge", color="0.85")
    under.set_ylim(0, 4 * max(int(counts.max()), 1))
    under.set_yticks([])
    under.set_zorder(ax.get_zorder() - 1)
    ax.patch.set_visible(False)


def _draw_band(ax: Any, x: Any, mean: Any, error: Any, label: Any, **style: Any) -> None:
    (line,) = ax.plot(x, mean, label=label, **style)
    band = {"color": line.get_color(), "alpha": 0.2, "linewidth": 0}
    ax.fill_between(x, mean - error, mean + error, **band)


def _new_axes(width: float, height: float) -> Any:  # in inches
    figure = require("matplotlib.figure", "plot").Figure((width, height), layout="constrained")
    return figure.subplots()
